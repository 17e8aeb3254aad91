# The declarations of libpolygrad. Written by scripts/generate_bindings.py from
# libpolygrad/manifest.json: do not edit.

const PG_API_VERSION = UInt32(1)

# How a call ended.
const pg_status = Int32
const PG_OK = Int32(0)
const PG_ARGUMENT = Int32(1)
const PG_IO = Int32(2)
const PG_FORMAT = Int32(3)
const PG_VERSION = Int32(4)
const PG_DIGEST = Int32(5)
const PG_DAMAGED = Int32(6)
const PG_TRUST = Int32(7)
const PG_UNSUPPORTED = Int32(8)
const PG_MEMORY = Int32(9)
const PG_NO_ENGINE = Int32(10)
const PG_COMPILE = Int32(11)
const PG_TRAP = Int32(12)
const PG_SHAPE = Int32(13)
const PG_BUSY = Int32(14)
const PG_INTERRUPTED = Int32(15)
const PG_TIMEOUT = Int32(16)
const PG_HALF_WRITTEN = Int32(17)
const PG_NOT_FOUND = Int32(18)

# The type of a tensor's elements.
const pg_dtype = Int32
const PG_BOOL = Int32(0)
const PG_INT8 = Int32(1)
const PG_UINT8 = Int32(2)
const PG_INT16 = Int32(3)
const PG_UINT16 = Int32(4)
const PG_INT32 = Int32(5)
const PG_UINT32 = Int32(6)
const PG_INT64 = Int32(7)
const PG_UINT64 = Int32(8)
const PG_FP8E4M3 = Int32(9)
const PG_FP8E5M2 = Int32(10)
const PG_FLOAT16 = Int32(11)
const PG_BFLOAT16 = Int32(12)
const PG_FLOAT32 = Int32(13)
const PG_FLOAT64 = Int32(14)

# What a tensor is for.
const pg_role = Int32
const PG_INPUT = Int32(0)
const PG_OUTPUT = Int32(1)
const PG_VALUE = Int32(2)

# How a file is opened; these may be added up.
const pg_flags = UInt32
const PG_TRUST_NATIVE = UInt32(1)
const PG_STOPPABLE = UInt32(2)
const PG_TRUST_DIGESTS = UInt32(4)

# A file in memory: its code, parameters and state.
mutable struct pg_model end

# Why a call failed.
struct pg_error
    status::pg_status
    message::NTuple{508, UInt8}
end

# How to open a file. Zeros are the defaults.
struct pg_options
    flags::pg_flags
    threads::UInt32
    max_bytes::UInt64
    wasmtime::Ptr{UInt8}
    reserved::NTuple{4, UInt64}
end

# A description of a tensor. What it points to belongs to the model.
struct pg_tensor
    name::Ptr{UInt8}
    dtype::pg_dtype
    rank::UInt32
    shape::Ptr{Int64}
    variables::Ptr{Int32}
    nbytes::UInt64
    is_state::Int32
end

# A Variable, an integer that each run is given.
struct pg_variable
    name::Ptr{UInt8}
    lo::Int64
    hi::Int64
end

# The table of functions.
struct pg_api
    version::UInt32
    library_version::Ptr{Cvoid}
    status_name::Ptr{Cvoid}
    dtype_name::Ptr{Cvoid}
    dtype_size::Ptr{Cvoid}
    check::Ptr{Cvoid}
    open_path::Ptr{Cvoid}
    open_memory::Ptr{Cvoid}
    close::Ptr{Cvoid}
    device::Ptr{Cvoid}
    kind::Ptr{Cvoid}
    settings::Ptr{Cvoid}
    file_count::Ptr{Cvoid}
    file::Ptr{Cvoid}
    entry_count::Ptr{Cvoid}
    entry_name::Ptr{Cvoid}
    find_entry::Ptr{Cvoid}
    variable_count::Ptr{Cvoid}
    variable::Ptr{Cvoid}
    tensor_count::Ptr{Cvoid}
    tensor::Ptr{Cvoid}
    find_tensor::Ptr{Cvoid}
    write::Ptr{Cvoid}
    read::Ptr{Cvoid}
    view::Ptr{Cvoid}
    shape::Ptr{Cvoid}
    run::Ptr{Cvoid}
    interrupt::Ptr{Cvoid}
    load_values::Ptr{Cvoid}
    load_values_memory::Ptr{Cvoid}
    save_values::Ptr{Cvoid}
    values_size::Ptr{Cvoid}
    save_values_memory::Ptr{Cvoid}
end

const STATUS_NAMES = Dict{Int32, Symbol}(
    1 => :argument,
    2 => :io,
    3 => :format,
    4 => :version,
    5 => :digest,
    6 => :damaged,
    7 => :trust,
    8 => :unsupported,
    9 => :memory,
    10 => :no_engine,
    11 => :compile,
    12 => :trap,
    13 => :shape,
    14 => :busy,
    15 => :interrupted,
    16 => :timeout,
    17 => :half_written,
    18 => :not_found,
)

