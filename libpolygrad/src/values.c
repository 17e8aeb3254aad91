#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file_limits.h"
#include "program.h"

#define MAX_VALUES_HEADER 100000000u

static const char *const dtype_codes[] = {
    "BOOL", "I8",      "U8",      "I16", "U16",  "I32", "U32", "I64",
    "U64",  "F8_E4M3", "F8_E5M2", "F16", "BF16", "F32", "F64",
};

/* A tensor of a file: its bytes are those from `start` to `end` of the data. */
struct place {
  uint64_t start, end;
  uint32_t value;
};

static int compare_places(const void *left, const void *right) {
  const struct place *a = left, *b = right;
  return a->start != b->start ? (a->start < b->start ? -1 : 1)
         : a->end != b->end   ? (a->end < b->end ? -1 : 1)
                              : 0;
}

static pg_status damaged(const struct reader *r, struct text name, const char *reason) {
  return fail(r->error, PG_DAMAGED, "values: %.100s: %s", name.data, reason);
}

/* The nodes of an entry's fields; it may have others. */
static bool find_fields(const struct json *json, uint32_t node, uint32_t found[3]) {
  static const char *const fields[] = {"dtype", "shape", "data_offsets"};
  if (json_kind(json, node) != JSON_OBJECT)
    return false;
  unsigned seen = 0;
  for (uint32_t i = 0, at = node + 1; i < json_count(json, node); i++, at = json_next(json, at + 1))
    for (unsigned field = 0; field < 3; field++)
      if (text_is(json_text(json, at), fields[field])) {
        found[field] = at + 1;
        seen++;
      }
  return seen == 3;
}

/* Whether an entry has the dtype and the shape of a buffer; `place`: where it is. */
static bool read_place(const struct json *json, uint32_t node, const struct buffer *b, struct place *place) {
  uint32_t found[3];
  int64_t number;
  if (!find_fields(json, node, found) || json_kind(json, found[0]) != JSON_TEXT ||
      !text_is(json_text(json, found[0]), dtype_codes[b->dtype]) || json_kind(json, found[1]) != JSON_LIST ||
      json_count(json, found[1]) != b->rank || json_kind(json, found[2]) != JSON_LIST ||
      json_count(json, found[2]) != 2)
    return false;
  uint32_t n = found[1] + 1;
  for (uint32_t i = 0; i < b->rank; i++, n = json_next(json, n))
    if (!json_integer(json, n, 0, MAX_INTEGER, &number) || number != b->shape[i] || b->variables[i] >= 0)
      return false;
  n = found[2] + 1;
  if (!json_integer(json, n, 0, MAX_INTEGER, &number))
    return false;
  place->start = (uint64_t)number;
  if (!json_integer(json, json_next(json, n), (int64_t)place->start, MAX_INTEGER, &number))
    return false;
  place->end = (uint64_t)number;
  return place->end - place->start == (uint64_t)b->nbytes;
}

/* The places of all values of a header; those that are `found` have some data there. */
static pg_status read_places(const struct reader *r, const struct json *json, const struct bundle *bundle,
                             bool all, bool metadata, struct place *places, uint32_t *count,
                             struct bytes *found) {
  if (json_kind(json, 0) != JSON_OBJECT)
    return fail(r->error, PG_DAMAGED, "values: expected an object as their header, got other JSON");
  uint32_t at = 1;
  *count = 0;
  for (uint32_t i = 0; i < json_count(json, 0); i++, at = json_next(json, at + 1)) {
    struct text name = json_text(json, at);
    if (metadata && text_is(name, "__metadata__"))
      continue;
    const struct key *key = keys_find(bundle->value_keys, bundle->n_values, name, 0);
    if (!key || (bundle->values[key->index].is_zero && !all))
      return damaged(r, name, "the model has no such value: use values that were saved with it");
    struct place *place = &places[(*count)++]; /* names are unique */
    place->value = key->index;
    found[key->index].data = (const uint8_t *)json->text;
    if (!read_place(json, at + 1, bundle->values[key->index].buffer, place))
      return damaged(r, name, "it has another dtype or shape than the model's, or no place");
  }
  for (uint32_t i = 0; i < bundle->n_values; i++)
    if (!found[i].data && (all || !bundle->values[i].is_zero))
      return damaged(r, bundle->values[i].buffer->name, "expected its value, got none");
  return PG_OK;
}

