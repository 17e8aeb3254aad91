/* The table of functions. Each checks its arguments, and those that use a model's memory that no other thread
 * does. */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "model.h"
#include "sha256.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "libpolygrad: expected a little-endian processor"
#endif

enum { GUARD = 65536 }; /* bytes behind a mapped file that may be read: at least a page */

static const char *library_version(void) {
  return "0.1.0";
}

static const char *status_name(pg_status status) {
  static const char *const names[] = {
      "PG_OK",          "PG_ARGUMENT", "PG_IO",           "PG_FORMAT",      "PG_VERSION",
      "PG_DIGEST",      "PG_DAMAGED",  "PG_TRUST",        "PG_UNSUPPORTED", "PG_MEMORY",
      "PG_NO_ENGINE",   "PG_COMPILE",  "PG_TRAP",         "PG_SHAPE",       "PG_BUSY",
      "PG_INTERRUPTED", "PG_TIMEOUT",  "PG_HALF_WRITTEN", "PG_NOT_FOUND",
  };
  return status >= 0 && (size_t)status < sizeof names / sizeof *names ? names[status] : "unknown";
}

static pg_status null_argument(const char *function, pg_error *error) {
  return fail(error, PG_ARGUMENT, "%s: expected pointers, got NULL", function);
}

/* --- files */

