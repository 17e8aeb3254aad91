#define _GNU_SOURCE /* strtod_l */
#include "json.h"

#include <locale.h>
#include <stdlib.h>
#include <string.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include "file_limits.h"

struct parser {
  struct json *json;
  const char *what;
  pg_error *error;
  uint32_t at, length;
  bool floats;
};

static pg_status refuse(struct parser *p, const char *reason) {
  return fail(p->error, PG_DAMAGED, "%s: byte %u of its JSON: %s", p->what, (unsigned)p->at, reason);
}

static pg_status add_node(struct parser *p, uint32_t kind, uint32_t *node) {
  struct json *json = p->json;
  if (json->count == json->capacity) {
    uint32_t capacity = json->capacity ? 2 * json->capacity : 256;
    struct json_node *nodes = realloc(json->nodes, capacity * sizeof *nodes);
    if (!nodes)
      return out_of_memory(p->error);
    json->nodes = nodes;
    json->capacity = capacity;
  }
  *node = json->count++;
  json->nodes[*node] = (struct json_node){.kind = kind};
  return PG_OK;
}

static char peek(struct parser *p) {
  const char *text = p->json->text;
  while (p->at < p->length && strchr(" \t\n\r", text[p->at]) && text[p->at])
    p->at++;
  return p->at < p->length ? text[p->at] : '\0';
}

static bool take_word(struct parser *p, const char *word) {
  size_t length = strlen(word);
  if (p->length - p->at < length || memcmp(p->json->text + p->at, word, length))
    return false;
  p->at += (uint32_t)length;
  return true;
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* The code unit of \uXXXX at a place, or -1. */
static int32_t unit_at(struct parser *p, uint32_t at) {
  const char *text = p->json->text;
  if (p->length - at < 6 || text[at] != '\\' || text[at + 1] != 'u')
    return -1;
  int32_t unit = 0;
  for (uint32_t i = 2; i < 6; i++) {
    int digit = hex_digit(text[at + i]);
    if (digit < 0)
      return -1;
    unit = 16 * unit + digit;
  }
  return unit;
}

/* Write a code point, also half a pair of surrogates, which escapes can have. */
static uint32_t write_utf8(char *out, uint32_t c) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  uint32_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (uint32_t i = n - 1; i; i--, c >>= 6)
    out[i] = (char)(0x80 | (c & 0x3F));
  out[0] = (char)((0xF00 >> n) | c);
  return n;
}

/* An escape; its text is never longer than it. False: there is no such escape. */
static bool take_escape(struct parser *p, uint32_t *end) {
  char *text = p->json->text;
  int32_t unit = unit_at(p, p->at);
  if (unit >= 0) {
    uint32_t code = (uint32_t)unit;
    p->at += 6;
    int32_t low = code >= 0xD800 && code < 0xDC00 ? unit_at(p, p->at) : -1;
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
      p->at += 6;
    }
    *end += write_utf8(text + *end, code);
    return true;
  }
  static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
  char letter = p->at + 1 < p->length ? text[p->at + 1] : '\0';
  const char *found = letter ? strchr(letters, letter) : NULL;
  if (!found)
    return false;
  text[(*end)++] = meanings[found - letters];
  p->at += 2;
  return true;
}

static pg_status parse_text(struct parser *p) {
  char *text = p->json->text;
  uint32_t node, start = p->at + 1, end = start;
  pg_status status = add_node(p, JSON_TEXT, &node);
  if (status)
    return status;
  for (p->at = start; p->at < p->length && text[p->at] != '"';) {
    if ((uint8_t)text[p->at] < 0x20)
      return refuse(p, "a control character in a text");
    if (text[p->at] != '\\')
      text[end++] = text[p->at++];
    else if (!take_escape(p, &end))
      return refuse(p, "no escape");
  }
  if (p->at == p->length)
    return refuse(p, "a text without an end");
  p->at++;
  text[end] = '\0';
  struct json_node *made = &p->json->nodes[node];
  made->as.text.start = start;
  made->as.text.length = end - start;
  made->next = node + 1;
  return PG_OK;
}

static uint32_t digits_at(struct parser *p) {
  uint32_t start = p->at;
  while (p->at < p->length && p->json->text[p->at] >= '0' && p->json->text[p->at] <= '9')
    p->at++;
  return p->at - start;
}

/* Whether the number in a text, which ends with a character that is none of a number's, is finite. */
static pg_status check_finite(struct parser *p, uint32_t start) {
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (!plain)
    return out_of_memory(p->error);
  double value = strtod_l(p->json->text + start, NULL, plain);
  freelocale(plain);
  return value - value == 0 ? PG_OK : refuse(p, "a number that is not finite");
}

static pg_status parse_number(struct parser *p) {
  const char *text = p->json->text;
  uint32_t node, start = p->at;
  bool negative = text[p->at] == '-', whole = true;
  p->at += negative;
  uint32_t first = p->at, digits = digits_at(p);
  if (!digits || (digits > 1 && text[first] == '0'))
    return refuse(p, "no number");
  if (p->at < p->length && text[p->at] == '.') {
    p->at++;
    whole = false;
    if (!digits_at(p))
      return refuse(p, "no number");
  }
  if (p->at < p->length && (text[p->at] == 'e' || text[p->at] == 'E')) {
    p->at++;
    whole = false;
    if (p->at < p->length && (text[p->at] == '+' || text[p->at] == '-'))
      p->at++;
    if (!digits_at(p))
      return refuse(p, "no number");
  }
  if (!whole && !p->floats)
    return refuse(p, "a number that is no integer");
  pg_status status = whole ? PG_OK : check_finite(p, start);
  if (status || (status = add_node(p, whole ? JSON_INTEGER : JSON_FLOAT, &node)))
    return status;
  int64_t value = 0;
  for (uint32_t i = first; whole && i < first + digits; i++) {
    value = 10 * value + (text[i] - '0');
    if (value > MAX_INTEGER)
      return refuse(p, "an integer of more than 53 bits");
  }
  p->json->nodes[node].as.number = negative ? -value : value;
  p->json->nodes[node].next = node + 1;
  return PG_OK;
}

