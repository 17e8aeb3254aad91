#define _GNU_SOURCE
#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "file_limits.h"
#include "model.h"
#include "object.h"

enum { PARTS_PER_THREAD = 4, SPINS_BEFORE_YIELD = 4096 };

typedef void kernel_function(uint8_t **pointers, int64_t *values);

/* A shared object, which several kernels may have, or the object file of one. */
struct library {
  struct bytes code;
  void *handle; /* NULL: of an object file */
  struct object object;
  struct library *next;
};

/* A launch. A thread's values of its variables are `values` after the start of the thread's. */
struct call {
  kernel_function *function;
  const struct kernel *kernel;
  uint8_t **pointers;
  size_t values;
  bool parallel, has_parts, barrier;
  uint32_t part;        /* the place of the part's number among the values */
  atomic_int *counters; /* for each thread, of the parts that are taken */
};

struct steps {
  struct call *calls;
  uint32_t count;
  size_t n_values; /* of a thread */
  int64_t *values; /* of all threads */
};

struct native {
  size_t nbytes; /* of memory */
  void *memory;
  struct library *libraries;
  uint32_t threads;
  pthread_t *workers;
  uint32_t n_workers;
  pthread_mutex_t mutex;
  pthread_cond_t posted;
  uint64_t jobs; /* how many were posted, guarded by `mutex` */
  bool closing;
  pg_model *model;
  struct steps *steps; /* of the job */
  uint32_t team;       /* the threads of the job */
  atomic_uint arrived, generation;
};

struct worker {
  struct native *native;
  uint32_t thread;
};

/* --- libraries */

static const char *temporary_folder(void) {
  const char *folder = getenv("TMPDIR");
  return folder && *folder ? folder : "/tmp";
}

/* Load a shared object from a file of its own, which is deleted: the system's linker loads a path only once.
 */
static void *load_library(struct bytes code, pg_error *error) {
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/polygrad-XXXXXX", temporary_folder());
  int file = length > 0 && (size_t)length < sizeof path ? mkstemp(path) : -1;
  if (file < 0) {
    fail(error, PG_COMPILE, "kernel: expected a temporary file for its code in %s, got none: set TMPDIR",
         temporary_folder());
    return NULL;
  }
  uint64_t done = 0;
  while (done < code.length) {
    ssize_t written = write(file, code.data + done, code.length - done);
    if (written <= 0)
      break;
    done += (uint64_t)written;
  }
  close(file);
  void *handle = done == code.length ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  if (!handle) {
    const char *reason = done == code.length ? dlerror() : "the file system is full";
    fail(error, PG_COMPILE, "kernel: its shared object does not load on this machine: %s",
         reason ? reason : "");
  }
  unlink(path);
  return handle;
}

/* The library with the code of a kernel. */
static pg_status find_library(pg_model *model, const struct kernel *kernel, struct library **found,
                              pg_error *error) {
  struct native *native = model->opened;
  struct bytes code = kernel->code;
  for (*found = native->libraries; *found; *found = (*found)->next)
    if ((*found)->code.length == code.length && !memcmp((*found)->code.data, code.data, code.length))
      return PG_OK;
  struct library *library = pool_take(&model->pool, 1, sizeof *library);
  if (!library)
    return out_of_memory(error);
  library->code = code;
  if (kernel->language == LANGUAGE_OBJECT) {
    pg_status status = object_load(code, kernel->name, &model->stop.word, &library->object, error);
    if (status)
      return status;
  } else {
    if (!(library->handle = load_library(code, error)))
      return PG_COMPILE;
    const int64_t **word = (const int64_t **)dlsym(library->handle, "polygrad_stop");
    if (word) /* kernels with safepoints read it */
      *word = &model->stop.word;
  }
  library->next = native->libraries;
  *found = native->libraries = library;
  return PG_OK;
}

/* --- launches */

