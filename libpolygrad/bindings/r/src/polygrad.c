/* What R/model.R calls: libpolygrad's functions on R's arrays. R's arrays are in column-major order and have
 * integers of 32 bits and doubles; tensors are in row-major order and have all dtypes. */

#include "polygrad.h"

#include <R.h>
#include <R_ext/Rdynload.h>
#include <Rinternals.h>
#include <dlfcn.h>
#include <math.h>
#include <string.h>

#define MOST_AXES 64
#define NO_LIBRARY (-1)

static const pg_api *api;

/* Raise a condition of the status' class: R/errors.R. */
static void fail(int32_t status, const char *message) {
  SEXP name = PROTECT(Rf_mkString("polygrad"));
  SEXP find = PROTECT(Rf_lang2(Rf_install("getNamespace"), name));
  SEXP space = PROTECT(Rf_eval(find, R_BaseEnv));
  SEXP text = PROTECT(Rf_ScalarString(Rf_mkCharCE(message, CE_UTF8)));
  SEXP number = PROTECT(Rf_ScalarInteger(status));
  SEXP call = PROTECT(Rf_lang3(Rf_install("fail"), number, text));
  Rf_eval(call, space);
  UNPROTECT(6);
}

static void check(pg_status status, const pg_error *error) {
  if (status != PG_OK) fail(status, error->message);
}

#ifdef __APPLE__
#define LIBRARY_NAME "libpolygrad.dylib"
#else
#define LIBRARY_NAME "libpolygrad.so.0"
#endif

/* Open the library: the one that POLYGRAD_LIBRARY names, else the system's. */
static void open_library(void) {
  if (api) return;
  const char *given = getenv("POLYGRAD_LIBRARY");
  void *library = dlopen(given ? given : LIBRARY_NAME, RTLD_NOW);
  const char *reason = library ? "it is older than this package" : dlerror();
  void *get = library ? dlsym(library, "pg_get_api") : NULL;
  if (get) api = ((const pg_api *(*)(uint32_t))get)(PG_API_VERSION);
  if (api) return;
  char text[600];
  snprintf(text, sizeof text, "libpolygrad: %s: install libpolygrad, or let POLYGRAD_LIBRARY be its path", reason);
  fail(NO_LIBRARY, text);
}

static pg_model *model_of(SEXP pointer) {
  pg_model *model = R_ExternalPtrAddr(pointer);
  if (!model) fail(PG_ARGUMENT, "the model is closed, or was saved by another session of R");
  return model;
}

static SEXP close_model(SEXP pointer) {
  pg_model *model = R_ExternalPtrAddr(pointer);
  if (model) api->close(model);
  R_ClearExternalPtr(pointer);
  return R_NilValue;
}

static void finalize(SEXP pointer) { close_model(pointer); }

/* source: a path or a raw vector; options: flags, threads, max_bytes; wasmtime: a path or NULL. */
static SEXP open_model(SEXP source, SEXP options, SEXP wasmtime) {
  open_library();
  pg_options o = {0};
  o.flags = (pg_flags)REAL(options)[0];
  o.threads = (uint32_t)REAL(options)[1];
  o.max_bytes = (uint64_t)REAL(options)[2];
  if (wasmtime != R_NilValue) o.wasmtime = Rf_translateCharUTF8(STRING_ELT(wasmtime, 0));
  pg_model *model = NULL;
  pg_error error;
  SEXP pointer = PROTECT(R_MakeExternalPtr(NULL, R_NilValue, R_NilValue));
  R_RegisterCFinalizerEx(pointer, finalize, TRUE);
  pg_status status = TYPEOF(source) == RAWSXP
                         ? api->open_memory(RAW(source), (uint64_t)XLENGTH(source), &o, &model, &error)
                         : api->open_path(Rf_translateCharUTF8(STRING_ELT(source, 0)), &o, &model, &error);
  check(status, &error);
  R_SetExternalPtrAddr(pointer, model);
  UNPROTECT(1);
  return pointer;
}