static pg_status check_names(struct parser *p, uint32_t object, uint32_t count) {
  const struct json *json = p->json;
  struct key few[16], *keys = count > 16 ? malloc(count * sizeof *keys) : few;
  if (!keys)
    return out_of_memory(p->error);
  for (uint32_t i = 0, node = object + 1; i < count; i++, node = json_next(json, node + 1))
    keys[i] = (struct key){.name = json_text(json, node)};
  keys_sort(keys, count);
  bool twice = keys_twice(keys, count);
  if (keys != few)
    free(keys);
  return twice ? refuse(p, "a name occurs twice in an object") : PG_OK;
}

static pg_status parse_value(struct parser *p, uint32_t depth);

/* The values of a list, or the names and values of an object. */
static pg_status parse_values(struct parser *p, uint32_t depth, bool object) {
  uint32_t node, count = 0;
  char end = object ? '}' : ']';
  pg_status status = add_node(p, object ? JSON_OBJECT : JSON_LIST, &node);
  if (status)
    return status;
  if (!depth)
    return refuse(p, "too many lists and objects in each other");
  p->at++;
  for (; peek(p) != end; count++) {
    if (count && (peek(p) != ',' || (p->at++, peek(p)) == end))
      return refuse(p, "no list of values with commas between them");
    if (object) {
      if (peek(p) != '"')
        return refuse(p, "no name in an object");
      if ((status = parse_text(p)))
        return status;
      if (peek(p) != ':')
        return refuse(p, "no colon after a name");
      p->at++;
    }
    if ((status = parse_value(p, depth - 1)))
      return status;
  }
  p->at++;
  p->json->nodes[node].as.count = count;
  p->json->nodes[node].next = p->json->count;
  return object ? check_names(p, node, count) : PG_OK;
}

static pg_status parse_value(struct parser *p, uint32_t depth) {
  static const char *const words[] = {"null", "false", "true"};
  char c = peek(p);
  if (c == '{' || c == '[')
    return parse_values(p, depth, c == '{');
  if (c == '"')
    return parse_text(p);
  if (c == '-' || (c >= '0' && c <= '9'))
    return parse_number(p);
  for (uint32_t kind = JSON_NULL, node; kind <= JSON_TRUE; kind++)
    if (take_word(p, words[kind])) {
      pg_status status = add_node(p, kind, &node);
      if (!status)
        p->json->nodes[node].next = node + 1;
      return status;
    }
  return refuse(p, "no value");
}

pg_status json_parse(struct json *json, struct bytes text, bool floats, const char *what, pg_error *error) {
  *json = (struct json){0};
  if (text.length > MAX_JSON)
    return fail(error, PG_DAMAGED, "%s: expected up to %u bytes of JSON, got more", what, (unsigned)MAX_JSON);
  struct parser p = {
      .json = json, .what = what, .error = error, .length = (uint32_t)text.length, .floats = floats};
  for (size_t i = 0, n; i < text.length; i += n) {
    p.at = (uint32_t)i;
    if (!(n = utf8_length(text.data + i, text.length - i)))
      return refuse(&p, "no UTF-8");
  }
  p.at = 0;
  if (!(json->text = malloc(text.length + 1)))
    return out_of_memory(error);
  if (text.length)
    memcpy(json->text, text.data, text.length);
  json->text[text.length] = '\0';
  pg_status status = parse_value(&p, MAX_DEPTH);
  if (status)
    return status;
  peek(&p);
  return p.at == p.length ? PG_OK : refuse(&p, "more than one value");
}

void json_free(struct json *json) {
  free(json->text);
  free(json->nodes);
  *json = (struct json){0};
}

struct text json_text(const struct json *json, uint32_t node) {
  const struct json_node *n = &json->nodes[node];
  return (struct text){json->text + n->as.text.start, n->as.text.length};
}

bool json_fields(const struct json *json, uint32_t node, uint32_t count, const char *const *names,
                 uint32_t *found) {
  if (json_kind(json, node) != JSON_OBJECT || json_count(json, node) != count)
    return false;
  for (uint32_t i = 0, at = node + 1; i < count; i++, at = json_next(json, at + 1)) {
    uint32_t field = 0;
    while (field < count && !text_is(json_text(json, at), names[field]))
      field++;
    if (field == count)
      return false;
    found[field] = at + 1;
  }
  return true;
}

bool json_integer(const struct json *json, uint32_t node, int64_t least, int64_t most, int64_t *value) {
  if (json_kind(json, node) != JSON_INTEGER)
    return false;
  *value = json->nodes[node].as.number;
  return least <= *value && *value <= most;
}

bool json_take_text(const struct json *json, uint32_t node, struct text *text) {
  if (json_kind(json, node) != JSON_TEXT)
    return false;
  *text = json_text(json, node);
  return true;
}

bool json_bool(const struct json *json, uint32_t node, bool *value) {
  *value = json_kind(json, node) == JSON_TRUE;
  return *value || json_kind(json, node) == JSON_FALSE;
}
