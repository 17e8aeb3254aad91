#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "wasmtime_api.h"

enum {
  PAGE = 65536,
  FIRST_BUFFER = 1088
}; /* words that threads share are before it: polygrad/shared_words.py */

struct wasm {
  struct wasmtime_api api;
  void *library, *engine, *store, *context;
  struct wasmtime_extern memory; /* what modules import */
};

/* The calls of a Program: kernels, or the driver. */
struct steps {
  struct step {
    struct wasmtime_handle function;
    struct text name;
    union wasmtime_value *values;
    const struct kernel *kernel; /* its last values are its variables; NULL: of the driver */
    uint32_t count;
  } *steps;
  uint32_t count;
};

static const char *library_path(const pg_model *model) {
  const char *path = model->options.wasmtime;
  if (!path || !*path)
    path = getenv("PG_WASMTIME");
#ifdef __APPLE__
  return path && *path ? path : "libwasmtime.dylib";
#else
  return path && *path ? path : "libwasmtime.so";
#endif
}

static pg_status find_functions(const pg_model *model, struct wasm *wasm, pg_error *error) {
  const char *path = library_path(model);
  /* It stays: its handlers of signals are the process'. */
  if (!(wasm->library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))) {
    const char *reason = dlerror();
    return fail(error, PG_NO_ENGINE,
                "open: expected wasmtime's shared library at %.200s, which PG_WASMTIME or the options "
                "can name, got: %.200s",
                path, reason ? reason : "");
  }
