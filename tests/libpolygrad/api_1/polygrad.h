/* libpolygrad runs models that polygrad exported (.pgrd files), without Python. Written by
 * scripts/c_header.py from manifest.json.
 *
 * pg_get_api gives a table of functions. Later versions of the library append functions to it and change
 * none.
 *
 * A function that can fail returns a pg_status. With one other than PG_OK it writes a message to *error,
 * unless error is NULL, changes nothing else, and leaves its results as they were.
 *
 * Text is UTF-8 and ends with a NUL. Pointers that functions give belong to the model and are valid
 * until it is closed; each function says what else ends them.
 *
 * A model is used by one thread at a time. A call that comes while another one is running returns
 * PG_BUSY, except for interrupt. Different models share nothing that is written.
 *
 * Tensors are in row-major order, little-endian, without gaps. */

#ifndef POLYGRAD_H
#define POLYGRAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PG_API_VERSION 1u

#if defined(__GNUC__)
#define PG_EXPORT __attribute__((visibility("default")))
#else
#define PG_EXPORT
#endif

/* A file in memory: its code, parameters and state. */
typedef struct pg_model pg_model;

/* How a call ended. */
typedef int32_t pg_status;
/* All went well. */
#define PG_OK 0
/* An argument is not what the function takes. */
#define PG_ARGUMENT 1
/* A file cannot be opened, read or written. */
#define PG_IO 2
/* The bytes are another kind of file. */
#define PG_FORMAT 3
/* The file has a version that this library does not read. */
#define PG_VERSION 4
/* A part of the file has another SHA-256 than its header says. */
#define PG_DIGEST 5
/* The file contradicts itself, or exceeds a limit. */
#define PG_DAMAGED 6
/* The file has native code: pass PG_TRUST_NATIVE if you trust who made it. */
#define PG_TRUST 7
/* The file is for a device that this library does not run. */
#define PG_UNSUPPORTED 8
/* There is no room, or max_bytes is exceeded. */
#define PG_MEMORY 9
/* There is no wasmtime where it was looked for, or one that does not fit. */
#define PG_NO_ENGINE 10
/* A kernel does not compile or load. */
#define PG_COMPILE 11
/* A kernel trapped. State that the run writes is as it was before, or has to be written anew. */
#define PG_TRAP 12
/* An input or a value has another size than its shape says. */
#define PG_SHAPE 13
/* Another thread is using the model. */
#define PG_BUSY 14
/* interrupt ended the run. State is as it was before. */
#define PG_INTERRUPTED 15
/* The run took longer than its timeout and was ended. State is as it was before. */
#define PG_TIMEOUT 16
/* A trap left state half-written: write or load all parameters and states first. */
#define PG_HALF_WRITTEN 17
/* There is nothing of that name or number. */
#define PG_NOT_FOUND 18

/* The type of a tensor's elements. */
typedef int32_t pg_dtype;
/* One byte, 0 or 1. */
#define PG_BOOL 0
#define PG_INT8 1
#define PG_UINT8 2
#define PG_INT16 3
#define PG_UINT16 4
#define PG_INT32 5
#define PG_UINT32 6
#define PG_INT64 7
#define PG_UINT64 8
#define PG_FP8E4M3 9
#define PG_FP8E5M2 10
#define PG_FLOAT16 11
#define PG_BFLOAT16 12
#define PG_FLOAT32 13
#define PG_FLOAT64 14

/* What a tensor is for. */
typedef int32_t pg_role;
/* Written before a run. It keeps its elements until it is written again. */
#define PG_INPUT 0
/* Written by a run. */
#define PG_OUTPUT 1
/* A parameter or a state: all entries of the model share it, and runs may write it. */
#define PG_VALUE 2

/* How a file is opened; these may be added up. */
typedef uint32_t pg_flags;
/* Run native code of the file, which may do whatever the process may. */
#define PG_TRUST_NATIVE 1u
/* Let timeouts and interrupt end runs. WebAssembly takes 10 to 270 % longer then. Native kernels end
 * where they have safepoints. Each run first copies what it writes of parameters and states. */