/* A list with names. */
static SEXP named(int count, const char *const *names) {
  SEXP list = PROTECT(Rf_allocVector(VECSXP, count));
  SEXP texts = PROTECT(Rf_allocVector(STRSXP, count));
  for (int i = 0; i < count; i++) SET_STRING_ELT(texts, i, Rf_mkChar(names[i]));
  Rf_setAttrib(list, R_NamesSymbol, texts);
  UNPROTECT(2);
  return list;
}

static SEXP text_of(const char *text) {
  SEXP found = PROTECT(Rf_mkCharCE(text ? text : "", CE_UTF8));
  SEXP out = Rf_ScalarString(found);
  UNPROTECT(1);
  return out;
}

static SEXP describe_tensor(pg_model *model, uint32_t entry, pg_role role, uint32_t index) {
  static const char *const fields[] = {"name", "dtype", "shape", "variables", "is_state"};
  pg_tensor t;
  pg_error error;
  check(api->tensor(model, entry, role, index, &t, &error), &error);
  SEXP out = PROTECT(named(5, fields));
  SET_VECTOR_ELT(out, 0, text_of(t.name));
  SET_VECTOR_ELT(out, 1, Rf_ScalarInteger(t.dtype));
  SEXP shape = Rf_allocVector(REALSXP, t.rank);
  SET_VECTOR_ELT(out, 2, shape);
  SEXP variables = Rf_allocVector(INTSXP, t.rank);
  SET_VECTOR_ELT(out, 3, variables);
  for (uint32_t i = 0; i < t.rank; i++) {
    REAL(shape)[i] = (double)t.shape[i];
    INTEGER(variables)[i] = t.variables[i] + 1;
  }
  SET_VECTOR_ELT(out, 4, Rf_ScalarLogical(t.is_state));
  UNPROTECT(1);
  return out;
}

static SEXP describe_tensors(pg_model *model, uint32_t entry, pg_role role) {
  uint32_t count = api->tensor_count(model, entry, role);
  SEXP out = PROTECT(Rf_allocVector(VECSXP, count));
  for (uint32_t i = 0; i < count; i++) SET_VECTOR_ELT(out, i, describe_tensor(model, entry, role, i));
  UNPROTECT(1);
  return out;
}

static SEXP describe_variable(pg_model *model, uint32_t entry, uint32_t index) {
  static const char *const fields[] = {"name", "lo", "hi"};
  pg_variable v;
  pg_error error;
  check(api->variable(model, entry, index, &v, &error), &error);
  SEXP out = PROTECT(named(3, fields));
  SET_VECTOR_ELT(out, 0, text_of(v.name));
  SET_VECTOR_ELT(out, 1, Rf_ScalarReal((double)v.lo));
  SET_VECTOR_ELT(out, 2, Rf_ScalarReal((double)v.hi));
  UNPROTECT(1);
  return out;
}

static SEXP describe_entry(pg_model *model, uint32_t entry) {
  static const char *const fields[] = {"name", "inputs", "outputs", "variables"};
  SEXP out = PROTECT(named(4, fields));
  SET_VECTOR_ELT(out, 0, text_of(api->entry_name(model, entry)));
  SET_VECTOR_ELT(out, 1, describe_tensors(model, entry, PG_INPUT));
  SET_VECTOR_ELT(out, 2, describe_tensors(model, entry, PG_OUTPUT));
  uint32_t count = api->variable_count(model, entry);
  SEXP variables = Rf_allocVector(VECSXP, count);
  SET_VECTOR_ELT(out, 3, variables);
  for (uint32_t i = 0; i < count; i++) SET_VECTOR_ELT(variables, i, describe_variable(model, entry, i));
  UNPROTECT(1);
  return out;
}

