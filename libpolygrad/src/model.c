#include "model.h"

#include <stdlib.h>
#include <string.h>

int64_t shape_of(const struct buffer *buffer, const int64_t *variables, int64_t *shape) {
  int64_t product = 1;
  for (uint32_t i = 0; i < buffer->rank; i++) {
    int64_t size = buffer->variables[i] >= 0 ? variables[buffer->variables[i]] : buffer->shape[i];
    product = size < 0 || product < 0 ? -1 : product * size;
    if (shape)
      shape[i] = size;
  }
  return product;
}

static bool is_value(const struct buffer *b) {
  return b->role == ROLE_PARAM || b->role == ROLE_STATE;
}

static uint32_t value_of(const pg_model *model, const struct buffer *b) {
  return keys_find(model->bundle.value_keys, model->bundle.n_values, b->name, 0)->index;
}

/* The lists of an entry: inputs, outputs, the values that it writes. */
static bool list_tensors(pg_model *model, struct entry *entry) {
  const struct program *program = entry->program;
  bool *seen = pool_take(&model->pool, model->bundle.n_values, sizeof *seen);
  entry->addresses = pool_take(&model->pool, (size_t)program->n_buffers + 1, sizeof *entry->addresses);
  entry->writes = pool_take(&model->pool, model->bundle.n_values, sizeof *entry->writes);
  entry->written = pool_take(&model->pool, program->n_buffers, sizeof *entry->written);
  for (unsigned role = 0; role < 2; role++)
    entry->tensors[role] = pool_take(&model->pool, program->n_buffers, sizeof **entry->tensors);
  if (model->pool.failed)
    return false;
  for (uint32_t i = 0; i < program->n_buffers; i++) {
    enum role role = program->buffers[i].role;
    if (role == ROLE_INPUT)
      entry->written[entry->count[role]] = -1;
    if (role == ROLE_INPUT || role == ROLE_OUTPUT)
      entry->tensors[role][entry->count[role]++] = i;
  }
  for (uint32_t i = 0; i < program->n_launches; i++) {
    const struct launch *launch = &program->launches[i];
    const struct kernel *kernel = &program->kernels[launch->kernel];
    for (uint32_t j = 0; j < kernel->n_writes; j++) {
      const struct buffer *b = &program->buffers[launch->bindings[kernel->writes[j]].buffer];
      if (!is_value(b) || seen[value_of(model, b)])
        continue;
      seen[value_of(model, b)] = true;
      entry->writes[entry->n_writes++] = value_of(model, b);
    }
  }
  return true;
}

static uint8_t *take(uint8_t *base, uint64_t *end, uint64_t nbytes) {
  uint8_t *taken = base ? base + *end : NULL;
  *end += (nbytes + ALIGN - 1) / ALIGN * ALIGN;
  return taken;
}

/* Give everything its place in memory that begins at `base`, or only count its bytes. Programs share the
 * arena. */
static uint64_t place(pg_model *model, uint8_t *base) {
  struct bundle *bundle = &model->bundle;
  uint64_t end = model->engine->first, arena = 0;
  for (uint32_t i = 0; i < bundle->n_programs; i++)
    if ((uint64_t)bundle->programs[i].arena > arena)
      arena = (uint64_t)bundle->programs[i].arena;
  uint8_t *scratch = take(base, &end, arena);
  for (uint32_t i = 0; i < bundle->n_values; i++)
    if (!model->values[i].mapped)
      model->values[i].data = take(base, &end, (uint64_t)bundle->values[i].buffer->nbytes);
  for (uint32_t i = 0; i < bundle->n_programs; i++) {
    struct entry *entry = &model->entries[i];
    const struct program *program = entry->program;
    for (uint32_t j = 0; j < program->n_buffers; j++) {
      const struct buffer *b = &program->buffers[j];
      entry->addresses[j] = b->role == ROLE_SCRATCH ? (scratch ? scratch + b->offset : NULL)
                            : is_value(b)           ? model->values[value_of(model, b)].data
                                                    : take(base, &end, (uint64_t)b->nbytes);
    }
    entry->addresses[program->n_buffers] = scratch;
    if (program->driver.length)
      entry->table = take(base, &end, 4 * ((uint64_t)program->n_buffers + 1 + program->n_variables));
  }
  return end + ALIGN;
}

/* Native code uses weights where the file is mapped, if they are aligned. */
static void use_mapped_values(pg_model *model) {
  for (uint32_t i = 0; model->mapping && model->engine == &native_engine && i < model->bundle.n_values; i++) {
    const struct shared *shared = &model->bundle.values[i];
    uint32_t size = dtype_size(shared->buffer->dtype);
    struct value *value = &model->values[i];
    value->mapped = shared->data.data && shared->data.length && (uintptr_t)shared->data.data % size == 0;
    if (value->mapped)
      value->data = (uint8_t *)model->mapping + (shared->data.data - (const uint8_t *)model->mapping);
  }
}

/* Copy what the model keeps of the file. */
static bool keep_parts(pg_model *model) {
  struct bundle *bundle = &model->bundle;
  for (uint32_t i = 0; i < bundle->n_programs + bundle->n_files; i++) {
    struct program *program = i < bundle->n_programs ? &bundle->programs[i] : NULL;
    for (uint32_t j = 0; j < (program ? program->n_kernels + 1 : 1); j++) {
      struct bytes *part = !program                 ? &bundle->files[i - bundle->n_programs].data
                           : j < program->n_kernels ? &program->kernels[j].code
                                                    : &program->driver;
      part->data = pool_copy(&model->pool, part->data, part->length);
    }
  }
  return !model->pool.failed;
}

