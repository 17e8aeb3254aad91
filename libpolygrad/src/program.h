/* Programs and Bundles, as the files have them: polygrad/runtime/program.py and bundle.py describe both. */

#ifndef PG_PROGRAM_H
#define PG_PROGRAM_H

#include "base.h"
#include "json.h"

enum role { ROLE_INPUT, ROLE_OUTPUT, ROLE_PARAM, ROLE_STATE, ROLE_SCRATCH };
enum language {
  LANGUAGE_WASM,
  LANGUAGE_OBJECT,
  LANGUAGE_LIBRARY,
  LANGUAGE_LINEAR,
  LANGUAGE_WGSL,
  LANGUAGE_CUDA,
  LANGUAGE_MSL
};

/* The values that whoever runs a parallel kernel gives, as variables of a kernel. */
enum { OF_THREAD = -4, OF_THREADS = -3, OF_PART = -2, OF_PARTS = -1 };

struct buffer {
  struct text name;
  enum role role;
  pg_dtype dtype;
  int64_t size, nbytes, offset; /* `offset`: in the arena */
  bool has_shape;
  uint32_t rank;
  int64_t *shape;     /* where a Variable is a size, its greatest value */
  int32_t *variables; /* for each axis a Variable, or -1 */
};

struct kernel {
  struct text name;
  enum language language;
  bool parallel;
  uint32_t pointers, n_variables, n_writes;
  int32_t *variables; /* a Variable of the Program, or OF_THREAD ... */
  uint32_t *writes;
  struct bytes code;
};

struct binding {
  uint32_t buffer;
  int64_t offset;
};

struct launch {
  uint32_t kernel;
  struct binding *bindings;
  bool barrier;
};

struct variable {
  struct text name;
  int64_t lo, hi;
};

struct program {
  struct text name, device;
  uint32_t target; /* the number of those that it is of */
  struct buffer *buffers;
  struct kernel *kernels;
  struct launch *launches;
  struct variable *variables;
  uint32_t n_buffers, n_kernels, n_launches, n_variables;
  int64_t arena, threads;
  bool shared_memory, parallel;
  struct bytes driver;
};

struct file {
  struct text name;
  struct bytes data;
};

/* A parameter or a state, which Programs share by its name. */
struct shared {
  const struct buffer *buffer; /* of the first Program that has it */
  const struct program *program;
  bool is_state, is_zero;
  uint64_t targets;  /* a bit for each that has it */
  struct bytes data; /* in the file */
};

/* A whole file. An exported step has one Program, without a name. A file for several devices has
 * Programs of the same names for each; `programs` are those of one target, at first all of them. */
struct bundle {
  struct text kind, settings;
  struct program *programs;
  uint32_t n_targets;
  struct file *files;
  struct shared *values;
  struct key *value_keys; /* sorted */
  uint32_t n_programs, n_files, n_values;
  uint64_t values_start; /* where the values begin in the file, which is their end for none */
};

struct reader {
  struct pool *pool;
  pg_error *error;
  bool fast;          /* see sha256 */
  bool trusts_values; /* their SHA-256 is not computed */
};

/* Read and check a file. What it points to is in the pool or in `data`. */
pg_status read_file(const struct reader *r, struct bytes data, struct bundle *bundle);
/* The device of a target. */
struct text target_device(const struct bundle *bundle, uint32_t target);
/* Keep the Programs of one target. */
pg_status choose_target(struct pool *pool, struct bundle *bundle, uint32_t target, pg_error *error);
/* Read one Program, without its values. */
pg_status read_program(const struct reader *r, struct bytes data, struct program *program,
                       struct bytes *values);

/* parts.c: a header, and the parts that follow it (polygrad/runtime/parts.py). */

struct part {
  const char *what; /* for errors */
  uint32_t node;    /* of the header's JSON */
  uint32_t more;    /* how many fields it has beside its own: a name, and a target */
  bool unchecked;   /* its SHA-256 is not computed */
  struct bytes bytes;
};

/* A kind of file, and its versions that are read. */
struct format {
  const char *what, *magic;
  uint32_t oldest, newest;
};

/* Read a header. `rest`: what follows it. */
pg_status read_header(const struct reader *r, struct bytes data, const struct format *format,
                      uint32_t *version, struct json *json, struct bytes *rest);
/* Find and check the parts of a file, which fill `rest`. */
pg_status read_parts(const struct reader *r, const struct json *json, struct bytes rest, struct part *parts,
                     size_t count);

/* values.c: safetensors files. */

/* Find the data of each value that is not `is_zero` in a safetensors file, which has exactly these. With
 * `all`, also of those; `metadata`: whether the file may have some. `found`: zeros at first. */
pg_status read_values(const struct reader *r, struct bytes data, const struct bundle *bundle, bool all,
                      bool metadata, struct bytes *found);
/* The start of the safetensors file of all values, up to their data; free it. NULL where there is no room. */
char *values_header(const struct bundle *bundle, size_t *length);

const char *dtype_name(pg_dtype dtype);
uint32_t dtype_size(pg_dtype dtype);

#endif