# The version of the library, such as "0.1.0".
function call_library_version(api::pg_api)
    return @ccall $(api.library_version)()::Ptr{UInt8}
end

# The name of a status, such as "PG_DAMAGED"; "unknown" for other numbers.
function call_status_name(api::pg_api, status)
    return @ccall $(api.status_name)(status::pg_status)::Ptr{UInt8}
end

# The name of a dtype, such as "float32"; "unknown" for other numbers.
function call_dtype_name(api::pg_api, dtype)
    return @ccall $(api.dtype_name)(dtype::pg_dtype)::Ptr{UInt8}
end

# The bytes of an element; 0 for numbers that are no dtype.
function call_dtype_size(api::pg_api, dtype)
    return @ccall $(api.dtype_size)(dtype::pg_dtype)::UInt32
end

# Check a whole file in memory, for any device, and run nothing.
function call_check(api::pg_api, data, nbytes, error)
    return @ccall $(api.check)(
        data::Ptr{Cvoid},
        nbytes::UInt64,
        error::Ptr{pg_error},
    )::pg_status
end

# Open the exported file of a path. It is mapped: it must not be changed in place while the model
# is open.
function call_open_path(api::pg_api, path, options, model, error)
    return @ccall $(api.open_path)(
        path::Cstring,
        options::Ptr{pg_options},
        model::Ptr{Ptr{pg_model}},
        error::Ptr{pg_error},
    )::pg_status
end

# Open the exported file in memory. The bytes are not needed after the call.
function call_open_memory(api::pg_api, data, nbytes, options, model, error)
    return @ccall $(api.open_memory)(
        data::Ptr{Cvoid},
        nbytes::UInt64,
        options::Ptr{pg_options},
        model::Ptr{Ptr{pg_model}},
        error::Ptr{pg_error},
    )::pg_status
end

# Free a model; NULL is nothing. No other call on it may be running or come later.
function call_close(api::pg_api, model)
    return @ccall $(api.close)(model::Ptr{pg_model})::Cvoid
end

# The device that the file was exported for, such as "WASM".
function call_device(api::pg_api, model)
    return @ccall $(api.device)(model::Ptr{pg_model})::Ptr{UInt8}
end

# What the entries are for, such as "text-generation"; "" for an exported step.
function call_kind(api::pg_api, model)
    return @ccall $(api.kind)(model::Ptr{pg_model})::Ptr{UInt8}
end

# The settings of the file, a JSON object; "{}" for an exported step.
function call_settings(api::pg_api, model)
    return @ccall $(api.settings)(model::Ptr{pg_model})::Ptr{UInt8}
end

# How many other files the file has in it, such as a tokenizer.
function call_file_count(api::pg_api, model)
    return @ccall $(api.file_count)(model::Ptr{pg_model})::UInt32
end

# The name and the bytes of a file in the file.
function call_file(api::pg_api, model, index, name, data, nbytes, error)
    return @ccall $(api.file)(
        model::Ptr{pg_model},
        index::UInt32,
        name::Ptr{Ptr{UInt8}},
        data::Ptr{Ptr{Cvoid}},
        nbytes::Ptr{UInt64},
        error::Ptr{pg_error},
    )::pg_status
end

# How many entries there are: Programs that share parameters and state. An exported step has one.
function call_entry_count(api::pg_api, model)
    return @ccall $(api.entry_count)(model::Ptr{pg_model})::UInt32
end

# The name of an entry, such as "decode"; "" for an exported step, NULL for a number that is too
# large.
function call_entry_name(api::pg_api, model, entry)
    return @ccall $(api.entry_name)(model::Ptr{pg_model}, entry::UInt32)::Ptr{UInt8}
end

# The index of the entry of a name.
function call_find_entry(api::pg_api, model, name, entry, error)
    return @ccall $(api.find_entry)(
        model::Ptr{pg_model},
        name::Cstring,
        entry::Ptr{UInt32},
        error::Ptr{pg_error},
    )::pg_status
end

# How many Variables an entry has; 0 for an entry that does not exist.
function call_variable_count(api::pg_api, model, entry)
    return @ccall $(api.variable_count)(model::Ptr{pg_model}, entry::UInt32)::UInt32
end

# A Variable of an entry.
function call_variable(api::pg_api, model, entry, index, variable, error)
    return @ccall $(api.variable)(
        model::Ptr{pg_model},
        entry::UInt32,
        index::UInt32,
        variable::Ptr{pg_variable},
        error::Ptr{pg_error},
    )::pg_status
end

