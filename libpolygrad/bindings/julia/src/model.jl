"""
An input, an output, or a value: a parameter or a state. An axis of `shape` is an Int, or the name of a Variable.
"""
struct TensorInfo
    name::String
    dtype::DataType
    shape::Vector{Union{Int, String}}
    is_state::Bool
    most::Vector{Int} # the shape with the greatest values of Variables
end

"""
An integer that each run is given, from `lo` to `hi`.
"""
struct Variable
    name::String
    lo::Int64
    hi::Int64
end

# A Program of a file. An exported step is one, whose name is empty.
struct Entry
    name::String
    inputs::Vector{TensorInfo}
    outputs::Vector{TensorInfo}
    variables::Vector{Variable}
end

"""
    Model(path; native = false, stoppable = false, trust_digests = false, threads = 1, max_bytes = 0, wasmtime = "")
    Model(bytes; ...)

An exported file in memory: its code, parameters and state. What a run writes to state stays in it, so an exported
training step trains it. One thread uses it at a time. Native code runs only with `native = true`, which trusts the
file.

`model(; x = x)` runs it, and gives the outputs as a NamedTuple of arrays. `model["weight"]` is a parameter or state in
the model's own memory, `model["weight"] = array` writes it. Both are there until `close(model)`; without that, the
memory lives as long as the model or an array of it.
"""
mutable struct Model
    handle::Ptr{pg_model}
    entries::Vector{Entry}
    values::Vector{TensorInfo}
end

function Model(path::AbstractString; options...)
    return open_model(; options...) do o, model, error
        call_open_path(api(), String(path), o, model, error)
    end
end

function Model(bytes::Vector{UInt8}; options...)
    return open_model(; options...) do o, model, error
        call_open_memory(api(), bytes, length(bytes), o, model, error)
    end
end

function open_model(
        open;
        native = false,
        stoppable = false,
        trust_digests = false,
        threads = 1,
        max_bytes = 0,
        wasmtime::String = "",
    )
    flags = native * PG_TRUST_NATIVE | stoppable * PG_STOPPABLE | trust_digests * PG_TRUST_DIGESTS
    handle = Ref{Ptr{pg_model}}(C_NULL)
    GC.@preserve wasmtime begin
        path = isempty(wasmtime) ? Ptr{UInt8}(C_NULL) : pointer(wasmtime)
        options = Ref(pg_options(flags, threads, max_bytes, path, (0, 0, 0, 0)))
        checked(error -> open(options, handle, error))
    end
    model = Model(handle[], Entry[], TensorInfo[])
    finalizer(close, model)
    append!(model.values, tensors(model, 0, PG_VALUE, Variable[]))
    for number in 0:(call_entry_count(api(), model.handle) - 1)
        push!(model.entries, entry(model, number))
    end
    return model
end

function Base.close(model::Model)
    handle, model.handle = model.handle, C_NULL
    handle == C_NULL || call_close(api(), handle)
    return nothing
end

Base.isopen(model::Model) = model.handle != C_NULL

function opened(model::Model)
    isopen(model) || throw(PolygradError(:argument, "the model is closed"))
    return model.handle
end

function entry(model, number)
    variables = map(0:(Int(call_variable_count(api(), model.handle, number)) - 1)) do index
        place = Ref{pg_variable}()
        checked(error -> call_variable(api(), model.handle, number, index, place, error))
        Variable(unsafe_string(place[].name), place[].lo, place[].hi)
    end
    inputs = tensors(model, number, PG_INPUT, variables)
    outputs = tensors(model, number, PG_OUTPUT, variables)
    return Entry(unsafe_string(call_entry_name(api(), model.handle, number)), inputs, outputs, variables)
end

function tensors(model, number, role, variables)
    return map(0:(Int(call_tensor_count(api(), model.handle, number, role)) - 1)) do index
        place = Ref{pg_tensor}()
        checked(error -> call_tensor(api(), model.handle, number, role, index, place, error))
        t = place[]
        most = [Int(unsafe_load(t.shape, i)) for i in 1:t.rank]
        numbers = [unsafe_load(t.variables, i) for i in 1:t.rank]
        shape = Union{Int, String}[i < 0 ? n : variables[i + 1].name for (n, i) in zip(most, numbers)]
        TensorInfo(unsafe_string(t.name), element_type(t.dtype), shape, t.is_state != 0, most)
    end
end

function element_type(dtype)
    haskey(ELEMENT_TYPES, dtype) && return ELEMENT_TYPES[dtype]
    throw(PolygradError(:unsupported, "a dtype of number $dtype, which this package does not know"))
end

"""
    inputs(model), outputs(model), variables(model)

Descriptions of the first entry's tensors and Variables, the only ones of an exported step.
"""
inputs(model::Model) = model.entries[1].inputs
outputs(model::Model) = model.entries[1].outputs
variables(model::Model) = model.entries[1].variables

(model::Model)(; given...) = run_entry(model, model.entries[1].name, given)