#define PG_STOPPABLE 2u
/* Do not compute the SHA-256 of the weights: the caller knows that the file is whole. All else is
 * checked. */
#define PG_TRUST_DIGESTS 4u

/* Why a call failed. */
typedef struct pg_error {
  pg_status status;
  /* UTF-8; its end is cut off where it is longer. */
  char message[508];
} pg_error;

/* How to open a file. Zeros are the defaults. */
typedef struct pg_options {
  pg_flags flags;
  /* The most threads of a run of native code; 0 stands for 1. */
  uint32_t threads;
  /* The most bytes of memory for buffers and weights; 0: no limit. */
  uint64_t max_bytes;
  /* The path of wasmtime's shared library. NULL: that of the environment variable PG_WASMTIME, else the
   * system's libwasmtime. */
  const char *wasmtime;
  /* Zeros. */
  uint64_t reserved[4];
} pg_options;

/* A description of a tensor. What it points to belongs to the model. */
typedef struct pg_tensor {
  const char *name;
  pg_dtype dtype;
  /* At most 64. */
  uint32_t rank;
  /* The size of each axis, the greatest one where it is a Variable. */
  const int64_t *shape;
  /* For each axis the index of the Variable that is its size, or -1. */
  const int32_t *variables;
  /* The bytes of the tensor with that shape. */
  uint64_t nbytes;
  /* Whether runs may write it: 1 for a state, 0 for a parameter and for others. */
  int32_t is_state;
} pg_tensor;

/* A Variable, an integer that each run is given. */
typedef struct pg_variable {
  const char *name;
  /* Its least value. */
  int64_t lo;
  /* Its greatest value. */
  int64_t hi;
} pg_variable;