pg_status model_make(pg_model *model, pg_error *error) {
  struct bundle *bundle = &model->bundle;
  model->values = pool_take(&model->pool, bundle->n_values, sizeof *model->values);
  model->entries = pool_take(&model->pool, bundle->n_programs, sizeof *model->entries);
  if (model->pool.failed || !keep_parts(model))
    return out_of_memory(error);
  for (uint32_t i = 0; i < bundle->n_programs; i++) {
    model->entries[i].program = &bundle->programs[i];
    if (!list_tensors(model, &model->entries[i]))
      return out_of_memory(error);
  }
  use_mapped_values(model);
  uint64_t nbytes = place(model, NULL), most = model->options.max_bytes;
  uint64_t total = nbytes + (model->mapping ? model->mapping_bytes : 0);
  if (nbytes > model->engine->most || (most && total > most))
    return fail(error, PG_MEMORY, "open: the model takes %llu bytes, %llu are allowed",
                (unsigned long long)total,
                (unsigned long long)(most && most < model->engine->most ? most : model->engine->most));
  pg_status status = model->engine->open(model, nbytes, error);
  if (status)
    return status;
  place(model, model->base);
  for (uint32_t i = 0; i < bundle->n_values; i++)
    if (!model->values[i].mapped && bundle->values[i].data.length)
      memcpy(model->values[i].data, bundle->values[i].data.data, bundle->values[i].data.length);
  return PG_OK;
}

/* --- runs */

static pg_status check_inputs(const struct entry *entry, const int64_t *variables, pg_error *error) {
  const struct program *program = entry->program;
  for (uint32_t i = 0; i < program->n_variables; i++) {
    const struct variable *v = &program->variables[i];
    if (variables[i] < v->lo || variables[i] > v->hi)
      return fail(error, PG_ARGUMENT, "run: expected Variable %.100s from %lld to %lld, got %lld",
                  v->name.data, (long long)v->lo, (long long)v->hi, (long long)variables[i]);
  }
  for (uint32_t i = 0; i < entry->count[PG_INPUT]; i++) {
    const struct buffer *b = &program->buffers[entry->tensors[PG_INPUT][i]];
    int64_t expected = shape_of(b, variables, NULL) * (int64_t)dtype_size(b->dtype);
    if (expected < 0 || (entry->written[i] != expected && entry->written[i] != INT64_MAX))
      return fail(error, PG_SHAPE, "run: input %.100s: expected %lld bytes, got %lld: write it first",
                  b->name.data, (long long)expected,
                  (long long)(entry->written[i] < 0 ? 0 : entry->written[i]));
  }
  return PG_OK;
}

/* Copy what a run writes of values to the copies, or back. */
static void copy_values(pg_model *model, const struct entry *entry, bool back) {
  uint8_t *saved = model->saved;
  for (uint32_t i = 0; saved && i < entry->n_writes; i++) {
    uint8_t *data = model->values[entry->writes[i]].data;
    size_t nbytes = (size_t)model->bundle.values[entry->writes[i]].buffer->nbytes;
    memcpy(back ? data : saved, back ? saved : data, nbytes);
    saved += nbytes;
  }
}

static pg_status save_values(pg_model *model, const struct entry *entry, pg_error *error) {
  size_t nbytes = 1;
  for (uint32_t i = 0; i < entry->n_writes; i++)
    nbytes += (size_t)model->bundle.values[entry->writes[i]].buffer->nbytes;
  if (!(model->saved = malloc(nbytes)))
    return out_of_memory(error);
  copy_values(model, entry, false);
  return PG_OK;
}

pg_status model_run(pg_model *model, struct entry *entry, const int64_t *variables, double timeout,
                    pg_error *error) {
  bool stoppable = model->options.flags & PG_STOPPABLE;
  pthread_t timer;
  pg_status status = check_inputs(entry, variables, error);
  for (uint32_t i = 0; !status && i < model->bundle.n_values; i++)
    if (model->values[i].damaged)
      status = fail(error, PG_HALF_WRITTEN, "run: a trap left %.100s half-written: write or load it first",
                    model->bundle.values[i].buffer->name.data);
  if (!status && stoppable)
    status = save_values(model, entry, error);
  if (!status && !(status = stop_begin(model, timeout, &timer, error))) {
    if (!entry->prepared)
      status = model->engine->prepare(model, entry, error);
    bool began = !status;
    if (began)
      status = model->engine->run(model, entry, variables, error);
    pg_status reason = stop_end(model, timeout, timer);
    if (reason)
      status = fail(error, reason,
                    reason == PG_TIMEOUT ? "run: it took longer than %g seconds and was ended"
                                         : "run: it was interrupted",
                    timeout);
    if (status && began)
      copy_values(model, entry, true);
    for (uint32_t i = 0; status && began && !stoppable && i < entry->n_writes; i++)
      model->values[entry->writes[i]].damaged = true;
  }
  free(model->saved);
  model->saved = NULL;
  return status;
}
