#include "base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK ((size_t)16 << 10)

struct chunk {
  struct chunk *next;
  max_align_t data[];
};

void *pool_take(struct pool *pool, size_t count, size_t size) {
  const size_t align = _Alignof(max_align_t);
  if (count && size > (SIZE_MAX / 2 - sizeof(struct chunk)) / count) {
    pool->failed = true;
    return NULL;
  }
  size_t nbytes = (count * size + align - 1) / align * align;
  if (!pool->chunks || nbytes > pool->size - pool->used) {
    size_t capacity = nbytes > CHUNK ? nbytes : CHUNK;
    struct chunk *chunk = calloc(1, sizeof *chunk + capacity);
    if (!chunk) {
      pool->failed = true;
      return NULL;
    }
    chunk->next = pool->chunks;
    pool->chunks = chunk;
    pool->used = 0;
    pool->size = capacity;
  }
  char *taken = (char *)pool->chunks->data + pool->used;
  pool->used += nbytes;
  return taken;
}

void *pool_copy(struct pool *pool, const void *data, size_t length) {
  void *copy = pool_take(pool, length + 1, 1);
  if (copy && length)
    memcpy(copy, data, length);
  return copy;
}

void pool_free(struct pool *pool) {
  while (pool->chunks) {
    struct chunk *next = pool->chunks->next;
    free(pool->chunks);
    pool->chunks = next;
  }
}

size_t utf8_length(const uint8_t *p, size_t length) {
  if (!length)
    return 0;
  if (p[0] < 0x80)
    return 1;
  size_t n = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
  if (p[0] < 0xC2 || p[0] > 0xF4 || n > length)
    return 0;
  for (size_t i = 1; i < n; i++)
    if ((p[i] & 0xC0) != 0x80)
      return 0;
  /* no longer forms, no surrogates, nothing above U+10FFFF */
  bool outside = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
                 (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F);
  return outside ? 0 : n;
}

pg_status fail(pg_error *error, pg_status status, const char *format, ...) {
  if (!error)
    return status;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error->message, sizeof error->message, format, arguments);
  va_end(arguments);
  error->status = status;
  size_t length = strlen(error->message);
  for (size_t i = 0, n; i < length; i += n) {
    n = utf8_length((const uint8_t *)error->message + i, length - i);
    if (n)
      continue;
    n = 1;
    error->message[i] = '?'; /* text that was cut off, or half a pair of surrogates */
  }
  return status;
}

pg_status out_of_memory(pg_error *error) {
  return fail(error, PG_MEMORY, "expected room for the model, got none: the memory is full");
}

bool text_equal(struct text a, struct text b) {
  return a.length == b.length && !memcmp(a.data, b.data, a.length);
}

bool text_is(struct text a, const char *b) {
  return a.length == strlen(b) && !memcmp(a.data, b, a.length);
}

static int compare_keys(const void *left, const void *right) {
  const struct key *a = left, *b = right;
  if (a->group != b->group)
    return a->group < b->group ? -1 : 1;
  if (a->name.length != b->name.length)
    return a->name.length < b->name.length ? -1 : 1;
  return memcmp(a->name.data, b->name.data, a->name.length);
}

void keys_sort(struct key *keys, size_t count) {
  if (count > 1)
    qsort(keys, count, sizeof *keys, compare_keys);
}

const struct key *keys_twice(const struct key *keys, size_t count) {
  for (size_t i = 1; i < count; i++)
    if (!compare_keys(&keys[i - 1], &keys[i]))
      return &keys[i];
  return NULL;
}

const struct key *keys_find(const struct key *keys, size_t count, struct text name, uint32_t group) {
  struct key wanted = {.name = name, .group = group};
  return count ? bsearch(&wanted, keys, count, sizeof *keys, compare_keys) : NULL;
}

bool multiply(uint64_t a, uint64_t b, uint64_t most, uint64_t *product) {
  if (b && a > most / b)
    return false;
  *product = a * b;
  return true;
}
