#include "program.h"

#include <stdlib.h>
#include <string.h>

#include "file_limits.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *const role_names[] = {"input", "output", "param", "state", "scratch"};
static const char *const language_names[] = {"wasm", "object", "library", "linear", "wgsl", "cuda", "msl"};
static const char *const thread_variables[] = {"thread", "threads", "part", "parts"}; /* OF_THREAD ... */
static const struct {
  const char *name;
  uint32_t size;
} dtypes[] = {
    {"bool", 1},    {"int8", 1},    {"uint8", 1},    {"int16", 2},   {"uint16", 2},
    {"int32", 4},   {"uint32", 4},  {"int64", 8},    {"uint64", 8},  {"fp8e4m3", 1},
    {"fp8e5m2", 1}, {"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8},
};

const char *dtype_name(pg_dtype dtype) {
  return dtype >= 0 && (size_t)dtype < COUNT(dtypes) ? dtypes[dtype].name : "unknown";
}

uint32_t dtype_size(pg_dtype dtype) {
  return dtype >= 0 && (size_t)dtype < COUNT(dtypes) ? dtypes[dtype].size : 0;
}

/* What is read: the JSON of a header, and the Program that it becomes. */
struct parse {
  const struct reader *r;
  const struct json *json;
  struct program *program;
  struct key *variables; /* sorted by name */
};

static pg_status damaged(const struct parse *p, const char *what, uint32_t number) {
  if (p->r->pool->failed)
    return out_of_memory(p->r->error);
  return fail(p->r->error, PG_DAMAGED, "program: %s %u: it contradicts itself or exceeds a limit", what,
              (unsigned)number);
}

/* The index of a text in a table, or -1. */
static int index_of(const struct json *json, uint32_t node, const char *const *names, size_t count) {
  for (size_t i = 0; json_kind(json, node) == JSON_TEXT && i < count; i++)
    if (text_is(json_text(json, node), names[i]))
      return (int)i;
  return -1;
}

/* Copy a text to the pool; false: there is no room. */
static bool keep(const struct reader *r, struct text *text) {
  text->data = pool_copy(r->pool, text->data, text->length);
  return text->data;
}

/* Memory for the elements of a list; false: it is none, or there is no room. */
static bool take_list(const struct parse *p, uint32_t node, size_t size, uint32_t *count, void *array) {
  if (json_kind(p->json, node) != JSON_LIST)
    return false;
  *count = json_count(p->json, node);
  void *made = pool_take(p->r->pool, *count, size);
  memcpy(array, &made, sizeof made);
  return made;
}

static pg_status read_variables(struct parse *p, uint32_t node) {
  static const char *const fields[] = {"hi", "lo", "name"};
  struct program *program = p->program;
  if (!take_list(p, node, sizeof *program->variables, &program->n_variables, &program->variables) ||
      !(p->variables = pool_take(p->r->pool, program->n_variables, sizeof *p->variables)))
    return damaged(p, "list of variables", 0);
  uint32_t n = node + 1, found[3];
  for (uint32_t i = 0; i < program->n_variables; i++, n = json_next(p->json, n)) {
    struct variable *v = &program->variables[i];
    if (!json_fields(p->json, n, 3, fields, found) || !json_take_text(p->json, found[2], &v->name) ||
        !json_integer(p->json, found[0], -MAX_INTEGER, MAX_INTEGER, &v->hi) ||
        !json_integer(p->json, found[1], -MAX_INTEGER, v->hi, &v->lo) ||
        index_of(p->json, found[2], thread_variables, COUNT(thread_variables)) >= 0)
      return damaged(p, "variable", i);
    if (!keep(p->r, &v->name))
      return out_of_memory(p->r->error);
    p->variables[i] = (struct key){.name = v->name, .index = i};
  }
  keys_sort(p->variables, program->n_variables);
  return keys_twice(p->variables, program->n_variables) ? damaged(p, "name of a variable", 0) : PG_OK;
}

/* The Variable that a text names, or -1. */
static int32_t variable_of(const struct parse *p, uint32_t node) {
  struct text name;
  if (!json_take_text(p->json, node, &name))
    return -1;
  const struct key *key = keys_find(p->variables, p->program->n_variables, name, 0);
  return key ? (int32_t)key->index : -1;
}

/* A shape, which has to have as many elements as its buffer. */
static bool read_shape(const struct parse *p, uint32_t node, struct buffer *b) {
  if (json_kind(p->json, node) == JSON_NULL)
    return true;
  if (!take_list(p, node, sizeof *b->shape, &b->rank, &b->shape) || b->rank > MAX_RANK ||
      !(b->variables = pool_take(p->r->pool, b->rank, sizeof *b->variables)))
    return false;
  b->has_shape = true;
  uint64_t product = 1;
  uint32_t n = node + 1;
  for (uint32_t i = 0; i < b->rank; i++, n = json_next(p->json, n)) {
    b->variables[i] = variable_of(p, n);
    if (b->variables[i] >= 0)
      b->shape[i] = p->program->variables[b->variables[i]].hi;
    else if (!json_integer(p->json, n, 0, MAX_INTEGER, &b->shape[i]))
      return false;
    if (b->shape[i] < 0 || !multiply(product, (uint64_t)b->shape[i], MAX_BYTES, &product))
      return false;
  }
  return product == (uint64_t)b->size;
}

static bool read_buffer(const struct parse *p, uint32_t node, struct buffer *b) {
  static const char *const fields[] = {"dtype", "name", "offset", "role", "shape", "size"};
  uint32_t found[6];
  uint64_t nbytes;
  if (!json_fields(p->json, node, 6, fields, found) || !json_take_text(p->json, found[1], &b->name) ||
      json_kind(p->json, found[0]) != JSON_TEXT || !json_integer(p->json, found[5], 0, MAX_INTEGER, &b->size))
    return false;
  int role = index_of(p->json, found[3], role_names, COUNT(role_names));
  for (b->dtype = 0; (size_t)b->dtype < COUNT(dtypes); b->dtype++)
    if (text_is(json_text(p->json, found[0]), dtypes[b->dtype].name))
      break;
  if (role < 0 || (size_t)b->dtype == COUNT(dtypes) ||
      !multiply((uint64_t)b->size, dtypes[b->dtype].size, MAX_BYTES, &nbytes))
    return false;
  b->role = (enum role)role;
  b->nbytes = (int64_t)nbytes;
  bool scratch = b->role == ROLE_SCRATCH;
  if (!json_integer(p->json, found[2], scratch ? 0 : -1, scratch ? p->program->arena - b->nbytes : -1,
                    &b->offset))
    return false;
  return keep(p->r, &b->name) && read_shape(p, found[4], b);
}

static pg_status read_buffers(struct parse *p, uint32_t node) {
  struct program *program = p->program;
  struct key *names;
  uint32_t n = node + 1, count = 0;
  if (!take_list(p, node, sizeof *program->buffers, &program->n_buffers, &program->buffers) ||
      !(names = pool_take(p->r->pool, program->n_buffers, sizeof *names)))
    return damaged(p, "list of buffers", 0);
  for (uint32_t i = 0; i < program->n_buffers; i++, n = json_next(p->json, n)) {
    struct buffer *b = &program->buffers[i];
    if (!read_buffer(p, n, b))
      return damaged(p, "buffer", i);
    uint32_t group = b->role == ROLE_STATE ? ROLE_PARAM : b->role;
    if (b->name.length)
      names[count++] = (struct key){.name = b->name, .group = group, .index = i};
  }
  keys_sort(names, count);
  const struct key *twice = keys_twice(names, count);
  return twice ? damaged(p, "name of buffer", twice->index) : PG_OK;
}

static bool read_workgroup(const struct parse *p, uint32_t node, bool on_grid) {
  if (!on_grid)
    return json_kind(p->json, node) == JSON_NULL;
  int64_t size, product = 1;
  uint32_t n = node + 1;
  if (json_kind(p->json, node) != JSON_LIST || json_count(p->json, node) != 3)
    return false;
  for (unsigned i = 0; i < 3; i++, n = json_next(p->json, n)) {
    if (!json_integer(p->json, n, 0, MAX_INVOCATIONS, &size))
      return false;
    product *= size;
  }
  return product > 0 && product <= MAX_INVOCATIONS;
}

static bool on_grid(enum language language) {
  return language >= LANGUAGE_WGSL;
}

static bool read_kernel(const struct parse *p, const uint32_t *found, struct kernel *k) {
  int64_t number, subgroup;
  int language = index_of(p->json, found[1], language_names, COUNT(language_names));
  if (language < 0 || !json_take_text(p->json, found[3], &k->name) ||
      !json_bool(p->json, found[4], &k->parallel) ||
      !take_list(p, found[6], sizeof *k->variables, &k->n_variables, &k->variables) ||
      !take_list(p, found[8], sizeof *k->writes, &k->n_writes, &k->writes))
    return false;
  k->language = (enum language)language;
  bool parallel = false;
  uint32_t n = found[6] + 1;
  for (uint32_t i = 0; i < k->n_variables; i++, n = json_next(p->json, n)) {
    int of_thread = index_of(p->json, n, thread_variables, COUNT(thread_variables));
    k->variables[i] = of_thread < 0 ? variable_of(p, n) : OF_THREAD + of_thread;
    if (of_thread < 0 && k->variables[i] < 0)
      return false;
    parallel |= of_thread >= 0;
  }
  if (parallel != k->parallel ||
      !json_integer(p->json, found[2], 0, MAX_ARGUMENTS - (int64_t)k->n_variables, &number))
    return false;
  k->pointers = (uint32_t)number;
  n = found[8] + 1;
  for (uint32_t i = 0; i < k->n_writes; i++, n = json_next(p->json, n)) {
    if (!json_integer(p->json, n, 0, (int64_t)k->pointers - 1, &number))
      return false;
    k->writes[i] = (uint32_t)number;
  }
  return keep(p->r, &k->name) && json_integer(p->json, found[5], 0, MAX_SUBGROUP, &subgroup) &&
         read_workgroup(p, found[7], on_grid(k->language));
}

/* Whether this is a size of a grid, with up to `depth` operations in each other (runtime/grid.py). */
static bool is_size(const struct parse *p, uint32_t node, uint32_t depth) {
  static const char *const binary[] = {"ADD", "SUB", "MUL", "IDIV", "MOD", "MAX", "SHL", "SHR", "AND"};
  static const char *const unary[] = {"NEG"};
  int64_t value;
  if (json_kind(p->json, node) == JSON_TEXT)
    return variable_of(p, node) >= 0;
  if (json_kind(p->json, node) != JSON_LIST)
    return json_integer(p->json, node, -MAX_INTEGER, MAX_INTEGER, &value);
  uint32_t count = json_count(p->json, node), n = node + 1;
  int op = count == 2   ? index_of(p->json, n, unary, COUNT(unary))
           : count == 3 ? index_of(p->json, n, binary, COUNT(binary))
                        : -1;
  if (!depth || op < 0)
    return false;
  for (uint32_t i = 1; i < count; i++)
    if (!is_size(p, n = json_next(p->json, n), depth - 1))
      return false;
  return true;
}

static bool is_grid(const struct parse *p, uint32_t node) {
  if (json_kind(p->json, node) != JSON_LIST || json_count(p->json, node) != 3)
    return false;
  uint32_t n = node + 1;
  for (unsigned i = 0; i < 3; i++, n = json_next(p->json, n)) {
    int64_t number;
    bool plain = json_kind(p->json, n) == JSON_INTEGER;
    if (plain ? !json_integer(p->json, n, 1, MAX_GRID, &number) : !is_size(p, n, MAX_DEPTH - 4))
      return false;
  }
  return true;
}

static bool read_launch(const struct parse *p, uint32_t node, struct launch *launch) {
  static const char *const fields[] = {"barrier", "bindings", "grid", "kernel"};
  static const char *const binding_fields[] = {"buffer", "offset"};
  const struct program *program = p->program;
  uint32_t found[4], places[2], count;
  int64_t number;
  if (!json_fields(p->json, node, 4, fields, found) || !json_bool(p->json, found[0], &launch->barrier) ||
      !json_integer(p->json, found[3], 0, (int64_t)program->n_kernels - 1, &number))
    return false;
  launch->kernel = (uint32_t)number;
  const struct kernel *k = &program->kernels[number];
  if (!take_list(p, found[1], sizeof *launch->bindings, &count, &launch->bindings) || count != k->pointers)
    return false;
  uint32_t n = found[1] + 1;
  for (uint32_t i = 0; i < count; i++, n = json_next(p->json, n)) {
    struct binding *b = &launch->bindings[i];
    if (!json_fields(p->json, n, 2, binding_fields, places) ||
        !json_integer(p->json, places[0], 0, (int64_t)program->n_buffers - 1, &number) ||
        !json_integer(p->json, places[1], 0, program->buffers[number].nbytes, &b->offset))
      return false;
    b->buffer = (uint32_t)number;
  }
  return on_grid(k->language) ? is_grid(p, found[2]) : json_kind(p->json, found[2]) == JSON_NULL;
}

static const char *const kernel_fields[] = {
    "code", "language", "n_buffers", "name", "parallel", "subgroup", "variables", "workgroup", "writes",
};

/* The parts of a file: the code of each kernel, the driver, the values. */
static pg_status read_codes(struct parse *p, uint32_t kernels, uint32_t driver, uint32_t last,
                            struct bytes rest, uint32_t (*fields)[9], struct bytes *values) {
  struct program *program = p->program;
  uint32_t n = kernels + 1, count = program->n_kernels;
  struct part *parts = pool_take(p->r->pool, (size_t)count + 2, sizeof *parts);
  if (!parts)
    return out_of_memory(p->r->error);
  for (uint32_t i = 0; i < count; i++, n = json_next(p->json, n)) {
    if (!json_fields(p->json, n, 9, kernel_fields, fields[i]))
      return damaged(p, "kernel", i);
    parts[i] = (struct part){.what = "the code of a kernel", .node = fields[i][0]};
  }
  parts[count] = (struct part){.what = "the driver", .node = driver};
  parts[count + 1] = (struct part){.what = "the values", .node = last, .unchecked = p->r->trusts_values};
  pg_status status = read_parts(p->r, p->json, rest, parts, (size_t)count + 2);
  for (uint32_t i = 0; i < count; i++)
    program->kernels[i].code = parts[i].bytes;
  program->driver = parts[count].bytes;
  *values = parts[count + 1].bytes;
  return status;
}

static pg_status parse_program(struct parse *p, struct bytes rest, struct bytes *values) {
  static const char *const fields[] = {
      "arena",         "buffers", "device",  "driver",    "kernels", "launches",
      "shared_memory", "target",  "threads", "variables", "values",
  };
  struct program *program = p->program;
  uint32_t found[11], n, (*kernels)[9];
  struct text target;
  if (!json_fields(p->json, 0, 11, fields, found) ||
      !take_list(p, found[4], sizeof *program->kernels, &program->n_kernels, &program->kernels) ||
      !(kernels = pool_take(p->r->pool, program->n_kernels, sizeof *kernels)))
    return damaged(p, "header", 0);
  pg_status status = read_codes(p, found[4], found[3], found[10], rest, kernels, values);
  if (status)
    return status;
  if (!json_take_text(p->json, found[2], &program->device) || !json_take_text(p->json, found[7], &target) ||
      !json_integer(p->json, found[0], 0, MAX_BYTES, &program->arena) ||
      !json_integer(p->json, found[8], 1, MAX_THREADS, &program->threads) ||
      !json_bool(p->json, found[6], &program->shared_memory))
    return damaged(p, "header", 0);
  if (!keep(p->r, &program->device))
    return out_of_memory(p->r->error);
  if ((status = read_variables(p, found[9])) || (status = read_buffers(p, found[1])))
    return status;
  for (uint32_t i = 0; i < program->n_kernels; i++) {
    if (!read_kernel(p, kernels[i], &program->kernels[i]))
      return damaged(p, "kernel", i);
    program->parallel |= program->kernels[i].parallel;
  }
  if (program->threads > 1 && !program->parallel)
    return damaged(p, "number of threads", 0);
  if (!take_list(p, found[5], sizeof *program->launches, &program->n_launches, &program->launches))
    return damaged(p, "list of launches", 0);
  n = found[5] + 1;
  for (uint32_t i = 0; i < program->n_launches; i++, n = json_next(p->json, n))
    if (!read_launch(p, n, &program->launches[i]))
      return damaged(p, "launch", i);
  return PG_OK;
}

pg_status read_program(const struct reader *r, struct bytes data, struct program *program,
                       struct bytes *values) {
  static const struct format format = {"program", "PGRD", PROGRAM_VERSION, PROGRAM_VERSION};
  struct json json;
  struct bytes rest;
  uint32_t version = 0;
  pg_status status = read_header(r, data, &format, &version, &json, &rest);
  if (!status)
    status = parse_program(&(struct parse){.r = r, .json = &json, .program = program}, rest, values);
  json_free(&json);
  return status;
}