static pg_status place_values(const struct reader *r, struct bytes data, struct place *places, uint32_t count,
                              struct bytes *found) {
  uint64_t end = 0;
  if (count > 1)
    qsort(places, count, sizeof *places, compare_places);
  for (uint32_t i = 0; i < count; i++) {
    const struct place *place = &places[i];
    if (place->start != end || place->end > data.length)
      return fail(r->error, PG_DAMAGED, "values: tensors do not follow each other to the end of the file");
    end = place->end;
    found[place->value] = (struct bytes){data.data + place->start, place->end - place->start};
  }
  if (end != data.length)
    return fail(r->error, PG_DAMAGED, "values: expected %llu bytes of tensors, got %llu",
                (unsigned long long)end, (unsigned long long)data.length);
  return PG_OK;
}

pg_status read_values(const struct reader *r, struct bytes data, const struct bundle *bundle, bool all,
                      bool metadata, struct bytes *found) {
  uint64_t length = 0;
  struct place *places = NULL;
  uint32_t count = 0;
  struct json json = {0};
  pg_status status = PG_OK;
  for (unsigned i = 0; data.length >= 8 && i < 8; i++)
    length |= (uint64_t)data.data[i] << 8 * i;
  if (data.length && (data.length < 8 || length > data.length - 8 || length > MAX_VALUES_HEADER))
    return fail(r->error, PG_DAMAGED, "values: expected a safetensors file, got %llu bytes that are none",
                (unsigned long long)data.length);
  struct bytes text =
      data.length ? (struct bytes){data.data + 8, length} : (struct bytes){(const uint8_t *)"{}", 2};
  struct bytes rest =
      data.length ? (struct bytes){data.data + 8 + length, data.length - 8 - length} : (struct bytes){0};
  if (!(places = malloc((bundle->n_values + (size_t)1) * sizeof *places)))
    status = out_of_memory(r->error);
  if (!status)
    status = json_parse(&json, text, false, "values", r->error);
  if (!status)
    status = read_places(r, &json, bundle, all, metadata, places, &count, found);
  if (!status)
    status = place_values(r, rest, places, count, found);
  json_free(&json);
  free(places);
  return status;
}

/* Append text to a buffer of `capacity` bytes, if it fits; `length` counts in any case. */
static void append(char *out, size_t capacity, size_t *length, const char *text, size_t count) {
  if (*length + count <= capacity)
    memcpy(out + *length, text, count);
  *length += count;
}

static void append_name(char *out, size_t capacity, size_t *length, struct text name) {
  char escape[8];
  append(out, capacity, length, "\"", 1);
  for (uint32_t i = 0; i < name.length; i++) {
    uint8_t c = (uint8_t)name.data[i];
    const uint8_t *next = (const uint8_t *)name.data + i;
    if (c == 0xED && next[1] > 0x9F) { /* half a pair of surrogates, which only an escape can be */
      unsigned unit = 0xD000u | (next[1] & 0x3Fu) << 6 | (next[2] & 0x3Fu);
      append(out, capacity, length, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", unit));
      i += 2;
    } else if (c < 0x20 || c == '"' || c == '\\') {
      append(out, capacity, length, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", c));
    } else {
      append(out, capacity, length, name.data + i, 1);
    }
  }
  append(out, capacity, length, "\":", 2);
}

/* The header into `out`; the result is its length. */
static size_t write_header(const struct bundle *bundle, char *out, size_t capacity) {
  size_t length = 8;
  int64_t end = 0;
  char text[64];
  for (uint32_t i = 0; i < bundle->n_values; i++) {
    const struct buffer *b = bundle->values[i].buffer;
    append(out, capacity, &length, i ? "," : "{", 1);
    append_name(out, capacity, &length, b->name);
    append(out, capacity, &length, text,
           (size_t)snprintf(text, sizeof text, "{\"dtype\":\"%s\",\"shape\":[", dtype_codes[b->dtype]));
    for (uint32_t j = 0; j < b->rank; j++)
      append(out, capacity, &length, text,
             (size_t)snprintf(text, sizeof text, "%s%lld", j ? "," : "", (long long)b->shape[j]));
    int count = snprintf(text, sizeof text, "],\"data_offsets\":[%lld,%lld]}", (long long)end,
                         (long long)(end + b->nbytes));
    append(out, capacity, &length, text, (size_t)count);
    end += b->nbytes;
  }
  append(out, capacity, &length, bundle->n_values ? "}" : "{}", bundle->n_values ? 1 : 2);
  while (length % 8) /* the data starts on a multiple of 8 */
    append(out, capacity, &length, " ", 1);
  return length;
}

char *values_header(const struct bundle *bundle, size_t *length) {
  *length = write_header(bundle, NULL, 0);
  char *out = malloc(*length);
  if (!out)
    return NULL;
  write_header(bundle, out, *length);
  for (unsigned i = 0; i < 8; i++)
    out[i] = (char)((*length - 8) >> 8 * i);
  return out;
}