static pg_status prepare_call(pg_model *model, struct entry *entry, struct steps *steps, uint32_t number,
                              pg_error *error) {
  const struct launch *launch = &entry->program->launches[number];
  const struct kernel *kernel = &entry->program->kernels[launch->kernel];
  struct native *native = model->opened;
  struct call *call = &steps->calls[number];
  struct library *library = NULL;
  pg_status status = find_library(model, kernel, &library, error);
  if (status)
    return status;
  void *symbol = library->handle ? dlsym(library->handle, kernel->name.data) : library->object.function;
  if (!symbol)
    return fail(error, PG_COMPILE, "kernel %.100s: its shared object has no such function",
                kernel->name.data);
  memcpy(&call->function, &symbol, sizeof symbol);
  call->kernel = kernel;
  call->parallel = kernel->parallel;
  call->barrier = launch->barrier;
  call->values = steps->n_values;
  steps->n_values += kernel->n_variables;
  call->pointers = pool_take(&model->pool, kernel->pointers, sizeof *call->pointers);
  call->counters = pool_take(&model->pool, native->threads, sizeof *call->counters);
  if (model->pool.failed)
    return out_of_memory(error);
  for (uint32_t i = 0; i < kernel->pointers; i++)
    call->pointers[i] = entry->addresses[launch->bindings[i].buffer] + launch->bindings[i].offset;
  for (uint32_t i = 0; i < kernel->n_variables; i++)
    if (kernel->variables[i] == OF_PART) {
      call->has_parts = true;
      call->part = i;
    }
  return PG_OK;
}

static pg_status native_prepare(pg_model *model, struct entry *entry, pg_error *error) {
  const struct program *program = entry->program;
  struct native *native = model->opened;
  struct steps *steps = pool_take(&model->pool, 1, sizeof *steps);
  if (!steps || !(steps->calls = pool_take(&model->pool, program->n_launches, sizeof *steps->calls)))
    return out_of_memory(error);
  steps->count = program->n_launches;
  for (uint32_t i = 0; i < steps->count; i++) {
    pg_status status = prepare_call(model, entry, steps, i, error);
    if (status)
      return status;
  }
  steps->n_values = (steps->n_values + 7) / 8 * 8; /* no two threads' values in one cache line */
  if (!(steps->values =
            pool_take(&model->pool, steps->n_values * native->threads + 8, sizeof *steps->values)))
    return out_of_memory(error);
  entry->prepared = steps;
  return PG_OK;
}

static void set_values(struct steps *steps, const int64_t *variables, uint32_t team) {
  for (uint32_t thread = 0; thread < team; thread++)
    for (uint32_t i = 0; i < steps->count; i++) {
      const struct kernel *kernel = steps->calls[i].kernel;
      int64_t *values = steps->values + thread * steps->n_values + steps->calls[i].values;
      for (uint32_t j = 0; j < kernel->n_variables; j++) {
        int32_t v = kernel->variables[j];
        values[j] = v >= 0            ? variables[v]
                    : v == OF_THREAD  ? (int64_t)thread
                    : v == OF_THREADS ? (int64_t)team
                    : v == OF_PARTS   ? (team > 1 ? (int64_t)team * PARTS_PER_THREAD : 1)
                                      : 0;
      }
    }
}

/* --- threads */

static void wait_for_all(struct native *native) {
  unsigned generation = atomic_load(&native->generation);
  if (atomic_fetch_add(&native->arrived, 1) + 1 == native->team) {
    atomic_store(&native->arrived, 0);
    atomic_fetch_add(&native->generation, 1);
    return;
  }
  for (unsigned spins = 0; atomic_load(&native->generation) == generation; spins++)
    if (spins > SPINS_BEFORE_YIELD)
      sched_yield();
}

/* A thread's own parts first, then those that others have not taken. */
static void run_parts(struct native *native, struct call *call, int64_t *values, uint32_t thread) {
  for (uint32_t turn = 0, owner = thread; turn < native->team; turn++) {
    int taken;
    while ((taken = atomic_fetch_add(&call->counters[owner], 1)) < PARTS_PER_THREAD) {
      values[call->part] = (int64_t)owner * PARTS_PER_THREAD + taken;
      call->function(call->pointers, values);
    }
    owner = owner + 1 == native->team ? 0 : owner + 1;
  }
}

/* A thread's share of a run. Kernels that have begun to stop leave the others out, but no barrier. */
static void run_share(struct native *native, uint32_t thread) {
  struct steps *steps = native->steps;
  const int64_t *stop = &native->model->stop.word;
  for (uint32_t i = 0; i < steps->count; i++) {
    struct call *call = &steps->calls[i];
    int64_t *values = steps->values + thread * steps->n_values + call->values;
    if (call->barrier && native->team > 1)
      wait_for_all(native);
    if ((thread && !call->parallel) || __atomic_load_n(stop, __ATOMIC_RELAXED))
      continue;
    if (call->has_parts && native->team > 1)
      run_parts(native, call, values, thread);
    else
      call->function(call->pointers, values);
  }
  if (native->team > 1)
    wait_for_all(native);
}