/* A mapped file, copied on write, with a readable page behind it. */
static pg_status map_file(const char *path, void **mapping, size_t *nbytes, size_t *length, pg_error *error) {
  struct stat about;
  int file = open(path, O_RDONLY | O_CLOEXEC);
  bool good = file >= 0 && !fstat(file, &about);
  if (good && !S_ISREG(about.st_mode)) {
    errno = EISDIR;
    good = false;
  }
  if (good) {
    *length = (size_t)about.st_size;
    *nbytes = *length + GUARD;
    *mapping = mmap(NULL, *nbytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    good = *mapping != MAP_FAILED;
    if (good && *length &&
        mmap(*mapping, *length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file, 0) == MAP_FAILED) {
      munmap(*mapping, *nbytes);
      good = false;
    }
  }
  if (!good)
    *mapping = NULL;
  int reason = errno;
  if (file >= 0)
    close(file);
  return good ? PG_OK
              : fail(error, PG_IO, "%.300s: expected a file to read, got error %d of the system", path,
                     reason);
}

static pg_status check(const void *data, uint64_t nbytes, pg_error *error) {
  if (!data && nbytes)
    return null_argument("check", error);
  struct pool pool = {0};
  struct bundle bundle;
  struct reader reader = {.pool = &pool, .error = error, .fast = sha256_is_fast()};
  pg_status status = read_file(&reader, (struct bytes){data, nbytes}, &bundle);
  pool_free(&pool);
  return status;
}

/* The engine for the Programs of a target, if it is allowed. */
static pg_status engine_of(const pg_model *model, uint32_t target, const struct engine **engine,
                           pg_error *error) {
  static const struct {
    const char *device;
    const struct engine *engine;
    enum language language;
  } devices[] = {
      {"WASM", &wasm_engine, LANGUAGE_WASM},
      {"CPU", &native_engine, LANGUAGE_OBJECT},
      {"CC", &native_engine, LANGUAGE_LIBRARY},
      {"WEBGPU", NULL, LANGUAGE_WGSL},
  };
  const size_t count = sizeof devices / sizeof *devices;
  const struct bundle *bundle = &model->bundle;
  struct text device = target_device(bundle, target);
  size_t i = 0;
  while (i < count && !text_is(device, devices[i].device))
    i++;
  bool confined = i < count && devices[i].engine != &native_engine;
  if (!confined && !(model->options.flags & PG_TRUST_NATIVE))
    return fail(
        error, PG_TRUST,
        "open: expected code that is confined, for WASM, got code for %.100s, which may do whatever this "
        "process may: pass PG_TRUST_NATIVE if you trust who made the file, or have it exported on WASM",
        device.data);
  if (i == count || !devices[i].engine)
    return fail(error, PG_UNSUPPORTED, "open: expected a file for WASM, CPU or CC, got one for %.100s",
                device.data);
  for (uint32_t j = 0; j < bundle->n_programs; j++)
    for (uint32_t k = 0; bundle->programs[j].target == target && k < bundle->programs[j].n_kernels; k++)
      if (bundle->programs[j].kernels[k].language != devices[i].language)
        return fail(error, PG_UNSUPPORTED,
                    "open: kernel %.100s is in another language than %.100s runs: export it again",
                    bundle->programs[j].kernels[k].name.data, device.data);
  *engine = devices[i].engine;
  return PG_OK;
}

/* The first target that is allowed, and its engine. The error is that of the last one. */
static pg_status choose_engine(pg_model *model, pg_error *error) {
  pg_status status = PG_OK;
  uint32_t count = model->bundle.n_targets;
  for (uint32_t target = 0; target < count; target++) {
    status = engine_of(model, target, &model->engine, target + 1 == count ? error : NULL);
    if (!status)
      return choose_target(&model->pool, &model->bundle, target, error);
  }
  return status;
}

static void close_model(pg_model *model) {
  if (!model)
    return;
  if (model->engine)
    model->engine->close(model);
  if (model->mapping)
    munmap(model->mapping, model->mapping_bytes);
  stop_close(&model->stop);
  pool_free(&model->pool);
  free(model);
}

static pg_status check_options(const pg_options *options, pg_error *error) {
  static const pg_options none = {0};
  bool good = !(options->flags & ~(PG_TRUST_NATIVE | PG_STOPPABLE | PG_TRUST_DIGESTS)) &&
              !memcmp(options->reserved, none.reserved, sizeof none.reserved);
  return good ? PG_OK
              : fail(error, PG_ARGUMENT,
                     "open: expected options of this version, got flags %u or others that are "
                     "not 0",
                     (unsigned)options->flags);
}

/* Open a file in memory, or that of a path. */
static pg_status open_file(const char *path, struct bytes data, const pg_options *options, pg_model **made,
                           pg_error *error) {
  pg_model *model = calloc(1, sizeof *model);
  if (!model)
    return out_of_memory(error);
  atomic_flag_clear(&model->busy);
  if (options)
    model->options = *options;
  pg_status status = stop_open(&model->stop, error);
  if (status) {
    free(model);
    return status;
  }
  status = check_options(&model->options, error);
  if (!status && path) {
    size_t length = 0;
    status = map_file(path, &model->mapping, &model->mapping_bytes, &length, error);
    data = (struct bytes){model->mapping, length};
  }
  struct reader reader = {.pool = &model->pool,
                          .error = error,
                          .fast = sha256_is_fast(),
                          .trusts_values = model->options.flags & PG_TRUST_DIGESTS};
  if (!status)
    status = read_file(&reader, data, &model->bundle);
  if (!status)
    status = choose_engine(model, error);
  if (!status)
    status = model_make(model, error);
  if (!status && model->mapping && model->engine == &wasm_engine) {
    munmap(model->mapping, model->mapping_bytes);
    model->mapping = NULL;
  }
  if (status)
    close_model(model);
  else
    *made = model;
  return status;
}

static pg_status open_path(const char *path, const pg_options *options, pg_model **model, pg_error *error) {
  if (!path || !model)
    return null_argument("open_path", error);
  return open_file(path, (struct bytes){0}, options, model, error);
}

static pg_status open_memory(const void *data, uint64_t nbytes, const pg_options *options, pg_model **model,
                             pg_error *error) {
  if (!model || (!data && nbytes))
    return null_argument("open_memory", error);
  return open_file(NULL, (struct bytes){data, nbytes}, options, model, error);
}

/* --- descriptions */

static const char *device(const pg_model *model) {
  return model->bundle.programs->device.data;
}

static const char *kind(const pg_model *model) {
  return model->bundle.kind.data;
}

static const char *settings(const pg_model *model) {
  return model->bundle.settings.data;
}

static uint32_t file_count(const pg_model *model) {
  return model->bundle.n_files;
}

static pg_status not_found(const char *what, uint32_t index, uint32_t count, pg_error *error) {
  return fail(error, PG_NOT_FOUND, "%s: expected an index below %u, got %u", what, (unsigned)count,
              (unsigned)index);
}

static pg_status file(const pg_model *model, uint32_t index, const char **name, const void **data,
                      uint64_t *nbytes, pg_error *error) {
  if (index >= model->bundle.n_files)
    return not_found("file", index, model->bundle.n_files, error);
  const struct file *f = &model->bundle.files[index];
  *name = f->name.data;
  *data = f->data.data;
  *nbytes = f->data.length;
  return PG_OK;
}

static uint32_t entry_count(const pg_model *model) {
  return model->bundle.n_programs;
}

static const char *entry_name(const pg_model *model, uint32_t entry) {
  return entry < model->bundle.n_programs ? model->bundle.programs[entry].name.data : NULL;
}

static pg_status find_entry(const pg_model *model, const char *name, uint32_t *entry, pg_error *error) {
  if (!name || !entry)
    return null_argument("find_entry", error);
  for (uint32_t i = 0; i < model->bundle.n_programs; i++)
    if (!strcmp(model->bundle.programs[i].name.data, name)) {
      *entry = i;
      return PG_OK;
    }
  return fail(error, PG_NOT_FOUND, "find_entry: the file has no entry %.100s", name);
}

static uint32_t variable_count(const pg_model *model, uint32_t entry) {
  return entry < model->bundle.n_programs ? model->bundle.programs[entry].n_variables : 0;
}

static pg_status variable(const pg_model *model, uint32_t entry, uint32_t index, pg_variable *variable,
                          pg_error *error) {
  if (index >= variable_count(model, entry))
    return not_found("variable", index, variable_count(model, entry), error);
  const struct variable *v = &model->bundle.programs[entry].variables[index];
  *variable = (pg_variable){v->name.data, v->lo, v->hi};
  return PG_OK;
}

static uint32_t tensor_count(const pg_model *model, uint32_t entry, pg_role role) {
  if (role == PG_VALUE)
    return model->bundle.n_values;
  return entry < model->bundle.n_programs && (role == PG_INPUT || role == PG_OUTPUT)
             ? model->entries[entry].count[role]
             : 0;
}

/* The buffer of a tensor, or NULL. */
static const struct buffer *buffer_of(const pg_model *model, uint32_t entry, pg_role role, uint32_t index) {
  if (index >= tensor_count(model, entry, role))
    return NULL;
  if (role == PG_VALUE)
    return model->bundle.values[index].buffer;
  const struct entry *e = &model->entries[entry];
  return &e->program->buffers[e->tensors[role][index]];
}

static pg_status no_tensor(const pg_model *model, uint32_t entry, pg_role role, uint32_t index,
                           pg_error *error) {
  if (role != PG_VALUE && entry >= model->bundle.n_programs)
    return not_found("entry", entry, model->bundle.n_programs, error);
  return not_found("tensor", index, tensor_count(model, entry, role), error);
}

static pg_status tensor(const pg_model *model, uint32_t entry, pg_role role, uint32_t index,
                        pg_tensor *tensor, pg_error *error) {
  const struct buffer *b = buffer_of(model, entry, role, index);
  if (!b)
    return no_tensor(model, entry, role, index, error);
  bool is_state = role == PG_VALUE && model->bundle.values[index].is_state;
  *tensor =
      (pg_tensor){b->name.data, b->dtype, b->rank, b->shape, b->variables, (uint64_t)b->nbytes, is_state};
  return PG_OK;
}

static pg_status find_tensor(const pg_model *model, uint32_t entry, pg_role role, const char *name,
                             uint32_t *index, pg_error *error) {
  if (!name || !index)
    return null_argument("find_tensor", error);
  uint32_t count = tensor_count(model, entry, role);
  for (uint32_t i = 0; i < count; i++)
    if (!strcmp(buffer_of(model, entry, role, i)->name.data, name)) {
      *index = i;
      return PG_OK;
    }
  return fail(error, PG_NOT_FOUND, "find_tensor: entry %u has no %s %.100s", (unsigned)entry,
              role == PG_INPUT    ? "input"
              : role == PG_OUTPUT ? "output"
                                  : "parameter or state",
              name);
}

static pg_status shape(const pg_model *model, uint32_t entry, pg_role role, uint32_t index,
                       const int64_t *variables, int64_t *shape, pg_error *error) {
  const struct buffer *b = buffer_of(model, entry, role, index);
  if (!b)
    return no_tensor(model, entry, role, index, error);
  if (!variables && role != PG_VALUE && variable_count(model, entry))
    return null_argument("shape", error);
  if (role == PG_VALUE)
    memcpy(shape, b->shape, b->rank * sizeof *shape);
  else
    shape_of(b, variables, shape);
  return PG_OK;
}

/* --- memory and runs */

static pg_status enter(pg_model *model, pg_error *error) {
  if (atomic_flag_test_and_set(&model->busy))
    return fail(error, PG_BUSY, "model: another thread is using it");
  return PG_OK;
}

static pg_status leave(pg_model *model, pg_status status) {
  atomic_flag_clear(&model->busy);
  return status;
}

/* Where a tensor is. */
static uint8_t *memory_of(pg_model *model, uint32_t entry, pg_role role, uint32_t index) {
  const struct entry *e = &model->entries[entry];
  return role == PG_VALUE ? model->values[index].data : e->addresses[e->tensors[role][index]];
}

static pg_status half_written(const pg_model *model, pg_role role, uint32_t index, pg_error *error) {
  if (role != PG_VALUE || !model->values[index].damaged)
    return PG_OK;
  return fail(error, PG_HALF_WRITTEN, "%.100s: a trap left it half-written: write or load it first",
              model->bundle.values[index].buffer->name.data);
}

static pg_status write_tensor(pg_model *model, uint32_t entry, pg_role role, uint32_t index, const void *data,
                              uint64_t nbytes, pg_error *error) {
  const struct buffer *b = buffer_of(model, entry, role, index);
  if (!b)
    return no_tensor(model, entry, role, index, error);
  if (role == PG_OUTPUT || (!data && nbytes))
    return fail(error, PG_ARGUMENT, "write: %.100s: expected an input or a value, and its data",
                b->name.data);
  bool flexible = false;
  for (uint32_t i = 0; role == PG_INPUT && i < b->rank; i++)
    flexible |= b->variables[i] >= 0;
  if (flexible ? nbytes > (uint64_t)b->nbytes : nbytes != (uint64_t)b->nbytes)
    return fail(error, PG_SHAPE, "write: %.100s: expected %s%lld bytes of %s, got %llu", b->name.data,
                flexible ? "at most " : "", (long long)b->nbytes, dtype_name(b->dtype),
                (unsigned long long)nbytes);
  pg_status status = enter(model, error);
  if (status)
    return status;
  if (nbytes)
    memcpy(memory_of(model, entry, role, index), data, (size_t)nbytes);
  if (role == PG_INPUT)
    model->entries[entry].written[index] = (int64_t)nbytes;
  else
    model->values[index].damaged = false;
  return leave(model, PG_OK);
}

static pg_status read_tensor(pg_model *model, uint32_t entry, pg_role role, uint32_t index, void *data,
                             uint64_t nbytes, pg_error *error) {
  const struct buffer *b = buffer_of(model, entry, role, index);
  if (!b)
    return no_tensor(model, entry, role, index, error);
  if (!data && nbytes)
    return null_argument("read", error);
  if (nbytes > (uint64_t)b->nbytes)
    return fail(error, PG_SHAPE, "read: %.100s: expected at most %lld bytes, got %llu", b->name.data,
                (long long)b->nbytes, (unsigned long long)nbytes);
  pg_status status = enter(model, error);
  if (status)
    return status;
  if (!(status = half_written(model, role, index, error)) && nbytes)
    memcpy(data, memory_of(model, entry, role, index), (size_t)nbytes);
  return leave(model, status);
}

static pg_status view(pg_model *model, uint32_t entry, pg_role role, uint32_t index, void **data,
                      pg_error *error) {
  if (!buffer_of(model, entry, role, index))
    return no_tensor(model, entry, role, index, error);
  if (!data)
    return null_argument("view", error);
  pg_status status = enter(model, error);
  if (status)
    return status;
  if (!(status = half_written(model, role, index, error))) {
    *data = memory_of(model, entry, role, index);
    if (role == PG_INPUT)
      model->entries[entry].written[index] = INT64_MAX;
  }
  return leave(model, status);
}

static pg_status run(pg_model *model, uint32_t entry, const int64_t *variables, double timeout,
                     pg_error *error) {
  if (entry >= model->bundle.n_programs)
    return not_found("entry", entry, model->bundle.n_programs, error);
  if (!variables && variable_count(model, entry))
    return null_argument("run", error);
  if (!(timeout >= 0 && timeout < 1e9) || (timeout > 0 && !(model->options.flags & PG_STOPPABLE)))
    return fail(error, PG_ARGUMENT,
                "run: expected a timeout of 0, or up to 1e9 seconds of a model that was opened with "
                "PG_STOPPABLE, got %g",
                timeout);
  pg_status status = enter(model, error);
  return status ? status : leave(model, model_run(model, &model->entries[entry], variables, timeout, error));
}

static pg_status interrupt(pg_model *model) {
  if (!(model->options.flags & PG_STOPPABLE))
    return PG_ARGUMENT;
  stop_request(model, PG_INTERRUPTED);
  return PG_OK;
}

/* --- values */

static pg_status take_values(pg_model *model, struct bytes data, pg_error *error) {
  struct reader reader = {.error = error};
  struct bytes *found = calloc(model->bundle.n_values + (size_t)1, sizeof *found);
  pg_status status =
      found ? read_values(&reader, data, &model->bundle, true, true, found) : out_of_memory(error);
  if (!status && !(status = enter(model, error))) {
    for (uint32_t i = 0; i < model->bundle.n_values; i++) {
      if (found[i].length)
        memcpy(model->values[i].data, found[i].data, (size_t)found[i].length);
      model->values[i].damaged = false;
    }
    leave(model, PG_OK);
  }
  free(found);
  return status;
}

static pg_status load_values_memory(pg_model *model, const void *data, uint64_t nbytes, pg_error *error) {
  if (!data || !nbytes)
    return null_argument("load_values_memory", error);
  return take_values(model, (struct bytes){data, nbytes}, error);
}

static pg_status load_values(pg_model *model, const char *path, pg_error *error) {
  if (!path)
    return null_argument("load_values", error);
  void *mapping;
  size_t nbytes, length;
  pg_status status = map_file(path, &mapping, &nbytes, &length, error);
  if (status)
    return status;
  status = length ? take_values(model, (struct bytes){mapping, length}, error)
                  : fail(error, PG_DAMAGED, "values: expected a safetensors file, got an empty one");
  munmap(mapping, nbytes);
  return status;
}

static uint64_t values_bytes(const pg_model *model) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < model->bundle.n_values; i++)
    sum += (uint64_t)model->bundle.values[i].buffer->nbytes;
  return sum;
}

