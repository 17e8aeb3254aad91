/* A program of version 1 of the interface, which later libraries have to run as it is. It uses every
 * function.
 *
 *   program check FILE...                                     the verdict on each
 *   program describe WASMTIME FLAGS FILE                      what there is in it
 *   program train WASMTIME FLAGS THREADS COPIES RUNS FILE INPUTS   outputs of each run and the values after
 * the last program busy WASMTIME FLAGS FILE                          two threads on one model program stop
 * WASMTIME FLAGS FILE                          a timeout, an interrupt of a thread and of a signal
 *
 * INPUTS has the bytes of all inputs of all runs. `train` runs as many copies of the model as COPIES at once,
 * each in a thread of its own. */

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "polygrad.h"

static const pg_api *pg;

static void expect(int good, const char *what) {
  if (good)
    return;
  fprintf(stderr, "expected: %s\n", what);
  exit(1);
}

static void expect_ok(pg_status status, const pg_error *error) {
  if (!status)
    return;
  fprintf(stderr, "%s: %s\n", pg->status_name(status), error->message);
  exit(1);
}

static uint8_t *read_whole(const char *path, uint64_t *nbytes) {
  FILE *file = fopen(path, "rb");
  expect(file != NULL, path);
  fseek(file, 0, SEEK_END);
  *nbytes = (uint64_t)ftell(file);
  rewind(file);
  uint8_t *data = malloc(*nbytes ? *nbytes : 1);
  expect(data && fread(data, 1, *nbytes, file) == *nbytes, "a whole file");
  fclose(file);
  return data;
}

static pg_model *open_model(char **argv, const char *path, uint32_t threads) {
  pg_options options = {.flags = (pg_flags)atoi(argv[3]), .threads = threads, .wasmtime = argv[2]};
  pg_model *model;
  pg_error error;
  expect_ok(pg->open_path(path, &options, &model, &error), &error);
  return model;
}

static void print_hex(const char *name, const uint8_t *data, uint64_t nbytes) {
  printf("%s ", name);
  for (uint64_t i = 0; i < nbytes; i++)
    printf("%02x", data[i]);
  printf("\n");
}

static int check(int argc, char **argv) {
  for (int i = 2; i < argc; i++) {
    uint64_t nbytes;
    uint8_t *data = read_whole(argv[i], &nbytes);
    pg_error error = {0};
    pg_status status = pg->check(data, nbytes, &error);
    expect(!status == !error.message[0], "a message just where there is an error");
    pg_model *model = NULL;
    pg_options options = {.flags = PG_TRUST_NATIVE, .wasmtime = "/none"};
    pg_status opened = pg->open_memory(data, nbytes, &options, &model, NULL);
    expect(opened && !model && (!status || opened == status), "the same verdict when it is opened");
    printf("%s\n", pg->status_name(status));
    free(data);
  }
  return 0;
}

static void describe_tensors(const pg_model *model, uint32_t entry, pg_role role) {
  pg_error error;
  for (uint32_t i = 0; i < pg->tensor_count(model, entry, role); i++) {
    pg_tensor t;
    uint32_t found;
    expect_ok(pg->tensor(model, entry, role, i, &t, &error), &error);
    expect_ok(pg->find_tensor(model, entry, role, t.name, &found, &error), &error);
    expect(found == i, "a tensor to be found by its name");
    printf("%d %s %s", (int)role, t.name, pg->dtype_name(t.dtype));
    uint64_t nbytes = pg->dtype_size(t.dtype);
    for (uint32_t j = 0; j < t.rank; j++) {
      printf(" %" PRId64 "/%d", t.shape[j], (int)t.variables[j]);
      nbytes *= (uint64_t)t.shape[j];
    }
    expect(nbytes == t.nbytes, "as many bytes as the shape says");
    printf(" %d\n", (int)t.is_state);
  }
}