/* All that the model says of itself. */
static SEXP describe(SEXP pointer) {
  static const char *const fields[] = {"device", "kind", "settings", "entries", "values"};
  pg_model *model = model_of(pointer);
  SEXP out = PROTECT(named(5, fields));
  SET_VECTOR_ELT(out, 0, text_of(api->device(model)));
  SET_VECTOR_ELT(out, 1, text_of(api->kind(model)));
  SET_VECTOR_ELT(out, 2, text_of(api->settings(model)));
  uint32_t count = api->entry_count(model);
  SEXP entries = Rf_allocVector(VECSXP, count);
  SET_VECTOR_ELT(out, 3, entries);
  for (uint32_t i = 0; i < count; i++) SET_VECTOR_ELT(entries, i, describe_entry(model, i));
  SET_VECTOR_ELT(out, 4, describe_tensors(model, 0, PG_VALUE));
  UNPROTECT(1);
  return out;
}

/* Goes through an array in row-major order; `at` is the place in column-major order. */
typedef struct {
  int rank;
  R_xlen_t sizes[MOST_AXES], strides[MOST_AXES], index[MOST_AXES], at;
} Walk;

static Walk walk(SEXP sizes) {
  Walk w = {.rank = (int)XLENGTH(sizes)};
  R_xlen_t stride = 1;
  for (int k = 0; k < w.rank; k++) {
    w.sizes[k] = (R_xlen_t)REAL(sizes)[k];
    w.strides[k] = stride;
    stride *= w.sizes[k];
  }
  return w;
}

static void step(Walk *w) {
  for (int k = w->rank - 1; k >= 0; k--) {
    w->at += w->strides[k];
    if (++w->index[k] < w->sizes[k]) return;
    w->at -= w->strides[k] * w->sizes[k];
    w->index[k] = 0;
  }
}

/* Floats of 16 bits with `mantissa` bits behind the point; rounded to nearest, ties to even. */
static uint16_t to_half(double value, int mantissa) {
  int bias = (1 << (14 - mantissa)) - 1, infinity = ((1 << (15 - mantissa)) - 1) << mantissa, exponent;
  int sign = signbit(value) ? 0x8000 : 0;
  if (isnan(value)) return (uint16_t)(sign | infinity | 1 << (mantissa - 1));
  if (isinf(value)) return (uint16_t)(sign | infinity);
  frexp(value, &exponent);
  exponent = value == 0 || exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
  double units = nearbyint(ldexp(fabs(value), mantissa - exponent));
  double bits = ldexp(exponent + bias - 1, mantissa) + units;
  return (uint16_t)(sign | (bits > infinity ? infinity : (int)bits));
}

static double from_half(uint16_t bits, int mantissa) {
  int all = (1 << (15 - mantissa)) - 1, exponent = bits >> mantissa & all;
  int fraction = bits & ((1 << mantissa) - 1), bias = all >> 1;
  double value = exponent == all ? (fraction ? R_NaN : R_PosInf)
                 : exponent      ? ldexp(fraction + (1 << mantissa), exponent - bias - mantissa)
                                 : ldexp(fraction, 1 - bias - mantissa);
  return bits & 0x8000 ? -value : value;
}

static double element(SEXP array, R_xlen_t at) {
  switch (TYPEOF(array)) {
    case RAWSXP: return RAW(array)[at];
    case LGLSXP: return LOGICAL(array)[at] == NA_LOGICAL ? NA_REAL : LOGICAL(array)[at];
    case INTSXP: return INTEGER(array)[at] == NA_INTEGER ? NA_REAL : INTEGER(array)[at];
    default: return REAL(array)[at];
  }
}

/* Elements of integer types: those that are whole and in range. */
#define INTEGERS(type, low, high)                                                              \
  for (R_xlen_t i = 0; i < count; i++, step(&w)) {                                             \
    double value = element(array, w.at);                                                       \
    if (!(value >= (low) && value <= (high)) || value != floor(value)) return value;           \
    ((type *)out)[i] = (type)value;                                                            \
  }                                                                                            \
  return 0
#define FLOATS(type, convert)                                      \
  for (R_xlen_t i = 0; i < count; i++, step(&w)) {                 \
    double value = element(array, w.at);                           \
    ((type *)out)[i] = (type)(convert);                            \
  }                                                                \
  return 0