static uint64_t values_size(const pg_model *model) {
  size_t length = 0;
  free(values_header(&model->bundle, &length));
  return length + values_bytes(model);
}

/* Give the pieces of the file of all values to `put`, while no other thread uses the model. */
static pg_status each_piece(pg_model *model, bool (*put)(void *to, const void *data, size_t nbytes), void *to,
                            pg_error *error) {
  size_t length;
  char *header = values_header(&model->bundle, &length);
  pg_status status = header ? enter(model, error) : out_of_memory(error);
  if (!status) {
    for (uint32_t i = 0; !status && i < model->bundle.n_values; i++)
      status = half_written(model, PG_VALUE, i, error);
    bool good = status || put(to, header, length);
    for (uint32_t i = 0; !status && good && i < model->bundle.n_values; i++)
      good = put(to, model->values[i].data, (size_t)model->bundle.values[i].buffer->nbytes);
    if (!good)
      status = fail(error, PG_IO, "save: the file cannot be written: error %d of the system", errno);
    leave(model, status);
  }
  free(header);
  return status;
}

static bool put_in_file(void *to, const void *data, size_t nbytes) {
  return !nbytes || fwrite(data, 1, nbytes, to) == nbytes;
}

static bool put_in_memory(void *to, const void *data, size_t nbytes) {
  uint8_t **at = to;
  if (nbytes)
    memcpy(*at, data, nbytes);
  *at += nbytes;
  return true;
}