static void *serve(void *argument) {
  struct worker worker = *(struct worker *)argument;
  struct native *native = worker.native;
  uint64_t seen = 0;
  free(argument);
  for (;;) {
    pthread_mutex_lock(&native->mutex);
    while (native->jobs == seen && !native->closing)
      pthread_cond_wait(&native->posted, &native->mutex);
    seen = native->jobs;
    bool closing = native->closing, mine = worker.thread < native->team;
    pthread_mutex_unlock(&native->mutex);
    if (closing)
      return NULL;
    if (mine)
      run_share(native, worker.thread);
  }
}

/* Start workers that are missing; as many threads as there are take part. */
static uint32_t start_workers(struct native *native, uint32_t team) {
  while (native->n_workers + 1 < team) {
    struct worker *worker = malloc(sizeof *worker);
    if (!worker)
      break;
    *worker = (struct worker){native, native->n_workers + 1};
    if (pthread_create(&native->workers[native->n_workers], NULL, serve, worker)) {
      free(worker);
      break;
    }
    native->n_workers++;
  }
  return native->n_workers + 1 < team ? native->n_workers + 1 : team;
}

static pg_status native_run(pg_model *model, struct entry *entry, const int64_t *variables, pg_error *error) {
  struct native *native = model->opened;
  struct steps *steps = entry->prepared;
  uint32_t most =
      entry->program->threads < native->threads ? (uint32_t)entry->program->threads : native->threads;
  (void)error;
  uint32_t team = start_workers(native, most);
  set_values(steps, variables, team);
  for (uint32_t i = 0; team > 1 && i < steps->count; i++)
    for (uint32_t j = 0; j < team; j++)
      atomic_store(&steps->calls[i].counters[j], 0);
  pthread_mutex_lock(&native->mutex);
  native->steps = steps;
  native->team = team;
  native->jobs += team > 1;
  if (team > 1)
    pthread_cond_broadcast(&native->posted);
  pthread_mutex_unlock(&native->mutex);
  run_share(native, 0);
  return PG_OK;
}

/* --- memory */

static pg_status native_open(pg_model *model, uint64_t nbytes, pg_error *error) {
  struct native *native = pool_take(&model->pool, 1, sizeof *native);
  if (!native)
    return out_of_memory(error);
  native->model = model;
  uint32_t threads = model->options.threads ? model->options.threads : 1;
  native->threads = threads < MAX_THREADS ? threads : MAX_THREADS;
  if (!(native->workers = pool_take(&model->pool, native->threads, sizeof *native->workers)))
    return out_of_memory(error);
  void *memory = nbytes > SIZE_MAX
                     ? MAP_FAILED
                     : mmap(NULL, (size_t)nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return out_of_memory(error);
#ifdef MADV_HUGEPAGE
  madvise(memory, (size_t)nbytes, MADV_HUGEPAGE); /* a wish */
#endif
  native->memory = memory;
  native->nbytes = (size_t)nbytes;
  model->base = memory;
  pthread_mutex_init(&native->mutex, NULL);
  pthread_cond_init(&native->posted, NULL);
  model->opened = native;
  return PG_OK;
}

static void native_stop(pg_model *model) {
  __atomic_store_n(&model->stop.word, 1, __ATOMIC_RELAXED);
}

static void native_close(pg_model *model) {
  struct native *native = model->opened;
  if (!native)
    return;
  pthread_mutex_lock(&native->mutex);
  native->closing = true;
  pthread_cond_broadcast(&native->posted);
  pthread_mutex_unlock(&native->mutex);
  for (uint32_t i = 0; i < native->n_workers; i++)
    pthread_join(native->workers[i], NULL);
  for (struct library *l = native->libraries; l; l = l->next)
    if (l->handle)
      dlclose(l->handle);
    else
      object_unload(&l->object);
  pthread_cond_destroy(&native->posted);
  pthread_mutex_destroy(&native->mutex);
  munmap(native->memory, native->nbytes);
}

const struct engine native_engine = {
    native_open, native_prepare, native_run, native_stop, native_close, ALIGN, UINT64_MAX,
};