#define FIND(result, name, parameters)                                                                       \
  void *found_##name = dlsym(wasm->library, #name);                                                          \
  if (!found_##name)                                                                                         \
    return fail(error, PG_NO_ENGINE, "open: %.200s has no %s: use another version of wasmtime", path,        \
                #name);                                                                                      \
  memcpy(&wasm->api.name, &found_##name, sizeof found_##name);
  WASMTIME_FUNCTIONS(FIND)
#undef FIND
  return PG_OK;
}

/* Take wasmtime's error or trap, and say what it says. */
static pg_status explain(struct wasm *wasm, pg_error *error, pg_status status, struct text name, void *cause,
                         void *trap) {
  struct wasm_vector message = {0};
  if (cause)
    wasm->api.wasmtime_error_message(cause, &message);
  else
    wasm->api.wasm_trap_message(trap, &message);
  int length = message.size < 300 ? (int)message.size : 300;
  fail(error, status, "kernel %.100s: %.*s", name.data, length,
       message.size ? (const char *)message.data : "");
  wasm->api.wasm_byte_vec_delete(&message);
  if (cause)
    wasm->api.wasmtime_error_delete(cause);
  if (trap)
    wasm->api.wasm_trap_delete(trap);
  return status;
}

static pg_status make_memory(pg_model *model, struct wasm *wasm, uint64_t pages, pg_error *error) {
  struct wasmtime_api *api = &wasm->api;
  bool shared = false;
  for (uint32_t i = 0; i < model->bundle.n_programs; i++)
    shared |= model->bundle.programs[i].shared_memory;
  void *type = NULL;
  void *cause = api->wasmtime_memorytype_new(pages, true, pages, false, shared, 16, &type);
  if (!cause && shared) {
    wasm->memory.kind = EXTERN_SHARED_MEMORY;
    cause = api->wasmtime_sharedmemory_new(wasm->engine, type, &wasm->memory.of.pointer);
    if (!cause)
      model->base = api->wasmtime_sharedmemory_data(wasm->memory.of.pointer);
  } else if (!cause) {
    wasm->memory.kind = EXTERN_MEMORY;
    cause = api->wasmtime_memory_new(wasm->context, type, &wasm->memory.of.handle);
    if (!cause)
      model->base = api->wasmtime_memory_data(wasm->context, &wasm->memory.of.handle);
  }
  if (type)
    api->wasm_memorytype_delete(type);
  return cause ? explain(wasm, error, PG_MEMORY, (struct text){"memory", 6}, cause, NULL) : PG_OK;
}

static pg_status wasm_open(pg_model *model, uint64_t nbytes, pg_error *error) {
  struct wasm *wasm = pool_take(&model->pool, 1, sizeof *wasm);
  if (!wasm)
    return out_of_memory(error);
  model->opened = wasm;
  pg_status status = find_functions(model, wasm, error);
  if (status)
    return status;
  struct wasmtime_api *api = &wasm->api;
  void *config = api->wasm_config_new();
  api->wasmtime_config_cranelift_opt_level_set(config, OPTIMIZE_FOR_SPEED);
  api->wasmtime_config_wasm_simd_set(config, true);
  api->wasmtime_config_wasm_relaxed_simd_set(config, true);
  api->wasmtime_config_parallel_compilation_set(config, false); /* its threads would not survive a fork */
  api->wasmtime_config_shared_memory_set(config, true);
  api->wasmtime_config_epoch_interruption_set(config, model->options.flags & PG_STOPPABLE);
  if (!(wasm->engine = api->wasm_engine_new_with_config(config)) ||
      !(wasm->store = api->wasmtime_store_new(wasm->engine, NULL, NULL)))
    return out_of_memory(error);
  uint64_t pages = (nbytes + PAGE - 1) / PAGE;
  int64_t instances = 1; /* one for each kernel */
  for (uint32_t i = 0; i < model->bundle.n_programs; i++)
    instances += (int64_t)model->bundle.programs[i].n_kernels + 1;
  api->wasmtime_store_limiter(wasm->store, (int64_t)(pages * PAGE), -1, instances, -1, instances);
  wasm->context = api->wasmtime_store_context(wasm->store);
  return make_memory(model, wasm, pages, error);
}

/* Let requests to stop from now on end what runs next; false: there was one before. */
static bool begin(pg_model *model) {
  struct wasm *wasm = model->opened;
  wasm->api.wasmtime_context_set_epoch_deadline(wasm->context, 1);
  return atomic_load(&model->stop.reason) == PG_OK;
}

/* The function that a module exports, which takes `count` i32. */
static pg_status load_function(pg_model *model, struct text name, struct bytes code, uint32_t count,
                               struct wasmtime_handle *function, pg_error *error) {
  struct wasm *wasm = model->opened;
  struct wasmtime_api *api = &wasm->api;
  void *module = NULL, *trap = NULL;
  struct wasm_vector imports = {0};
  struct wasmtime_handle instance;
  struct wasmtime_extern found = {0};
  void *cause = api->wasmtime_module_new(wasm->engine, code.data, code.length, &module);
  if (cause)
    return explain(wasm, error, PG_COMPILE, name, cause, NULL);
  api->wasmtime_module_imports(module, &imports);
  size_t n_imports = imports.size;
  api->wasm_importtype_vec_delete(&imports);
  bool fits = n_imports <= 1;
  if (fits && (fits = begin(model))) /* code may start by itself */
    cause = api->wasmtime_instance_new(wasm->context, module, &wasm->memory, n_imports, &instance, &trap);
  api->wasmtime_module_delete(module);
  if (cause || trap)
    return explain(wasm, error, PG_COMPILE, name, cause, trap);
  fits = fits &&
         api->wasmtime_instance_export_get(wasm->context, &instance, name.data, name.length, &found) &&
         found.kind == EXTERN_FUNCTION;
  if (fits) {
    void *type = api->wasmtime_func_type(wasm->context, &found.of.handle);
    const struct wasm_vector *params = api->wasm_functype_params(type);
    fits = params->size == count && !api->wasm_functype_results(type)->size;
    for (size_t i = 0; fits && i < count; i++)
      fits = api->wasm_valtype_kind(((void *const *)params->data)[i]) == 0; /* i32 */
    api->wasm_functype_delete(type);
  }
  *function = found.of.handle;
  return fits ? PG_OK
              : fail(error, PG_COMPILE,
                     "kernel %.100s: expected a module that imports a memory alone, with a "
                     "function of this name and %u parameters i32",
                     name.data, (unsigned)count);
}

static int32_t address_of(const pg_model *model, const uint8_t *p) {
  return (int32_t)(uint32_t)(p - model->base);
}

static void write_word(uint8_t *p, uint32_t word) {
  for (unsigned i = 0; i < 4; i++)
    p[i] = (uint8_t)(word >> 8 * i);
}

/* A step with `count` arguments. */
static pg_status add_step(pg_model *model, struct steps *steps, struct text name, struct bytes code,
                          uint32_t count, struct step **made, pg_error *error) {
  struct step *step = &steps->steps[steps->count++];
  step->name = name;
  step->count = count;
  step->values = pool_take(&model->pool, (size_t)count + 1, sizeof *step->values);
  *made = step;
  return step->values ? load_function(model, name, code, count, &step->function, error)
                      : out_of_memory(error);
}

/* The driver takes the address of its table and, if a kernel is parallel, thread 0 of 1. */
static pg_status prepare_driver(pg_model *model, struct entry *entry, struct steps *steps, pg_error *error) {
  const struct program *program = entry->program;
  struct step *step;
  pg_status status = add_step(model, steps, (struct text){"run", 3}, program->driver,
                              program->parallel ? 3 : 1, &step, error);
  if (status)
    return status;
  step->values[0].i32 = address_of(model, entry->table);
  if (program->parallel)
    step->values[2].i32 = 1;
  for (uint32_t i = 0; i <= program->n_buffers; i++)
    write_word(entry->table + 4 * i, (uint32_t)address_of(model, entry->addresses[i]));
  return PG_OK;
}

/* Kernels are loaded once, by their first launch. */
static pg_status prepare_launches(pg_model *model, struct entry *entry, struct steps *steps,
                                  pg_error *error) {
  const struct program *program = entry->program;
  struct step **firsts = pool_take(&model->pool, program->n_kernels, sizeof *firsts);
  if (!firsts)
    return out_of_memory(error);
  for (uint32_t i = 0; i < program->n_launches; i++) {
    const struct launch *launch = &program->launches[i];
    const struct kernel *kernel = &program->kernels[launch->kernel];
    struct step *first = firsts[launch->kernel], *step;
    if (!first) {
      pg_status status = add_step(model, steps, kernel->name, kernel->code,
                                  kernel->pointers + kernel->n_variables, &step, error);
      if (status)
        return status;
      firsts[launch->kernel] = step;
    } else {
      step = &steps->steps[steps->count++];
      *step = *first;
      if (!(step->values = pool_take(&model->pool, (size_t)step->count + 1, sizeof *step->values)))
        return out_of_memory(error);
    }
    step->kernel = kernel;
    for (uint32_t j = 0; j < kernel->pointers; j++)
      step->values[j].i32 =
          address_of(model, entry->addresses[launch->bindings[j].buffer] + launch->bindings[j].offset);
  }
  return PG_OK;
}

static pg_status wasm_prepare(pg_model *model, struct entry *entry, pg_error *error) {
  const struct program *program = entry->program;
  struct steps *steps = pool_take(&model->pool, 1, sizeof *steps);
  if (!steps ||
      !(steps->steps = pool_take(&model->pool, (size_t)program->n_launches + 1, sizeof *steps->steps)))
    return out_of_memory(error);
  pg_status status = program->driver.length ? prepare_driver(model, entry, steps, error)
                                            : prepare_launches(model, entry, steps, error);
  if (!status)
    entry->prepared = steps;
  return status;
}

static pg_status wasm_run(pg_model *model, struct entry *entry, const int64_t *variables, pg_error *error) {
  struct wasm *wasm = model->opened;
  struct steps *steps = entry->prepared;
  const struct program *program = entry->program;
  for (uint32_t i = 0; entry->table && i < program->n_variables; i++)
    write_word(entry->table + 4 * ((size_t)program->n_buffers + 1 + i), (uint32_t)variables[i]);
  if (!begin(model))
    return PG_INTERRUPTED;
  for (uint32_t i = 0; i < steps->count; i++) {
    struct step *step = &steps->steps[i];
    void *trap = NULL;
    for (uint32_t j = 0; step->kernel && j < step->kernel->n_variables; j++) {
      int32_t v = step->kernel->variables[j]; /* thread 0 of 1, part 0 of 1 */
      step->values[step->kernel->pointers + j].i32 =
          v >= 0 ? (int32_t)(uint32_t)variables[v] : v == OF_THREADS || v == OF_PARTS;
    }
    void *cause = wasm->api.wasmtime_func_call_unchecked(wasm->context, &step->function, step->values,
                                                         step->count, &trap);
    if (cause || trap)
      return explain(wasm, error, PG_TRAP, step->name, cause, trap);
  }
  return PG_OK;
}

static void wasm_stop(pg_model *model) {
  struct wasm *wasm = model->opened;
  wasm->api.wasmtime_engine_increment_epoch(wasm->engine);
}

static void wasm_close(pg_model *model) {
  struct wasm *wasm = model->opened;
  if (!wasm)
    return;
  if (wasm->memory.kind == EXTERN_SHARED_MEMORY)
    wasm->api.wasmtime_sharedmemory_delete(wasm->memory.of.pointer);
  if (wasm->store)
    wasm->api.wasmtime_store_delete(wasm->store);
  if (wasm->engine)
    wasm->api.wasm_engine_delete(wasm->engine);
  if (wasm->library)
    dlclose(wasm->library);
}

const struct engine wasm_engine = {
    wasm_open, wasm_prepare, wasm_run, wasm_stop, wasm_close, FIRST_BUFFER, (uint64_t)65535 * PAGE,
};
