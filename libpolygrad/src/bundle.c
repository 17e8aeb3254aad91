#include <string.h>

#include "file_limits.h"
#include "program.h"

static pg_status damaged(const struct reader *r, const char *what) {
  return r->pool->failed ? out_of_memory(r->error) : fail(r->error, PG_DAMAGED, "file: %s", what);
}

/* Whether buffers of one name of two Programs are the same. */
static bool same_kind(const struct shared *shared, const struct program *program, const struct buffer *b) {
  const struct buffer *a = shared->buffer;
  if (a->dtype != b->dtype || a->size != b->size || a->rank != b->rank)
    return false;
  for (uint32_t i = 0; i < a->rank; i++) {
    bool variable = a->variables[i] >= 0;
    if (variable != (b->variables[i] >= 0) || (!variable && a->shape[i] != b->shape[i]))
      return false;
    if (variable && !text_equal(shared->program->variables[a->variables[i]].name,
                                program->variables[b->variables[i]].name))
      return false;
  }
  return true;
}

/* All parameters and states, in the order of their first Programs. */
static pg_status collect_values(const struct reader *r, struct bundle *bundle) {
  size_t most = 0, count = 0;
  for (uint32_t i = 0; i < bundle->n_programs; i++)
    most += bundle->programs[i].n_buffers;
  struct key *keys = pool_take(r->pool, most, sizeof *keys);
  bundle->values = pool_take(r->pool, most, sizeof *bundle->values);
  if (!keys || !bundle->values)
    return out_of_memory(r->error);
  bundle->value_keys = keys;
  for (uint32_t i = 0; i < bundle->n_programs; i++) {
    const struct program *program = &bundle->programs[i];
    size_t before = count; /* a Program has a name once */
    for (uint32_t j = 0; j < program->n_buffers; j++) {
      const struct buffer *b = &program->buffers[j];
      if (b->role == ROLE_SCRATCH)
        continue;
      if (!b->name.length || !b->has_shape)
        return damaged(
            r, "expected every input, output, parameter and state to have a name and a shape, got none: "
               "export the step with save()");
      if (b->role != ROLE_PARAM && b->role != ROLE_STATE)
        continue;
      const struct key *known = keys_find(keys, before, b->name, 0);
      struct shared *shared = &bundle->values[known ? known->index : count];
      if (!known) {
        *shared = (struct shared){.buffer = b, .program = program};
        keys[count] = (struct key){.name = b->name, .index = (uint32_t)count};
        count++;
      } else if (!same_kind(shared, program, b)) {
        return damaged(r, "Programs disagree on a parameter or state that they share");
      }
      shared->is_state |= b->role == ROLE_STATE;
      shared->targets |= UINT64_C(1) << program->target;
    }
    keys_sort(keys, count);
  }
  bundle->n_values = (uint32_t)count;
  return PG_OK;
}

/* The values, and that of each parameter and state in them. */
static pg_status find_values(const struct reader *r, struct bytes data, struct bytes values,
                             struct bundle *bundle) {
  struct bytes *found = pool_take(r->pool, bundle->n_values, sizeof *found);
  if (!found)
    return out_of_memory(r->error);
  pg_status status = read_values(r, values, bundle, false, false, found);
  for (uint32_t i = 0; !status && i < bundle->n_values; i++)
    bundle->values[i].data = found[i];
  bundle->values_start = data.length - values.length;
  return status;
}

static pg_status read_step(const struct reader *r, struct bytes data, struct bundle *bundle) {
  struct bytes values;
  bundle->kind = (struct text){"", 0};
  bundle->settings = (struct text){"{}", 2};
  bundle->n_programs = bundle->n_targets = 1;
  if (!(bundle->programs = pool_take(r->pool, 1, sizeof *bundle->programs)))
    return out_of_memory(r->error);
  bundle->programs->name = (struct text){"", 0};
  pg_status status = read_program(r, data, bundle->programs, &values);
  if (!status)
    status = collect_values(r, bundle);
  return status ? status : find_values(r, data, values, bundle);
}

/* The names of a list of sections, their parts and, unless `targets` is NULL, their targets. Those of one
 * target have different names. */
static pg_status read_sections(const struct reader *r, const struct json *json, uint32_t list,
                               const char *what, struct text *names, uint32_t *targets, struct part *parts) {
  static const char *const fields[] = {"bytes", "name", "sha256", "target"};
  uint32_t count = json_count(json, list), found[4], n = list + 1, more = targets ? 2 : 1;
  struct key *keys = pool_take(r->pool, count, sizeof *keys);
  if (!keys)
    return out_of_memory(r->error);
  for (uint32_t i = 0; i < count; i++, n = json_next(json, n)) {
    int64_t target = 0;
    if (!json_fields(json, n, 2 + more, fields, found) || !json_take_text(json, found[1], &names[i]) ||
        (targets && !json_integer(json, found[3], 0, MAX_TARGETS - 1, &target)))
      return damaged(r, "a list of its parts contradicts itself");
    names[i].data = pool_copy(r->pool, names[i].data, names[i].length);
    if (!names[i].data)
      return out_of_memory(r->error);
    if (targets)
      targets[i] = (uint32_t)target;
    keys[i] = (struct key){.name = names[i], .group = (uint32_t)target};
    parts[i] = (struct part){.what = what, .node = n, .more = more};
  }
  keys_sort(keys, count);
  return keys_twice(keys, count) ? damaged(r, "two parts have one name") : PG_OK;
}