/* The functions. Each says since which version of the table it is there. */
typedef struct pg_api {
  /* The version of this table: it may be greater than the one that was asked for. */
  uint32_t version;

  /* The version of the library, such as "0.1.0".
   *
   * The result is the library's. Since version 1. */
  const char *(*library_version)(void);

  /* The name of a status, such as "PG_DAMAGED"; "unknown" for other numbers.
   *
   * The result is the library's. Since version 1. */
  const char *(*status_name)(pg_status status);

  /* The name of a dtype, such as "float32"; "unknown" for other numbers.
   *
   * The result is the library's. Since version 1. */
  const char *(*dtype_name)(pg_dtype dtype);

  /* The bytes of an element; 0 for numbers that are no dtype.
   *
   * Since version 1. */
  uint32_t (*dtype_size)(pg_dtype dtype);

  /* Check a whole file in memory, for any device, and run nothing.
   *
   * data: The bytes of the file.
   *
   * Errors: PG_ARGUMENT, PG_FORMAT, PG_VERSION, PG_DIGEST, PG_DAMAGED, PG_MEMORY. Since version 1. */
  pg_status (*check)(const void *data, uint64_t nbytes, pg_error *error);

  /* Open the exported file of a path. It is mapped: it must not be changed in place while the model is
   * open.
   *
   * options: NULL: the defaults. model: Close it with close.
   *
   * Errors: PG_ARGUMENT, PG_IO, PG_FORMAT, PG_VERSION, PG_DIGEST, PG_DAMAGED, PG_TRUST, PG_UNSUPPORTED,
   * PG_MEMORY, PG_NO_ENGINE, PG_COMPILE. Since version 1. */
  pg_status (*open_path)(const char *path, const pg_options *options, pg_model **model, pg_error *error);

  /* Open the exported file in memory. The bytes are not needed after the call.
   *
   * options: NULL: the defaults. model: Close it with close.
   *
   * Errors: PG_ARGUMENT, PG_FORMAT, PG_VERSION, PG_DIGEST, PG_DAMAGED, PG_TRUST, PG_UNSUPPORTED,
   * PG_MEMORY, PG_NO_ENGINE, PG_COMPILE. Since version 1. */
  pg_status (*open_memory)(const void *data, uint64_t nbytes, const pg_options *options, pg_model **model,
      pg_error *error);

  /* Free a model; NULL is nothing. No other call on it may be running or come later.
   *
   * model: It is gone afterwards.
   *
   * Since version 1. */
  void (*close)(pg_model *model);

  /* The device that the file was exported for, such as "WASM".
   *
   * The result is the model's. Since version 1. */
  const char *(*device)(const pg_model *model);

  /* What the entries are for, such as "text-generation"; "" for an exported step.
   *
   * The result is the model's. Since version 1. */
  const char *(*kind)(const pg_model *model);

  /* The settings of the file, a JSON object; "{}" for an exported step.
   *
   * The result is the model's. Since version 1. */
  const char *(*settings)(const pg_model *model);

  /* How many other files the file has in it, such as a tokenizer.
   *
   * Since version 1. */
  uint32_t (*file_count)(const pg_model *model);

  /* The name and the bytes of a file in the file.
   *
   * name: The model's. data: The model's.
   *
   * Errors: PG_NOT_FOUND. Since version 1. */
  pg_status (*file)(const pg_model *model, uint32_t index, const char **name, const void **data,
      uint64_t *nbytes, pg_error *error);

  /* How many entries there are: Programs that share parameters and state. An exported step has one.
   *
   * Since version 1. */
  uint32_t (*entry_count)(const pg_model *model);

  /* The name of an entry, such as "decode"; "" for an exported step, NULL for a number that is too
   * large.
   *
   * The result is the model's. Since version 1. */
  const char *(*entry_name)(const pg_model *model, uint32_t entry);

  /* The index of the entry of a name.
   *
   * Errors: PG_NOT_FOUND. Since version 1. */
  pg_status (*find_entry)(const pg_model *model, const char *name, uint32_t *entry, pg_error *error);

  /* How many Variables an entry has; 0 for an entry that does not exist.
   *
   * Since version 1. */
  uint32_t (*variable_count)(const pg_model *model, uint32_t entry);

  /* A Variable of an entry.
   *
   * Errors: PG_NOT_FOUND. Since version 1. */
  pg_status (*variable)(const pg_model *model, uint32_t entry, uint32_t index, pg_variable *variable,
      pg_error *error);

  /* How many tensors an entry has in a role. PG_VALUE: of the model, whatever the entry.
   *
   * Since version 1. */
  uint32_t (*tensor_count)(const pg_model *model, uint32_t entry, pg_role role);

  /* The description of a tensor.
   *
   * entry: Ignored for PG_VALUE, here and below.
   *
   * Errors: PG_NOT_FOUND. Since version 1. */
  pg_status (*tensor)(const pg_model *model, uint32_t entry, pg_role role, uint32_t index,
      pg_tensor *tensor, pg_error *error);

  /* The index of the tensor of a name.
   *
   * Errors: PG_NOT_FOUND. Since version 1. */
  pg_status (*find_tensor)(const pg_model *model, uint32_t entry, pg_role role, const char *name,
      uint32_t *index, pg_error *error);

  /* Write an input, or a parameter or state. An input whose shape has Variables may have fewer bytes;
   * run compares them with the Variables' values. Others have nbytes of their description.
   *
   * data: It is copied.
   *
   * Errors: PG_NOT_FOUND, PG_SHAPE, PG_BUSY, PG_ARGUMENT. Since version 1. */
  pg_status (*write)(pg_model *model, uint32_t entry, pg_role role, uint32_t index, const void *data,
      uint64_t nbytes, pg_error *error);

  /* Copy the first nbytes of a tensor.
   *
   * nbytes: At most those of its description.
   *
   * Errors: PG_NOT_FOUND, PG_SHAPE, PG_BUSY, PG_HALF_WRITTEN, PG_ARGUMENT. Since version 1. */
  pg_status (*read)(pg_model *model, uint32_t entry, pg_role role, uint32_t index, void *data,
      uint64_t nbytes, pg_error *error);

  /* The memory of a tensor in the model, aligned to 64 bytes (to an element for weights of a mapped
   * file), which may be read and written between runs. An input counts as written with all its bytes
   * from then on.
   *
   * data: The model's.
   *
   * Errors: PG_NOT_FOUND, PG_BUSY, PG_HALF_WRITTEN. Since version 1. */
  pg_status (*view)(pg_model *model, uint32_t entry, pg_role role, uint32_t index, void **data,
      pg_error *error);

  /* The shape of a tensor with these values of the entry's Variables.
   *
   * variables: variable_count values; NULL if that is 0. shape: Room for as many sizes as the rank.
   *
   * Errors: PG_NOT_FOUND, PG_ARGUMENT. Since version 1. */
  pg_status (*shape)(const pg_model *model, uint32_t entry, pg_role role, uint32_t index,
      const int64_t *variables, int64_t *shape, pg_error *error);

  /* Run an entry on what its inputs hold. A training step writes the new state. The first run of an
   * entry compiles its code.
   *
   * variables: variable_count values, in their order; NULL if that is 0. timeout: Seconds; 0: none.
   * Others need PG_STOPPABLE.
   *
   * Errors: PG_NOT_FOUND, PG_ARGUMENT, PG_SHAPE, PG_BUSY, PG_TRAP, PG_INTERRUPTED, PG_TIMEOUT,
   * PG_HALF_WRITTEN, PG_MEMORY, PG_COMPILE. Since version 1. */
  pg_status (*run)(pg_model *model, uint32_t entry, const int64_t *variables, double timeout,
      pg_error *error);

  /* End the run of a model that was opened with PG_STOPPABLE, from any thread, also from a signal's
   * handler. It does nothing if none is running.
   *
   * Errors: PG_ARGUMENT. Since version 1. */
  pg_status (*interrupt)(pg_model *model);

  /* Take all parameters and states from a safetensors file, which has exactly these.
   *
   * Errors: PG_ARGUMENT, PG_IO, PG_DAMAGED, PG_SHAPE, PG_BUSY, PG_MEMORY. Since version 1. */
  pg_status (*load_values)(pg_model *model, const char *path, pg_error *error);

  /* Take all parameters and states from the bytes of a safetensors file, which has exactly these.
   *
   * Errors: PG_ARGUMENT, PG_DAMAGED, PG_SHAPE, PG_BUSY, PG_MEMORY. Since version 1. */
  pg_status (*load_values_memory)(pg_model *model, const void *data, uint64_t nbytes, pg_error *error);

  /* Write all parameters and states to a safetensors file, which replaces the one of that path when it
   * is whole.
   *
   * Errors: PG_ARGUMENT, PG_IO, PG_BUSY, PG_HALF_WRITTEN, PG_MEMORY. Since version 1. */
  pg_status (*save_values)(pg_model *model, const char *path, pg_error *error);

  /* The bytes of the file that save_values writes.
   *
   * Since version 1. */
  uint64_t (*values_size)(const pg_model *model);

  /* Write the bytes of the file that save_values writes.
   *
   * nbytes: As many as values_size says.
   *
   * Errors: PG_ARGUMENT, PG_BUSY, PG_HALF_WRITTEN, PG_MEMORY. Since version 1. */
  pg_status (*save_values_memory)(pg_model *model, void *data, uint64_t nbytes, pg_error *error);
} pg_api;

/* The table with the functions of all versions up to `version`, which a program passes as
 * PG_API_VERSION; NULL where this library is older. */
PG_EXPORT const pg_api *pg_get_api(uint32_t version);

#ifdef __cplusplus
}
#endif

#endif
