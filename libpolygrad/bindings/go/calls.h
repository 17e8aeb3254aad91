/* Calls of the functions in libpolygrad's table.
 * Written by scripts/generate_bindings.py from libpolygrad/manifest.json: do not edit. */

#include "polygrad.h"

static inline const char *call_library_version(const pg_api *api) {
  return api->library_version();
}

static inline const char *call_status_name(const pg_api *api, pg_status status) {
  return api->status_name(status);
}

static inline const char *call_dtype_name(const pg_api *api, pg_dtype dtype) {
  return api->dtype_name(dtype);
}

static inline uint32_t call_dtype_size(const pg_api *api, pg_dtype dtype) {
  return api->dtype_size(dtype);
}

static inline pg_status call_check(const pg_api *api, const void *data, uint64_t nbytes, pg_error *error) {
  return api->check(data, nbytes, error);
}

static inline pg_status call_open_path(const pg_api *api, const char *path, const pg_options *options, pg_model **model, pg_error *error) {
  return api->open_path(path, options, model, error);
}

static inline pg_status call_open_memory(const pg_api *api, const void *data, uint64_t nbytes, const pg_options *options, pg_model **model, pg_error *error) {
  return api->open_memory(data, nbytes, options, model, error);
}

static inline void call_close(const pg_api *api, pg_model *model) {
  api->close(model);
}

static inline const char *call_device(const pg_api *api, const pg_model *model) {
  return api->device(model);
}

static inline const char *call_kind(const pg_api *api, const pg_model *model) {
  return api->kind(model);
}

static inline const char *call_settings(const pg_api *api, const pg_model *model) {
  return api->settings(model);
}

static inline uint32_t call_file_count(const pg_api *api, const pg_model *model) {
  return api->file_count(model);
}

static inline pg_status call_file(const pg_api *api, const pg_model *model, uint32_t index, const char **name, const void **data, uint64_t *nbytes, pg_error *error) {
  return api->file(model, index, name, data, nbytes, error);
}

static inline uint32_t call_entry_count(const pg_api *api, const pg_model *model) {
  return api->entry_count(model);
}

static inline const char *call_entry_name(const pg_api *api, const pg_model *model, uint32_t entry) {
  return api->entry_name(model, entry);
}

static inline pg_status call_find_entry(const pg_api *api, const pg_model *model, const char *name, uint32_t *entry, pg_error *error) {
  return api->find_entry(model, name, entry, error);
}

static inline uint32_t call_variable_count(const pg_api *api, const pg_model *model, uint32_t entry) {
  return api->variable_count(model, entry);
}

static inline pg_status call_variable(const pg_api *api, const pg_model *model, uint32_t entry, uint32_t index, pg_variable *variable, pg_error *error) {
  return api->variable(model, entry, index, variable, error);
}

static inline uint32_t call_tensor_count(const pg_api *api, const pg_model *model, uint32_t entry, pg_role role) {
  return api->tensor_count(model, entry, role);
}

static inline pg_status call_tensor(const pg_api *api, const pg_model *model, uint32_t entry, pg_role role, uint32_t index, pg_tensor *tensor, pg_error *error) {
  return api->tensor(model, entry, role, index, tensor, error);
}

static inline pg_status call_find_tensor(const pg_api *api, const pg_model *model, uint32_t entry, pg_role role, const char *name, uint32_t *index, pg_error *error) {
  return api->find_tensor(model, entry, role, name, index, error);
}

static inline pg_status call_write(const pg_api *api, pg_model *model, uint32_t entry, pg_role role, uint32_t index, const void *data, uint64_t nbytes, pg_error *error) {
  return api->write(model, entry, role, index, data, nbytes, error);
}

static inline pg_status call_read(const pg_api *api, pg_model *model, uint32_t entry, pg_role role, uint32_t index, void *data, uint64_t nbytes, pg_error *error) {
  return api->read(model, entry, role, index, data, nbytes, error);
}

static inline pg_status call_view(const pg_api *api, pg_model *model, uint32_t entry, pg_role role, uint32_t index, void **data, pg_error *error) {
  return api->view(model, entry, role, index, data, error);
}

static inline pg_status call_shape(const pg_api *api, const pg_model *model, uint32_t entry, pg_role role, uint32_t index, const int64_t *variables, int64_t *shape, pg_error *error) {
  return api->shape(model, entry, role, index, variables, shape, error);
}

static inline pg_status call_run(const pg_api *api, pg_model *model, uint32_t entry, const int64_t *variables, double timeout, pg_error *error) {
  return api->run(model, entry, variables, timeout, error);
}

static inline pg_status call_interrupt(const pg_api *api, pg_model *model) {
  return api->interrupt(model);
}

static inline pg_status call_load_values(const pg_api *api, pg_model *model, const char *path, pg_error *error) {
  return api->load_values(model, path, error);
}

static inline pg_status call_load_values_memory(const pg_api *api, pg_model *model, const void *data, uint64_t nbytes, pg_error *error) {
  return api->load_values_memory(model, data, nbytes, error);
}

static inline pg_status call_save_values(const pg_api *api, pg_model *model, const char *path, pg_error *error) {
  return api->save_values(model, path, error);
}

static inline uint64_t call_values_size(const pg_api *api, const pg_model *model) {
  return api->values_size(model);
}

static inline pg_status call_save_values_memory(const pg_api *api, pg_model *model, void *data, uint64_t nbytes, pg_error *error) {
  return api->save_values_memory(model, data, nbytes, error);
}