static pg_status read_zeros(const struct reader *r, const struct json *json, uint32_t list,
                            struct bundle *bundle) {
  uint32_t n = list + 1;
  for (uint32_t i = 0; i < json_count(json, list); i++, n = json_next(json, n)) {
    const struct key *key = keys_find(bundle->value_keys, bundle->n_values, json_text(json, n), 0);
    if (!key)
      return damaged(r, "a value that is to be zero does not exist");
    bundle->values[key->index].is_zero = true;
  }
  return PG_OK;
}

static pg_status read_settings(const struct reader *r, struct bytes text, struct bundle *bundle) {
  struct json json;
  pg_status status = json_parse(&json, text, true, "settings", r->error);
  if (!status && json_kind(&json, 0) != JSON_OBJECT)
    status = damaged(r, "the settings are no object");
  json_free(&json);
  const char *kept = pool_copy(r->pool, text.data, text.length);
  bundle->settings = (struct text){kept, (uint32_t)text.length};
  return status || kept ? status : out_of_memory(r->error);
}

static bool are_texts(const struct json *json, uint32_t list) {
  bool good = json_kind(json, list) == JSON_LIST;
  for (uint32_t i = 0, n = list + 1; good && i < json_count(json, list); i++, n = json_next(json, n))
    good = json_kind(json, n) == JSON_TEXT;
  return good;
}

/* The inputs, outputs and Variables of a Program, sorted. */
struct ports {
  struct key *keys;
  size_t count;
};

enum { VARIABLES = ROLE_SCRATCH }; /* their group, beside those of roles */

static struct ports ports_of(const struct reader *r, const struct program *program) {
  size_t most = (size_t)program->n_buffers + program->n_variables;
  struct ports ports = {pool_take(r->pool, most, sizeof *ports.keys), 0};
  for (uint32_t i = 0; ports.keys && i < program->n_buffers; i++) {
    const struct buffer *b = &program->buffers[i];
    if (b->role == ROLE_INPUT || b->role == ROLE_OUTPUT)
      ports.keys[ports.count++] = (struct key){b->name, b->role, i};
  }
  for (uint32_t i = 0; ports.keys && i < program->n_variables; i++)
    ports.keys[ports.count++] = (struct key){program->variables[i].name, VARIABLES, i};
  keys_sort(ports.keys, ports.count);
  return ports;
}

static bool has_same_ports(const struct reader *r, const struct program *a, const struct program *b) {
  struct ports ours = ports_of(r, a), theirs = ports_of(r, b);
  bool same = ours.count == theirs.count;
  for (size_t i = 0; same && i < ours.count; i++) {
    struct key x = ours.keys[i], y = theirs.keys[i];
    same = x.group == y.group && text_equal(x.name, y.name);
    if (same && x.group == VARIABLES)
      same = a->variables[x.index].lo == b->variables[y.index].lo &&
             a->variables[x.index].hi == b->variables[y.index].hi;
    else if (same)
      same =
          same_kind(&(struct shared){.buffer = &a->buffers[x.index], .program = a}, b, &b->buffers[y.index]);
  }
  return same;
}

_Static_assert(MAX_TARGETS == 64, "a value has a bit for each target");

/* All targets have Programs of the same names, with the same inputs, outputs, Variables and values; those
 * of a target are for one device. */
static pg_status check_targets(const struct reader *r, const struct bundle *bundle) {
  uint32_t counts[MAX_TARGETS] = {0};
  struct key *names = pool_take(r->pool, bundle->n_programs, sizeof *names);
  if (!names)
    return out_of_memory(r->error);
  for (uint32_t i = 0; i < bundle->n_programs; i++) {
    const struct program *program = &bundle->programs[i];
    counts[program->target]++;
    names[i] = (struct key){program->name, program->target, i};
    if (!text_equal(program->device, target_device(bundle, program->target)))
      return damaged(r, "the Programs of a target are for several devices");
  }
  keys_sort(names, bundle->n_programs);
  for (uint32_t target = 0; target < bundle->n_targets; target++)
    if (counts[target] != counts[0])
      return damaged(r, "its targets have different Programs");
  for (uint32_t i = 0; i < bundle->n_values; i++)
    if (bundle->values[i].targets != UINT64_MAX >> (MAX_TARGETS - bundle->n_targets))
      return damaged(r, "its targets have different values");
  for (uint32_t i = 0; i < bundle->n_programs; i++) {
    const struct program *program = &bundle->programs[i];
    const struct key *first = keys_find(names, bundle->n_programs, program->name, 0);
    if (!first || (program->target && !has_same_ports(r, &bundle->programs[first->index], program)))
      return damaged(r, "its targets have different Programs");
  }
  return r->pool->failed ? out_of_memory(r->error) : PG_OK;
}

