/* Strict JSON, as polygrad/runtime/strict_json.py reads it: one meaning for every reader. */

#ifndef PG_JSON_H
#define PG_JSON_H

#include "base.h"

enum json_kind {
  JSON_NULL,
  JSON_FALSE,
  JSON_TRUE,
  JSON_INTEGER,
  JSON_FLOAT,
  JSON_TEXT,
  JSON_LIST,
  JSON_OBJECT
};

/* A value. The values in a list or an object follow it; in an object a name precedes each. */
struct json_node {
  uint32_t kind;
  uint32_t next; /* the node after this one and all that is in it */
  union {
    int64_t number;
    struct {
      uint32_t start, length;
    } text; /* of `json.text` */
    uint32_t count;
  } as;
};

struct json {
  char *text; /* a copy, in which text is decoded in place */
  struct json_node *nodes;
  uint32_t count, capacity;
};

/* Parse a text. PG_DAMAGED, PG_MEMORY. `what`: for errors. Free it with json_free, also after an error. */
pg_status json_parse(struct json *json, struct bytes text, bool floats, const char *what, pg_error *error);
void json_free(struct json *json);

static inline enum json_kind json_kind(const struct json *json, uint32_t node) {
  return json->nodes[node].kind;
}
static inline uint32_t json_next(const struct json *json, uint32_t node) {
  return json->nodes[node].next;
}
/* How many values a list or an object has. */
static inline uint32_t json_count(const struct json *json, uint32_t node) {
  return json->nodes[node].as.count;
}
struct text json_text(const struct json *json, uint32_t node);

/* Whether a value is an object with exactly these fields; then `found` are their values. */
bool json_fields(const struct json *json, uint32_t node, uint32_t count, const char *const *names,
                 uint32_t *found);
/* Whether a value is an integer from `least` to `most`. */
bool json_integer(const struct json *json, uint32_t node, int64_t least, int64_t most, int64_t *value);
/* Whether a value is a text. */
bool json_take_text(const struct json *json, uint32_t node, struct text *text);
/* Whether a value is true or false. */
bool json_bool(const struct json *json, uint32_t node, bool *value);

#endif