# How many tensors an entry has in a role. PG_VALUE: of the model, whatever the entry.
function call_tensor_count(api::pg_api, model, entry, role)
    return @ccall $(api.tensor_count)(
        model::Ptr{pg_model},
        entry::UInt32,
        role::pg_role,
    )::UInt32
end

# The description of a tensor.
function call_tensor(api::pg_api, model, entry, role, index, tensor, error)
    return @ccall $(api.tensor)(
        model::Ptr{pg_model},
        entry::UInt32,
        role::pg_role,
        index::UInt32,
        tensor::Ptr{pg_tensor},
        error::Ptr{pg_error},
    )::pg_status
end

# The index of the tensor of a name.
function call_find_tensor(api::pg_api, model, entry, role, name, index, error)
    return @ccall $(api.find_tensor)(
        model::Ptr{pg_model},
        entry::UInt32,
        role::pg_role,
        name::Cstring,
        index::Ptr{UInt32},
        error::Ptr{pg_error},
    )::pg_status
end

# Write an input, or a parameter or state. An input whose shape has Variables may have fewer
# bytes; run compares them with the Variables' values. Others have nbytes of their description.
function call_write(api::pg_api, model, entry, role, index, data, nbytes, error)
    return @ccall $(api.write)(
        model::Ptr{pg_model},
        entry::UInt32,
        role::pg_role,
        index::UInt32,
        data::Ptr{Cvoid},
        nbytes::UInt64,
        error::Ptr{pg_error},
    )::pg_status
end

# Copy the first nbytes of a tensor.
function call_read(api::pg_api, model, entry, role, index, data, nbytes, error)
    return @ccall $(api.read)(
        model::Ptr{pg_model},
        entry::UInt32,
        role::pg_role,
        index::UInt32,
        data::Ptr{Cvoid},
        nbytes::UInt64,
        error::Ptr{pg_error},
    )::pg_status
end

# The memory of a tensor in the model, aligned to 64 bytes (to an element for weights of a mapped
# file), which may be read and written between runs. An input counts as written with all its bytes
# from then on.
function call_view(api::pg_api, model, entry, role, index, data, error)
    return @ccall $(api.view)(
        model::Ptr{pg_model},
        entry::UInt32,
        role::pg_role,
        index::UInt32,
        data::Ptr{Ptr{Cvoid}},
        error::Ptr{pg_error},
    )::pg_status
end

# The shape of a tensor with these values of the entry's Variables.
function call_shape(api::pg_api, model, entry, role, index, variables, shape, error)
    return @ccall $(api.shape)(
        model::Ptr{pg_model},
        entry::UInt32,
        role::pg_role,
        index::UInt32,
        variables::Ptr{Int64},
        shape::Ptr{Int64},
        error::Ptr{pg_error},
    )::pg_status
end

# Run an entry on what its inputs hold. A training step writes the new state. The first run of an
# entry compiles its code.
function call_run(api::pg_api, model, entry, variables, timeout, error)
    return @ccall $(api.run)(
        model::Ptr{pg_model},
        entry::UInt32,
        variables::Ptr{Int64},
        timeout::Cdouble,
        error::Ptr{pg_error},
    )::pg_status
end

# End the run of a model that was opened with PG_STOPPABLE, from any thread, also from a signal's
# handler. It does nothing if none is running.
function call_interrupt(api::pg_api, model)
    return @ccall $(api.interrupt)(model::Ptr{pg_model})::pg_status
end

# Take all parameters and states from a safetensors file, which has exactly these.
function call_load_values(api::pg_api, model, path, error)
    return @ccall $(api.load_values)(
        model::Ptr{pg_model},
        path::Cstring,
        error::Ptr{pg_error},
    )::pg_status
end

# Take all parameters and states from the bytes of a safetensors file, which has exactly these.
function call_load_values_memory(api::pg_api, model, data, nbytes, error)
    return @ccall $(api.load_values_memory)(
        model::Ptr{pg_model},
        data::Ptr{Cvoid},
        nbytes::UInt64,
        error::Ptr{pg_error},
    )::pg_status
end

# Write all parameters and states to a safetensors file, which replaces the one of that path when
# it is whole.
function call_save_values(api::pg_api, model, path, error)
    return @ccall $(api.save_values)(
        model::Ptr{pg_model},
        path::Cstring,
        error::Ptr{pg_error},
    )::pg_status
end

# The bytes of the file that save_values writes.
function call_values_size(api::pg_api, model)
    return @ccall $(api.values_size)(model::Ptr{pg_model})::UInt64
end

# Write the bytes of the file that save_values writes.
function call_save_values_memory(api::pg_api, model, data, nbytes, error)
    return @ccall $(api.save_values_memory)(
        model::Ptr{pg_model},
        data::Ptr{Cvoid},
        nbytes::UInt64,
        error::Ptr{pg_error},
    )::pg_status
end