struct text target_device(const struct bundle *bundle, uint32_t target) {
  uint32_t i = 0;
  while (bundle->programs[i].target != target)
    i++;
  return bundle->programs[i].device;
}

pg_status choose_target(struct pool *pool, struct bundle *bundle, uint32_t target, pg_error *error) {
  struct program *chosen = pool_take(pool, bundle->n_programs, sizeof *chosen);
  uint32_t count = 0;
  if (!chosen)
    return out_of_memory(error);
  for (uint32_t i = 0; i < bundle->n_programs; i++)
    if (bundle->programs[i].target == target)
      chosen[count++] = bundle->programs[i];
  bundle->programs = chosen;
  bundle->n_programs = count;
  return PG_OK;
}

/* An exported step has no kind, and one Program without a name for each target. */
static pg_status name_step(const struct reader *r, struct bundle *bundle) {
  if (!text_is(bundle->kind, "step"))
    return PG_OK;
  bundle->kind = (struct text){"", 0};
  for (uint32_t i = 0; i < bundle->n_programs; i++) {
    if (!text_is(bundle->programs[i].name, "step"))
      return damaged(r, "an exported step has another Program");
    bundle->programs[i].name = (struct text){"", 0};
  }
  return PG_OK;
}

static pg_status read_programs(const struct reader *r, const struct part *parts, const struct text *names,
                               const uint32_t *targets, struct bundle *bundle) {
  struct bytes values;
  for (uint32_t i = 0; i < bundle->n_programs; i++) {
    struct program *program = &bundle->programs[i];
    program->name = names[i];
    program->target = targets[i];
    if (targets[i] >= bundle->n_targets)
      bundle->n_targets = targets[i] + 1;
    pg_status status = read_program(r, parts[i].bytes, program, &values);
    if (status)
      return status;
    if (values.length)
      return damaged(r, "a Program has values of its own");
  }
  if (!bundle->n_programs)
    return damaged(r, "it has no Programs");
  pg_status status = collect_values(r, bundle);
  if (!status)
    status = check_targets(r, bundle);
  return status ? status : name_step(r, bundle);
}

static pg_status parse_bundle(const struct reader *r, const struct json *json, uint32_t version,
                              struct bytes data, struct bytes rest, struct bundle *bundle) {
  static const char *const fields[] = {"files", "kind", "programs", "settings", "values", "zeros"};
  uint32_t found[6];
  if (!json_fields(json, 0, 6, fields, found) || !json_take_text(json, found[1], &bundle->kind) ||
      !are_texts(json, found[5]) || json_kind(json, found[0]) != JSON_LIST ||
      json_kind(json, found[2]) != JSON_LIST)
    return damaged(r, "its header contradicts itself");
  uint32_t programs = json_count(json, found[2]), files = json_count(json, found[0]);
  size_t count = (size_t)programs + files + 2;
  struct part *parts = pool_take(r->pool, count, sizeof *parts);
  struct text *names = pool_take(r->pool, count, sizeof *names);
  uint32_t *targets = pool_take(r->pool, count, sizeof *targets);
  bundle->programs = pool_take(r->pool, programs, sizeof *bundle->programs);
  bundle->files = pool_take(r->pool, files, sizeof *bundle->files);
  bundle->kind.data = pool_copy(r->pool, bundle->kind.data, bundle->kind.length);
  if (r->pool->failed)
    return out_of_memory(r->error);
  parts[0] = (struct part){.what = "the settings", .node = found[3]};
  parts[count - 1] = (struct part){.what = "the values", .node = found[4], .unchecked = r->trusts_values};
  pg_status status =
      read_sections(r, json, found[2], "a Program", names, version > 2 ? targets : NULL, parts + 1);
  if (!status)
    status = read_sections(r, json, found[0], "a file", names + programs, NULL, parts + 1 + programs);
  if (!status)
    status = read_parts(r, json, rest, parts, count);
  if (!status)
    status = read_settings(r, parts[0].bytes, bundle);
  if (status)
    return status;
  bundle->n_programs = programs;
  bundle->n_files = files;
  for (uint32_t i = 0; i < files; i++)
    bundle->files[i] = (struct file){names[programs + i], parts[1 + programs + i].bytes};
  if ((status = read_programs(r, parts + 1, names, targets, bundle)) ||
      (status = read_zeros(r, json, found[5], bundle)))
    return status;
  return find_values(r, data, parts[count - 1].bytes, bundle);
}

pg_status read_file(const struct reader *r, struct bytes data, struct bundle *bundle) {
  *bundle = (struct bundle){0};
  if (data.length < 4 || memcmp(data.data, "PGRB", 4))
    return read_step(r, data, bundle);
  static const struct format format = {"file", "PGRB", OLDEST_BUNDLE, BUNDLE_VERSION};
  struct json json;
  struct bytes rest;
  uint32_t version = 0;
  pg_status status = read_header(r, data, &format, &version, &json, &rest);
  if (!status)
    status = parse_bundle(r, &json, version, data, rest, bundle);
  json_free(&json);
  return status;
}
