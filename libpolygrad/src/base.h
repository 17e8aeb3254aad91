/* What every file uses: results, memory that is freed at once, names that are sorted and found. */

#ifndef PG_BASE_H
#define PG_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "polygrad.h"

#define PRINTF(text, first) __attribute__((format(printf, text, first)))

struct bytes {
  const uint8_t *data;
  uint64_t length;
};

/* Text that ends with a NUL, and may have others. */
struct text {
  const char *data;
  uint32_t length;
};

/* Blocks of zeroed memory, which are freed together. */
struct pool {
  struct chunk *chunks;
  size_t used, size; /* of the newest chunk */
  bool failed;       /* there was no room */
};

/* `count` times `size` bytes; NULL where there is no room. */
void *pool_take(struct pool *pool, size_t count, size_t size);
/* A copy of bytes, with a NUL behind them; NULL where there is no room. */
void *pool_copy(struct pool *pool, const void *data, size_t length);
void pool_free(struct pool *pool);

/* Write an error, unless it is NULL; the result is the status. */
pg_status fail(pg_error *error, pg_status status, const char *format, ...) PRINTF(3, 4);
pg_status out_of_memory(pg_error *error);

/* The bytes of the character of UTF-8 that starts here, 0 if there is none in `length` bytes. */
size_t utf8_length(const uint8_t *p, size_t length);

bool text_equal(struct text a, struct text b);
bool text_is(struct text a, const char *b);

/* A name of a group, and what it is the name of. */
struct key {
  struct text name;
  uint32_t group, index;
};

void keys_sort(struct key *keys, size_t count);
/* Of sorted keys: one that occurs twice, or NULL. */
const struct key *keys_twice(const struct key *keys, size_t count);
const struct key *keys_find(const struct key *keys, size_t count, struct text name, uint32_t group);

/* a * b, or false where that is more than `most`. */
bool multiply(uint64_t a, uint64_t b, uint64_t most, uint64_t *product);

#endif
