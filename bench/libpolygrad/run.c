/* Times of one exported step: `run WASMTIME FLAGS FILE ROUNDS` prints, in seconds of the processor, until the
 * file is open, until the first result, and the best of the later runs. Inputs are bytes of 1, or zeros for
 * integers. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "polygrad.h"

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stop_on(pg_status status, const pg_error *error) {
  if (!status)
    return;
  fprintf(stderr, "%s\n", error->message);
  exit(1);
}

static void fill(const pg_api *pg, pg_model *model, pg_error *error) {
  for (uint32_t i = 0; i < pg->tensor_count(model, 0, PG_INPUT); i++) {
    pg_tensor t;
    void *data;
    stop_on(pg->tensor(model, 0, PG_INPUT, i, &t, error), error);
    stop_on(pg->view(model, 0, PG_INPUT, i, &data, error), error);
    for (uint64_t j = 0; t.dtype == PG_FLOAT32 && j < t.nbytes / 4; j++)
      ((float *)data)[j] = (float)(j % 17) / 16;
    for (uint64_t j = 0; t.dtype == PG_INT32 && j < t.nbytes / 4; j++)
      ((int32_t *)data)[j] = 1;
  }
}

int main(int argc, char **argv) {
  if (argc != 5)
    return 2;
  const pg_api *pg = pg_get_api(1);
  pg_error error;
  pg_model *model;
  pg_options options = {.flags = (pg_flags)atoi(argv[2]), .wasmtime = argv[1]};
  double start = now();
  stop_on(pg->open_path(argv[3], &options, &model, &error), &error);
  double opened = now() - start;
  fill(pg, model, &error);
  stop_on(pg->run(model, 0, NULL, 0, &error), &error);
  double first = now() - start, best = 1e9;
  for (int i = 0; i < atoi(argv[4]); i++) {
    double before = now();
    stop_on(pg->run(model, 0, NULL, 0, &error), &error);
    double time = now() - before;
    best = time < best ? time : best;
  }
  printf("%.9f %.9f %.9f\n", opened, first, best);
  pg->close(model);
  return 0;
}