static pg_status save_values_memory(pg_model *model, void *data, uint64_t nbytes, pg_error *error) {
  uint64_t size = values_size(model);
  if (!data || nbytes != size)
    return fail(error, PG_ARGUMENT, "save_values_memory: expected room for %llu bytes, got %llu",
                (unsigned long long)size, (unsigned long long)nbytes);
  return each_piece(model, put_in_memory, &data, error);
}

/* A new file beside a path. */
static int new_file(const char *path, char *name, size_t size) {
  int number = -1;
  for (unsigned try = 0; number < 0 && try < 100; try++) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, size, "%s.%lx.%lx", path, (unsigned long)getpid(), (unsigned long)now.tv_nsec);
    number = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (number < 0 && errno != EEXIST)
      break;
  }
  return number;
}

static pg_status save_values(pg_model *model, const char *path, pg_error *error) {
  if (!path)
    return null_argument("save_values", error);
  size_t size = strlen(path) + 40;
  char *name = malloc(size);
  if (!name)
    return out_of_memory(error);
  int number = new_file(path, name, size);
  FILE *out = number < 0 ? NULL : fdopen(number, "wb");
  pg_status status = out ? each_piece(model, put_in_file, out, error) : PG_OK;
  bool good = out && !fclose(out) && (status || !rename(name, path));
  if (!good && !status)
    status = fail(error, PG_IO, "%.300s: it cannot be written: error %d of the system", path, errno);
  if (status && number >= 0)
    unlink(name);
  free(name);
  return status;
}

const pg_api *pg_get_api(uint32_t version) {
  static const pg_api api = {
      .version = PG_API_VERSION,
      .library_version = library_version,
      .status_name = status_name,
      .dtype_name = dtype_name,
      .dtype_size = dtype_size,
      .check = check,
      .open_path = open_path,
      .open_memory = open_memory,
      .close = close_model,
      .device = device,
      .kind = kind,
      .settings = settings,
      .file_count = file_count,
      .file = file,
      .entry_count = entry_count,
      .entry_name = entry_name,
      .find_entry = find_entry,
      .variable_count = variable_count,
      .variable = variable,
      .tensor_count = tensor_count,
      .tensor = tensor,
      .find_tensor = find_tensor,
      .write = write_tensor,
      .read = read_tensor,
      .view = view,
      .shape = shape,
      .run = run,
      .interrupt = interrupt,
      .load_values = load_values,
      .load_values_memory = load_values_memory,
      .save_values = save_values,
      .values_size = values_size,
      .save_values_memory = save_values_memory,
  };
  return version >= 1 && version <= PG_API_VERSION ? &api : NULL;
}
