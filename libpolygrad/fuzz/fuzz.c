/* A target for clang's libFuzzer. The first byte of an input says what the others are read as: an exported
 * file, JSON, or a safetensors file for a model. Digests are not compared in this build, as no mutation keeps
 * them right.
 *
 * Files that are good are opened as if they were trusted, described, and their values are written and read
 * again. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file_limits.h"
#include "json.h"
#include "polygrad.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static const pg_api *pg;
static pg_model *fixed; /* of the parameter a, float32 (2, 3), and the state b, int8 () */

static void expect(bool good) {
  if (!good)
    abort();
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  static const char none[] = "{\"bytes\":0,\"sha256\":[]}";
  static const char b[] = "{\"b\":{\"dtype\":\"I8\",\"shape\":[],\"data_offsets\":[0,1]},"
                          "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[1,25]}}";
  char digest[65], header[2048], file[4096] = {'P', 'G', 'R', 'D', PROGRAM_VERSION};
  (void)argc, (void)argv;
  pg = pg_get_api(PG_API_VERSION);
  memset(digest, '0', 64);
  digest[64] = '\0';
  size_t values = 8 + strlen(b) + 25;
  int length = snprintf(header, sizeof header,
                        "{\"arena\":0,\"buffers\":[{\"dtype\":\"float32\",\"name\":\"a\",\"offset\":-1,"
                        "\"role\":\"param\",\"shape\":[2,3],"
                        "\"size\":6},{\"dtype\":\"int8\",\"name\":\"b\",\"offset\":-1,\"role\":\"state\","
                        "\"shape\":[],\"size\":1}],"
                        "\"device\":\"CC\",\"driver\":%s,\"kernels\":[],\"launches\":[],\"shared_memory\":"
                        "false,\"target\":\"\","
                        "\"threads\":1,\"values\":{\"bytes\":%d,\"sha256\":[\"%s\"]},\"variables\":[]}",
                        none, (int)values, digest);
  file[8] = (char)(length & 255);
  file[9] = (char)(length >> 8);
  memcpy(file + 44, header, (size_t)length);
  file[44 + length] = (char)strlen(b);
  memcpy(file + 44 + length + 8, b, strlen(b));
  pg_options options = {.flags = PG_TRUST_NATIVE};
  expect(!pg->open_memory(file, 44 + (size_t)length + values, &options, &fixed, NULL));
  return 0;
}

static void describe(const pg_model *model) {
  for (uint32_t entry = 0; entry < pg->entry_count(model); entry++)
    for (pg_role role = PG_INPUT; role <= PG_VALUE; role++)
      for (uint32_t i = 0; i < pg->tensor_count(model, entry, role); i++) {
        pg_tensor t;
        int64_t variables[64] = {0}, shape[64];
        expect(!pg->tensor(model, entry, role, i, &t, NULL) && t.name && t.rank <= 64);
        if (pg->variable_count(model, entry) <= 64)
          expect(!pg->shape(model, entry, role, i, variables, shape, NULL));
      }
}

/* Values that are saved are those that are loaded. */
static void save_and_load(pg_model *model) {
  uint64_t nbytes = pg->values_size(model);
  uint8_t *saved = malloc(nbytes), *again = malloc(nbytes);
  expect(saved && again && !pg->save_values_memory(model, saved, nbytes, NULL));
  expect(!pg->load_values_memory(model, saved, nbytes, NULL));
  expect(!pg->save_values_memory(model, again, nbytes, NULL) && !memcmp(saved, again, nbytes));
  free(saved);
  free(again);
}

static void read_as_file(const uint8_t *data, size_t nbytes) {
  pg_options options = {.flags = PG_TRUST_NATIVE, .max_bytes = 16 << 20, .wasmtime = "/none"};
  pg_error error;
  pg_model *model = NULL;
  pg_status status = pg->check(data, nbytes, &error);
  expect(status >= PG_OK && status <= PG_MEMORY);
  pg_status opened = pg->open_memory(data, nbytes, &options, &model, &error);
  expect(!status || opened == status);
  if (opened)
    return;
  describe(model);
  save_and_load(model);
  pg->close(model);
}

static void read_as_json(const uint8_t *data, size_t nbytes, bool floats) {
  struct json json;
  pg_status status = json_parse(&json, (struct bytes){data, nbytes}, floats, "fuzz", NULL);
  expect(status == PG_OK || status == PG_DAMAGED);
  expect(status || json.nodes->next == json.count);
  json_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  if (!nbytes)
    return 0;
  /* a copy of exactly these bytes: what is behind them is not to be read */
  uint8_t *copy = malloc(nbytes - 1 ? nbytes - 1 : 1);
  expect(copy);
  memcpy(copy, data + 1, nbytes - 1);
  if (data[0] == 'V') {
    pg_status status = pg->load_values_memory(fixed, copy, nbytes - 1, NULL);
    expect(status == PG_OK || status == PG_DAMAGED || (status == PG_ARGUMENT && nbytes == 1));
    save_and_load(fixed);
  } else if (data[0] == 'J' || data[0] == 'F') {
    read_as_json(copy, nbytes - 1, data[0] == 'F');
  } else {
    read_as_file(copy, nbytes - 1);
  }
  free(copy);
  return 0;
}