static int describe(char **argv) {
  pg_model *model = open_model(argv, argv[4], 0);
  pg_error error;
  printf("%s [%s] %s %s\n", pg->library_version(), pg->kind(model), pg->device(model), pg->settings(model));
  for (uint32_t i = 0; i < pg->file_count(model); i++) {
    const char *name;
    const void *data;
    uint64_t nbytes;
    expect_ok(pg->file(model, i, &name, &data, &nbytes, &error), &error);
    print_hex(name, data, nbytes);
  }
  for (uint32_t i = 0; i < pg->entry_count(model); i++) {
    uint32_t found;
    expect_ok(pg->find_entry(model, pg->entry_name(model, i), &found, &error), &error);
    expect(found == i, "an entry to be found by its name");
    printf("[%s]\n", pg->entry_name(model, i));
    for (uint32_t j = 0; j < pg->variable_count(model, i); j++) {
      pg_variable v;
      expect_ok(pg->variable(model, i, j, &v, &error), &error);
      printf("%s %" PRId64 " %" PRId64 "\n", v.name, v.lo, v.hi);
    }
    describe_tensors(model, i, PG_INPUT);
    describe_tensors(model, i, PG_OUTPUT);
  }
  describe_tensors(model, 0, PG_VALUE);
  pg->close(model);
  return 0;
}

struct training {
  char **argv;
  const uint8_t *inputs;
  uint64_t nbytes;
  int prints;
  pg_model *model;
  uint8_t *values; /* after the last run */
  uint64_t values_nbytes;
};

static void run_once(pg_model *model, const uint8_t **inputs, int prints) {
  pg_error error;
  pg_tensor t;
  for (uint32_t i = 0; i < pg->tensor_count(model, 0, PG_INPUT); i++) {
    expect_ok(pg->tensor(model, 0, PG_INPUT, i, &t, &error), &error);
    expect_ok(pg->write(model, 0, PG_INPUT, i, *inputs, t.nbytes, &error), &error);
    *inputs += t.nbytes;
  }
  expect_ok(pg->run(model, 0, NULL, 0, &error), &error);
  for (uint32_t i = 0; i < pg->tensor_count(model, 0, PG_OUTPUT); i++) {
    void *view;
    int64_t shape[64];
    expect_ok(pg->tensor(model, 0, PG_OUTPUT, i, &t, &error), &error);
    expect_ok(pg->shape(model, 0, PG_OUTPUT, i, NULL, shape, &error), &error);
    expect(!memcmp(shape, t.shape, t.rank * sizeof *shape), "the shape of the description");
    uint8_t *copy = malloc(t.nbytes);
    expect_ok(pg->read(model, 0, PG_OUTPUT, i, copy, t.nbytes, &error), &error);
    expect_ok(pg->view(model, 0, PG_OUTPUT, i, &view, &error), &error);
    expect(!memcmp(view, copy, t.nbytes), "a copy of what the view shows");
    if (prints)
      print_hex(t.name, copy, t.nbytes);
    free(copy);
  }
}

static void *train_copy(void *argument) {
  struct training *training = argument;
  char **argv = training->argv;
  pg_error error;
  pg_model *model = open_model(argv, argv[7], (uint32_t)atoi(argv[4]));
  const uint8_t *inputs = training->inputs;
  for (int i = 0; i < atoi(argv[6]); i++)
    run_once(model, &inputs, training->prints);
  expect(inputs == training->inputs + training->nbytes, "as many inputs as runs take");
  training->values_nbytes = pg->values_size(model);
  training->values = malloc(training->values_nbytes);
  expect_ok(pg->save_values_memory(model, training->values, training->values_nbytes, &error), &error);
  training->model = model;
  return NULL;
}

static void try_values(char **argv, const struct training *training) {
  pg_error error;
  char path[] = "/tmp/polygrad-test-XXXXXX";
  int file = mkstemp(path);
  expect(file >= 0, "a temporary file");
  close(file);
  pg_model *model = open_model(argv, argv[7], 0);
  expect_ok(pg->load_values_memory(model, training->values, training->values_nbytes, &error), &error);
  expect_ok(pg->save_values(model, path, &error), &error);
  expect_ok(pg->load_values(model, path, &error), &error);
  uint64_t nbytes;
  uint8_t *saved = read_whole(path, &nbytes);
  expect(nbytes == training->values_nbytes && !memcmp(saved, training->values, nbytes),
         "the values that were loaded");
  expect(pg->load_values_memory(model, saved, nbytes - 1, &error) == PG_DAMAGED, "an error for half a file");
  free(saved);
  unlink(path);
  pg->close(model);
}

