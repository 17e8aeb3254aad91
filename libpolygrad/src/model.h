/* A file in memory, and what engines make of it. */

#ifndef PG_MODEL_H
#define PG_MODEL_H

#include <pthread.h>
#include <stdatomic.h>

#include "program.h"

enum { ALIGN = 64 }; /* of every buffer; as many bytes before and after one may be read */

/* A parameter or a state. */
struct value {
  uint8_t *data;
  bool mapped;  /* it is where the file is mapped */
  bool damaged; /* a trap left it half-written */
};

/* A Program in memory. */
struct entry {
  const struct program *program;
  uint8_t **addresses;            /* of each buffer and, last, of the arena */
  uint32_t *tensors[2], count[2]; /* the buffers that are inputs, and outputs */
  int64_t *written;               /* the bytes of each input that were written, or -1 */
  uint32_t *writes, n_writes;     /* the values that it writes */
  uint8_t *table;                 /* of a driver for WebAssembly */
  void *prepared;                 /* by the engine, at the first run */
};

/* What runs Programs. */
struct engine {
  pg_status (*open)(pg_model *model, uint64_t nbytes,
                    pg_error *error); /* gives the model `nbytes` of zeros */
  pg_status (*prepare)(pg_model *model, struct entry *entry, pg_error *error);
  pg_status (*run)(pg_model *model, struct entry *entry, const int64_t *variables, pg_error *error);
  void (*stop)(pg_model *model); /* ends a run of another thread, also in a signal's handler */
  void (*close)(pg_model *model);
  uint64_t first, most; /* where its memory begins, and how far it goes */
};

extern const struct engine wasm_engine, native_engine;

/* A request to end a run. */
struct stop {
  atomic_int running, requests, reason;
  int64_t word; /* native kernels read it */
  pthread_mutex_t mutex;
  pthread_cond_t ended;
  bool has_ended;
  double timeout;
};

struct pg_model {
  struct pool pool;
  struct bundle bundle;
  pg_options options;
  const struct engine *engine;
  void *opened; /* by the engine */
  uint8_t *base;
  void *mapping; /* the file */
  size_t mapping_bytes;
  struct value *values;
  struct entry *entries;
  uint8_t *saved; /* copies of what a run writes */
  atomic_flag busy;
  struct stop stop;
};

/* Memory for a model whose file is read, and its values in it. */
pg_status model_make(pg_model *model, pg_error *error);
pg_status model_run(pg_model *model, struct entry *entry, const int64_t *variables, double timeout,
                    pg_error *error);
/* The shape of a buffer with these values of Variables; the result is its number of elements, -1
 * where a size is negative. */
int64_t shape_of(const struct buffer *buffer, const int64_t *variables, int64_t *shape);

/* stop.c */
pg_status stop_open(struct stop *stop, pg_error *error);
void stop_close(struct stop *stop);
/* Begin a run, and the time that it may take. */
pg_status stop_begin(pg_model *model, double timeout, pthread_t *timer, pg_error *error);
/* End a run; the result says why it was ended, or PG_OK. */
pg_status stop_end(pg_model *model, double timeout, pthread_t timer);
void stop_request(pg_model *model, pg_status reason);

#endif