/* Write an array in row-major order. The first element that the dtype does not have, or 0. */
static double to_rows(SEXP array, SEXP sizes, R_xlen_t count, pg_dtype dtype, void *out) {
  Walk w = walk(sizes);
  switch (dtype) {
    case PG_BOOL: INTEGERS(uint8_t, 0, 1);
    case PG_INT8: INTEGERS(int8_t, -128, 127);
    case PG_UINT8: INTEGERS(uint8_t, 0, 255);
    case PG_INT16: INTEGERS(int16_t, -32768, 32767);
    case PG_UINT16: INTEGERS(uint16_t, 0, 65535);
    case PG_INT32: INTEGERS(int32_t, -0x1p31, 0x1p31 - 1);
    case PG_UINT32: INTEGERS(uint32_t, 0, 0x1p32 - 1);
    case PG_INT64: INTEGERS(int64_t, -0x1p53, 0x1p53);
    case PG_UINT64: INTEGERS(uint64_t, 0, 0x1p53);
    case PG_FLOAT16: FLOATS(uint16_t, to_half(value, 10));
    case PG_BFLOAT16: FLOATS(uint16_t, to_half(value, 7));
    case PG_FLOAT32: FLOATS(float, value);
    default: FLOATS(double, value);
  }
}

#define READ(access, type, convert)                                \
  for (R_xlen_t i = 0; i < count; i++, step(&w)) {                 \
    type value = ((const type *)data)[i];                          \
    access(out)[w.at] = (convert);                                 \
  }                                                                \
  break

/* An array of elements in row-major order. An int32 that is R's NA makes an array of doubles. */
static SEXP from_rows(const void *data, SEXP sizes, R_xlen_t count, pg_dtype dtype) {
  Walk w = walk(sizes);
  int is_small = dtype >= PG_INT8 && dtype <= PG_INT32;
  for (R_xlen_t i = 0; dtype == PG_INT32 && i < count; i++) is_small &= ((const int32_t *)data)[i] != NA_INTEGER;
  SEXP out = PROTECT(Rf_allocVector(dtype == PG_BOOL ? LGLSXP : is_small ? INTSXP : REALSXP, count));
  switch (dtype) {
    case PG_BOOL: READ(LOGICAL, uint8_t, value != 0);
    case PG_INT8: READ(INTEGER, int8_t, value);
    case PG_UINT8: READ(INTEGER, uint8_t, value);
    case PG_INT16: READ(INTEGER, int16_t, value);
    case PG_UINT16: READ(INTEGER, uint16_t, value);
    case PG_INT32:
      if (is_small) {
        READ(INTEGER, int32_t, value);
      } else {
        READ(REAL, int32_t, value);
      }
      break;
    case PG_UINT32: READ(REAL, uint32_t, value);
    case PG_INT64: READ(REAL, int64_t, (double)value);
    case PG_UINT64: READ(REAL, uint64_t, (double)value);
    case PG_FLOAT16: READ(REAL, uint16_t, from_half(value, 10));
    case PG_BFLOAT16: READ(REAL, uint16_t, from_half(value, 7));
    case PG_FLOAT32: READ(REAL, float, value);
    default: READ(REAL, double, value);
  }
  UNPROTECT(1);
  return out;
}

/* The elements of a shape, and their bytes. */
static R_xlen_t elements(SEXP sizes, pg_dtype dtype, uint64_t *nbytes) {
  R_xlen_t count = 1;
  for (R_xlen_t k = 0; k < XLENGTH(sizes); k++) count *= (R_xlen_t)REAL(sizes)[k];
  if (dtype == PG_FP8E4M3 || dtype == PG_FP8E5M2 || !api->dtype_size(dtype))
    fail(PG_UNSUPPORTED, "R has no floats of 8 bits");
  *nbytes = (uint64_t)count * api->dtype_size(dtype);
  return count;
}

