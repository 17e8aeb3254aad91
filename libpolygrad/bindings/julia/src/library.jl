# The shared library, opened by the first model, and its errors.

"""
Why a call failed. `kind` is a Symbol such as `:trust` or `:shape`.
"""
struct PolygradError <: Exception
    kind::Symbol
    message::String
end

Base.showerror(io::IO, e::PolygradError) = print(io, "PolygradError (", e.kind, "): ", e.message)

const LIBRARY_NAME = Sys.isapple() ? "libpolygrad.dylib" : "libpolygrad.so.0"
const TABLE = Ref{Union{Nothing, pg_api}}(nothing)

# The table of functions.
function api()
    table = TABLE[]
    return table === nothing ? (TABLE[] = open_library()) : table
end

function open_library()
    name = get(ENV, "POLYGRAD_LIBRARY", LIBRARY_NAME)
    handle = try
        Libdl.dlopen(name)
    catch e
        throw(no_library(sprint(showerror, e)))
    end
    get_api = Libdl.dlsym(handle, :pg_get_api; throw_error = false)
    get_api === nothing && throw(no_library("$name is no libpolygrad"))
    table = ccall(get_api, Ptr{pg_api}, (UInt32,), PG_API_VERSION)
    table == C_NULL && throw(no_library("$name is older than this package"))
    return unsafe_load(table)
end

function no_library(reason)
    advice = "install libpolygrad, or let POLYGRAD_LIBRARY be its path"
    return PolygradError(:no_library, "libpolygrad: $reason: $advice")
end

# Calls what takes the place for an error. Throws the error.
function checked(call)
    place = Ref{pg_error}()
    status = call(place)
    status == PG_OK && return nothing
    bytes = collect(place[].message)
    text = String(bytes[1:(something(findfirst(iszero, bytes), length(bytes) + 1) - 1)])
    throw(PolygradError(get(STATUS_NAMES, status, :other), text))
end
