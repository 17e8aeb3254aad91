/* The functions of wasmtime's C API that wasm.c calls, found when a model is opened: no header and no library
 * of wasmtime is needed to build. Tried with wasmtime 50; structs of handles have room for those of other
 * versions. */

#ifndef PG_WASMTIME_API_H
#define PG_WASMTIME_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wasm_vector {
  size_t size;
  void *data;
};

struct wasm_limits {
  uint32_t min, max;
};

/* An argument of an unchecked call: 16 bytes, of which an i32 is the first four. */
union wasmtime_value {
  int32_t i32;
  _Alignas(16) uint8_t bytes[16];
};

/* wasmtime_func_t, wasmtime_memory_t and wasmtime_instance_t. */
struct wasmtime_handle {
  uint64_t words[4];
};

/* wasmtime_extern_t. */
struct wasmtime_extern {
  uint8_t kind;
  union {
    struct wasmtime_handle handle;
    void *pointer;
  } of;
};
enum { EXTERN_FUNCTION = 0, EXTERN_MEMORY = 3, EXTERN_SHARED_MEMORY = 4 };

enum { OPTIMIZE_FOR_SPEED = 1 };

/* F(result, name, parameters). Pointers to wasmtime's own structs are void pointers. */
#define WASMTIME_FUNCTIONS(F)                                                                                \
  F(void *, wasm_config_new, (void))                                                                         \
  F(void, wasmtime_config_cranelift_opt_level_set, (void *config, uint8_t level))                            \
  F(void, wasmtime_config_wasm_simd_set, (void *config, bool on))                                            \
  F(void, wasmtime_config_wasm_relaxed_simd_set, (void *config, bool on))                                    \
  F(void, wasmtime_config_parallel_compilation_set, (void *config, bool on))                                 \
  F(void, wasmtime_config_shared_memory_set, (void *config, bool on))                                        \
  F(void, wasmtime_config_epoch_interruption_set, (void *config, bool on))                                   \
  F(void *, wasm_engine_new_with_config, (void *config))                                                     \
  F(void, wasm_engine_delete, (void *engine))                                                                \
  F(void, wasmtime_engine_increment_epoch, (void *engine))                                                   \
  F(void *, wasmtime_store_new, (void *engine, void *data, void (*finalizer)(void *)))                       \
  F(void *, wasmtime_store_context, (void *store))                                                           \
  F(void, wasmtime_store_limiter,                                                                            \
    (void *store, int64_t bytes, int64_t elements, int64_t instances, int64_t tables, int64_t memories))     \
  F(void, wasmtime_store_delete, (void *store))                                                              \
  F(void, wasmtime_context_set_epoch_deadline, (void *context, uint64_t ticks))                              \
  F(void *, wasmtime_memorytype_new,                                                                         \
    (uint64_t min, bool has_max, uint64_t max, bool is_64, bool shared, uint8_t page_size_log2,              \
     void **type))                                                                                           \
  F(void, wasm_memorytype_delete, (void *type))                                                              \
  F(void *, wasmtime_memory_new, (void *context, const void *type, struct wasmtime_handle *memory))          \
  F(uint8_t *, wasmtime_memory_data, (void *context, const struct wasmtime_handle *memory))                  \
  F(void *, wasmtime_sharedmemory_new, (void *engine, const void *type, void **memory))                      \
  F(uint8_t *, wasmtime_sharedmemory_data, (const void *memory))                                             \
  F(void, wasmtime_sharedmemory_delete, (void *memory))                                                      \
  F(void *, wasmtime_module_new, (void *engine, const uint8_t *code, size_t length, void **module))          \
  F(void, wasmtime_module_imports, (const void *module, struct wasm_vector *imports))                        \
  F(void, wasm_importtype_vec_delete, (struct wasm_vector * imports))                                        \
  F(void, wasmtime_module_delete, (void *module))                                                            \
  F(void *, wasmtime_instance_new,                                                                           \
    (void *context, const void *module, const struct wasmtime_extern *imports, size_t count,                 \
     struct wasmtime_handle *instance, void **trap))                                                         \
  F(bool, wasmtime_instance_export_get,                                                                      \
    (void *context, const struct wasmtime_handle *instance, const char *name, size_t length,                 \
     struct wasmtime_extern *found))                                                                         \
  F(void *, wasmtime_func_type, (void *context, const struct wasmtime_handle *function))                     \
  F(const struct wasm_vector *, wasm_functype_params, (const void *type))                                    \
  F(const struct wasm_vector *, wasm_functype_results, (const void *type))                                   \
  F(uint8_t, wasm_valtype_kind, (const void *type))                                                          \
  F(void, wasm_functype_delete, (void *type))                                                                \
  F(void *, wasmtime_func_call_unchecked,                                                                    \
    (void *context, const struct wasmtime_handle *function, union wasmtime_value *values, size_t count,      \
     void **trap))                                                                                           \
  F(void, wasmtime_error_message, (const void *error, struct wasm_vector *message))                          \
  F(void, wasmtime_error_delete, (void *error))                                                              \
  F(void, wasm_trap_message, (const void *trap, struct wasm_vector *message))                                \
  F(void, wasm_trap_delete, (void *trap))                                                                    \
  F(void, wasm_byte_vec_delete, (struct wasm_vector * bytes))

struct wasmtime_api {
#define DECLARE(result, name, parameters) result(*name) parameters;
  WASMTIME_FUNCTIONS(DECLARE)
#undef DECLARE
};

#endif