static int train(char **argv) {
  enum { MOST = 16 };
  struct training copies[MOST] = {{0}};
  pthread_t threads[MOST];
  int count = atoi(argv[5]);
  uint64_t nbytes;
  uint8_t *inputs = read_whole(argv[8], &nbytes);
  for (int i = 0; i < count && i < MOST; i++) {
    copies[i] = (struct training){argv, inputs, nbytes, i == 0, NULL, NULL, 0};
    expect(!pthread_create(&threads[i], NULL, train_copy, &copies[i]), "a thread");
  }
  for (int i = 0; i < count; i++)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < count; i++)
    expect(copies[i].values_nbytes == copies->values_nbytes &&
               !memcmp(copies[i].values, copies->values, copies->values_nbytes),
           "the same values in each copy");
  print_hex("values", copies->values, copies->values_nbytes);
  try_values(argv, copies);
  for (int i = 0; i < count; i++) {
    pg->close(copies[i].model);
    free(copies[i].values);
  }
  free(inputs);
  return 0;
}

static void *use_often(void *argument) {
  pg_model *model = argument;
  for (int i = 0, done = 0; done < 200 && i < 1000000; i++) {
    pg_error error;
    float value;
    pg_status status = i % 2 ? pg->run(model, 0, NULL, 0, &error)
                             : pg->read(model, 0, PG_OUTPUT, 0, &value, sizeof value, &error);
    expect(status == PG_OK || status == PG_BUSY, "a result, or that the model is busy");
    done += status == PG_OK;
  }
  return NULL;
}

static int busy(char **argv) {
  pg_model *model = open_model(argv, argv[4], 0);
  pg_error error;
  for (uint32_t i = 0; i < pg->tensor_count(model, 0, PG_INPUT); i++) {
    void *view;
    expect_ok(pg->view(model, 0, PG_INPUT, i, &view, &error), &error);
  }
  pthread_t threads[2];
  for (int i = 0; i < 2; i++)
    expect(!pthread_create(&threads[i], NULL, use_often, model), "a thread");
  for (int i = 0; i < 2; i++)
    pthread_join(threads[i], NULL);
  pg->close(model);
  return 0;
}

static pg_model *volatile running;

static void on_signal(int number) {
  (void)number;
  pg->interrupt(running);
}

static void *interrupt_soon(void *argument) {
  usleep(50000);
  pg->interrupt(argument);
  return NULL;
}

static int stop(char **argv) {
  pg_model *model = open_model(argv, argv[4], 0);
  pg_error error;
  pthread_t thread;
  expect(pg->run(model, 0, NULL, 0.05, &error) == PG_TIMEOUT, "a timeout");
  expect(!pthread_create(&thread, NULL, interrupt_soon, model), "a thread");
  expect(pg->run(model, 0, NULL, 0, &error) == PG_INTERRUPTED, "an interrupt");
  pthread_join(thread, NULL);
  pg->close(model);
  return 0;
}

static int interrupt_by_signal(char **argv) {
  pg_model *model = open_model(argv, argv[4], 0);
  pg_error error;
  running = model;
  signal(SIGALRM, on_signal);
  alarm(1);
  expect(pg->run(model, 0, NULL, 0, &error) == PG_INTERRUPTED, "an interrupt by a signal");
  pg->close(model);
  return 0;
}

int main(int argc, char **argv) {
  pg = pg_get_api(PG_API_VERSION);
  expect(pg && pg->version >= PG_API_VERSION, "the table of this version");
  expect(!pg_get_api(0) && !pg_get_api(1000000), "no table of versions that do not exist");
  if (argc > 1 && !strcmp(argv[1], "check"))
    return check(argc, argv);
  if (argc == 5 && !strcmp(argv[1], "describe"))
    return describe(argv);
  if (argc == 9 && !strcmp(argv[1], "train"))
    return train(argv);
  if (argc == 5 && !strcmp(argv[1], "busy"))
    return busy(argv);
  if (argc == 5 && !strcmp(argv[1], "stop"))
    return stop(argv);
  if (argc == 5 && !strcmp(argv[1], "signal"))
    return interrupt_by_signal(argv);
  return 2;
}
