#include <string.h>

#include "file_limits.h"
#include "program.h"
#include "sha256.h"

enum { PREFIX = 44, BLOCK = 4 << 20 };

static uint32_t word_at(const uint8_t *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Whether bytes have a digest. Fuzzers, which find none, do without. */
static bool has_digest(const struct reader *r, struct bytes data, const uint8_t digest[32]) {
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
  (void)r, (void)data, (void)digest;
  return true;
#else
  uint8_t got[32];
  sha256(data, r->fast, got);
  return !memcmp(got, digest, sizeof got);
#endif
}

static pg_status wrong_version(const struct reader *r, const struct format *format, uint32_t got) {
  const char *advice = got < format->newest ? "export it again" : "use a newer polygrad";
  if (format->oldest == format->newest)
    return fail(r->error, PG_VERSION, "%s: expected version %u, got %u: %s", format->what,
                (unsigned)format->newest, (unsigned)got, advice);
  return fail(r->error, PG_VERSION, "%s: expected a version from %u to %u, got %u: %s", format->what,
              (unsigned)format->oldest, (unsigned)format->newest, (unsigned)got, advice);
}

pg_status read_header(const struct reader *r, struct bytes data, const struct format *format,
                      uint32_t *version, struct json *json, struct bytes *rest) {
  const char *what = format->what;
  *json = (struct json){0};
  if (data.length < 4 || memcmp(data.data, format->magic, 4))
    return fail(r->error, PG_FORMAT, "%s: expected bytes starting %s, got others", what, format->magic);
  if (data.length < PREFIX)
    return fail(r->error, PG_DAMAGED, "%s: expected at least %d bytes, got %d", what, PREFIX,
                (int)data.length);
  uint32_t length = word_at(data.data + 8);
  *version = word_at(data.data + 4);
  if (*version < format->oldest || *version > format->newest)
    return wrong_version(r, format, *version);
  if (length > MAX_HEADER || length > data.length - PREFIX)
    return fail(r->error, PG_DAMAGED, "%s: a header of %u bytes, %llu are there, %u are allowed", what,
                (unsigned)length, (unsigned long long)data.length - PREFIX, (unsigned)MAX_HEADER);
  struct bytes text = {data.data + PREFIX, length};
  if (!has_digest(r, text, data.data + 12))
    return fail(r->error, PG_DIGEST, "%s: the header has another SHA-256", what);
  *rest = (struct bytes){text.data + length, data.length - PREFIX - length};
  return json_parse(json, text, false, what, r->error);
}

/* The bytes of a digest in hexadecimal, in lower case. */
static bool read_digest(struct text text, uint8_t digest[32]) {
  static const char digits[] = "0123456789abcdef";
  if (text.length != 64)
    return false;
  for (unsigned i = 0; i < 64; i++) {
    const char *found = text.data[i] ? strchr(digits, text.data[i]) : NULL;
    if (!found)
      return false;
    digest[i / 2] = (uint8_t)(digest[i / 2] << 4 | (found - digits));
  }
  return true;
}

/* The length of a part, and the node of its digests. */
static pg_status read_entry(const struct reader *r, const struct json *json, struct part *part,
                            uint32_t *digests) {
  static const char *const fields[] = {"bytes", "sha256", "name", "target"};
  uint32_t found[4] = {0};
  int64_t length = 0;
  bool good = json_fields(json, part->node, 2 + part->more, fields, found) &&
              json_integer(json, found[0], 0, MAX_BYTES, &length) && json_kind(json, found[1]) == JSON_LIST &&
              json_count(json, found[1]) == (length + BLOCK - 1) / BLOCK;
  for (uint32_t i = 0, n = found[1] + 1; good && i < json_count(json, found[1]);
       i++, n = json_next(json, n)) {
    uint8_t digest[32] = {0};
    good = json_kind(json, n) == JSON_TEXT && read_digest(json_text(json, n), digest);
  }
  if (!good)
    return fail(r->error, PG_DAMAGED, "file: no length and SHA-256 of each block of %s", part->what);
  part->bytes.length = (uint64_t)length;
  *digests = found[1];
  return PG_OK;
}

static pg_status check_digests(const struct reader *r, const struct json *json, const struct part *part,
                               uint32_t digests) {
  uint64_t left = part->bytes.length;
  const uint8_t *block = part->bytes.data;
  for (uint32_t node = digests + 1; left; node = json_next(json, node)) {
    uint64_t length = left < BLOCK ? left : BLOCK;
    uint8_t wanted[32] = {0};
    read_digest(json_text(json, node), wanted);
    if (!has_digest(r, (struct bytes){block, length}, wanted))
      return fail(r->error, PG_DIGEST, "file: %s has another SHA-256", part->what);
    block += length;
    left -= length;
  }
  return PG_OK;
}

pg_status read_parts(const struct reader *r, const struct json *json, struct bytes rest, struct part *parts,
                     size_t count) {
  uint32_t *digests = pool_take(r->pool, count, sizeof *digests);
  if (!digests)
    return out_of_memory(r->error);
  uint64_t left = rest.length;
  for (size_t i = 0; i < count; i++) {
    pg_status status = read_entry(r, json, &parts[i], &digests[i]);
    if (status)
      return status;
    if (parts[i].bytes.length > left)
      return fail(r->error, PG_DAMAGED, "file: it ends before the end of %s", parts[i].what);
    parts[i].bytes.data = rest.data + (rest.length - left);
    left -= parts[i].bytes.length;
  }
  if (left)
    return fail(r->error, PG_DAMAGED, "file: %llu bytes follow its parts", (unsigned long long)left);
  for (size_t i = 0; i < count; i++) {
    pg_status status = parts[i].unchecked ? PG_OK : check_digests(r, json, &parts[i], digests[i]);
    if (status)
      return status;
  }
  return PG_OK;
}