/* place: entry, role, index (from 0) and dtype. */
static SEXP write_tensor(SEXP pointer, SEXP place, SEXP array, SEXP sizes) {
  pg_model *model = model_of(pointer);
  const int *at = INTEGER(place);
  uint64_t nbytes;
  R_xlen_t count = elements(sizes, at[3], &nbytes);
  void *data = R_alloc(nbytes ? nbytes : 1, 1);
  double wrong = to_rows(array, sizes, count, at[3], data);
  if (wrong != 0) {
    char text[100];
    snprintf(text, sizeof text, "expected elements of dtype %s, got %g", api->dtype_name(at[3]), wrong);
    fail(PG_ARGUMENT, text);
  }
  pg_error error;
  check(api->write(model, (uint32_t)at[0], at[1], (uint32_t)at[2], data, nbytes, &error), &error);
  return R_NilValue;
}

static SEXP read_tensor(SEXP pointer, SEXP place, SEXP sizes) {
  pg_model *model = model_of(pointer);
  const int *at = INTEGER(place);
  uint64_t nbytes;
  R_xlen_t count = elements(sizes, at[3], &nbytes);
  void *data = NULL;
  pg_error error;
  check(api->view(model, (uint32_t)at[0], at[1], (uint32_t)at[2], &data, &error), &error);
  return from_rows(data, sizes, count, at[3]);
}

static SEXP run_entry(SEXP pointer, SEXP entry, SEXP variables, SEXP timeout) {
  pg_model *model = model_of(pointer);
  R_xlen_t count = XLENGTH(variables);
  int64_t *values = (int64_t *)R_alloc((size_t)count + 1, sizeof(int64_t));
  for (R_xlen_t i = 0; i < count; i++) values[i] = (int64_t)REAL(variables)[i];
  pg_error error;
  check(api->run(model, (uint32_t)INTEGER(entry)[0], values, REAL(timeout)[0], &error), &error);
  return R_NilValue;
}

/* To a path, or as raw for NULL. */
static SEXP save(SEXP pointer, SEXP path) {
  pg_model *model = model_of(pointer);
  pg_error error;
  if (path != R_NilValue) {
    check(api->save_values(model, Rf_translateCharUTF8(STRING_ELT(path, 0)), &error), &error);
    return R_NilValue;
  }
  uint64_t size = api->values_size(model);
  SEXP out = PROTECT(Rf_allocVector(RAWSXP, (R_xlen_t)size));
  check(api->save_values_memory(model, RAW(out), size, &error), &error);
  UNPROTECT(1);
  return out;
}

static SEXP load(SEXP pointer, SEXP source) {
  pg_model *model = model_of(pointer);
  pg_error error;
  pg_status status = TYPEOF(source) == RAWSXP
                         ? api->load_values_memory(model, RAW(source), (uint64_t)XLENGTH(source), &error)
                         : api->load_values(model, Rf_translateCharUTF8(STRING_ELT(source, 0)), &error);
  check(status, &error);
  return R_NilValue;
}

static SEXP file(SEXP pointer, SEXP name) {
  pg_model *model = model_of(pointer);
  const char *wanted = Rf_translateCharUTF8(STRING_ELT(name, 0));
  for (uint32_t i = 0; i < api->file_count(model); i++) {
    const char *found;
    const void *data;
    uint64_t nbytes;
    pg_error error;
    check(api->file(model, i, &found, &data, &nbytes, &error), &error);
    if (strcmp(found, wanted)) continue;
    SEXP out = Rf_allocVector(RAWSXP, (R_xlen_t)nbytes);
    memcpy(RAW(out), data, nbytes);
    return out;
  }
  fail(PG_NOT_FOUND, "the model has no file of that name");
  return R_NilValue;
}

#define CALL(function, count) {#function, (DL_FUNC)&function, count}

void R_init_polygrad(DllInfo *info) {
  static const R_CallMethodDef calls[] = {
      CALL(open_model, 3), CALL(close_model, 1),  CALL(describe, 1), CALL(write_tensor, 4), CALL(read_tensor, 3),
      CALL(run_entry, 4),  CALL(save, 2),         CALL(load, 2),     CALL(file, 2),         {NULL, NULL, 0}};
  R_registerRoutines(info, NULL, calls, NULL, NULL);
  R_useDynamicSymbols(info, FALSE);
}