"""
    run_entry(model, name, inputs; timeout = 0)

Run the entry of a name on `inputs`, a Dict or a vector of `name => value`: arrays of the tensors' element types, and
integers for Variables that no shape tells. The outputs are new arrays. A `timeout` in seconds ends the run of a model
that was opened as `stoppable`.
"""
function run_entry(model::Model, name::AbstractString, inputs; timeout = 0)
    handle = opened(model)
    number = findfirst(e -> e.name == name, model.entries)
    number === nothing && throw(not_found("entry", name, [e.name for e in model.entries]))
    e = model.entries[number]
    given = Dict{String, Any}(String(key) => value for (key, value) in inputs)
    values = bind_variables(e, given)
    for (index, info) in enumerate(e.inputs)
        write_tensor(handle, number - 1, PG_INPUT, index - 1, info, given[info.name])
    end
    numbers = Int64[values[v.name] for v in e.variables]
    checked(error -> call_run(api(), handle, number - 1, numbers, timeout, error))
    found = map(enumerate(e.outputs)) do (index, info)
        shape = Int[axis isa String ? values[axis] : axis for axis in info.shape]
        Symbol(info.name) => copy(view_tensor(model, number - 1, PG_OUTPUT, index - 1, info.dtype, shape))
    end
    return (; found...)
end

function not_found(what, name, names)
    return PolygradError(:not_found, "$what: expected one of $names, got $name")
end

# The values of Variables by name: those that are given, and those that shapes tell.
function bind_variables(e::Entry, given)
    values = Dict{String, Int}(v.name => given[v.name] for v in e.variables if get(given, v.name, nothing) isa Integer)
    names = [[info.name for info in e.inputs]; [v.name for v in e.variables]]
    if !issubset(keys(given), names) || !all(info -> haskey(given, info.name), e.inputs)
        throw(PolygradError(:argument, "run: expected the inputs $names, got $(collect(keys(given)))"))
    end
    for info in e.inputs
        sizes = size(given[info.name])
        fits = length(sizes) == length(info.shape)
        for (axis, n) in zip(info.shape, sizes)
            fits &= n == (axis isa String ? get!(values, axis, n) : axis)
        end
        fits || throw(PolygradError(:shape, "$(info.name): expected shape $(info.shape), got $sizes"))
    end
    missing_names = [v.name for v in e.variables if !haskey(values, v.name)]
    isempty(missing_names) || throw(PolygradError(:argument, "run: the Variables $missing_names are missing"))
    return values
end

function write_tensor(handle, number, role, index, info, value)
    if eltype(value) != info.dtype
        throw(PolygradError(:argument, "$(info.name): expected elements of $(info.dtype), got $(eltype(value))"))
    end
    memory = row_major(value)
    return checked(error -> call_write(api(), handle, number, role, index, memory, sizeof(memory), error))
end

# A tensor in the model's memory.
function view_tensor(model, number, role, index, dtype, shape)
    place = Ref{Ptr{Cvoid}}(C_NULL)
    checked(error -> call_view(api(), opened(model), number, role, index, place, error))
    memory = unsafe_wrap(Array, Ptr{dtype}(place[]), Tuple(reverse(shape)))
    return ModelArray(turned(memory), model)
end

"""
An array in the memory of a model, which it keeps.
"""
struct ModelArray{T, N, A <: AbstractArray{T, N}} <: AbstractArray{T, N}
    data::A
    model::Model
end

Base.size(x::ModelArray) = size(x.data)
Base.IndexStyle(::Type{<:ModelArray}) = IndexCartesian()
Base.@propagate_inbounds Base.getindex(x::ModelArray{T, N}, i::Vararg{Int, N}) where {T, N} = x.data[i...]
Base.@propagate_inbounds function Base.setindex!(x::ModelArray{T, N}, value, i::Vararg{Int, N}) where {T, N}
    return x.data[i...] = value
end
row_major(x::ModelArray) = row_major(x.data)

# Parameters and states by name.

Base.keys(model::Model) = [info.name for info in model.values]
Base.length(model::Model) = length(model.values)
Base.haskey(model::Model, name) = any(info -> info.name == name, model.values)

function find_value(model, name)
    index = findfirst(info -> info.name == name, model.values)
    index === nothing && throw(not_found("value", name, keys(model)))
    return index - 1, model.values[index]
end

function Base.getindex(model::Model, name::AbstractString)
    index, info = find_value(model, name)
    return view_tensor(model, 0, PG_VALUE, index, info.dtype, info.most)
end

function Base.setindex!(model::Model, value, name::AbstractString)
    index, info = find_value(model, name)
    if size(value) != Tuple(info.most)
        throw(PolygradError(:shape, "$name: expected shape $(info.shape), got $(size(value))"))
    end
    write_tensor(opened(model), 0, PG_VALUE, index, info, value)
    return value
end

"""
    save(model, path)

Write all parameters and states to a safetensors file, which replaces the one of that path when it is whole.
"""
save(model::Model, path::AbstractString) = checked(e -> call_save_values(api(), opened(model), String(path), e))

"""
    values_bytes(model)

The bytes of the file that `save` writes.
"""
function values_bytes(model::Model)
    bytes = Vector{UInt8}(undef, call_values_size(api(), opened(model)))
    checked(error -> call_save_values_memory(api(), model.handle, bytes, length(bytes), error))
    return bytes
end

"""
    load!(model, path)
    load!(model, bytes)

Take all parameters and states from a safetensors file, which has exactly these.
"""
load!(model::Model, path::AbstractString) = checked(e -> call_load_values(api(), opened(model), String(path), e))

function load!(model::Model, bytes::Vector{UInt8})
    return checked(e -> call_load_values_memory(api(), opened(model), bytes, length(bytes), e))
end

"""
    device(model), kind(model), settings(model)

The device that the file was exported for; what its entries are for, "" for an exported step; its settings, as JSON.
"""
device(model::Model) = unsafe_string(call_device(api(), opened(model)))
kind(model::Model) = unsafe_string(call_kind(api(), opened(model)))
settings(model::Model) = unsafe_string(call_settings(api(), opened(model)))
