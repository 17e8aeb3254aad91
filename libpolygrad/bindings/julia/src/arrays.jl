# Arrays of Julia are in column-major order, tensors in row-major order. An array with the axes reversed is the same
# memory; `PermutedDimsArray` gives it the axes of the tensor again, without a copy.

const ELEMENT_TYPES = Dict{Int32, DataType}(
    PG_BOOL => Bool,
    PG_INT8 => Int8,
    PG_UINT8 => UInt8,
    PG_INT16 => Int16,
    PG_UINT16 => UInt16,
    PG_INT32 => Int32,
    PG_UINT32 => UInt32,
    PG_INT64 => Int64,
    PG_UINT64 => UInt64,
    PG_FP8E4M3 => UInt8, # their bits
    PG_FP8E5M2 => UInt8,
    PG_FLOAT16 => Float16,
    PG_BFLOAT16 => UInt16, # their bits
    PG_FLOAT32 => Float32,
    PG_FLOAT64 => Float64,
)

reversed(x::AbstractArray{T, N}) where {T, N} = ntuple(i -> N + 1 - i, N)

# The array with its axes reversed, as a view.
turned(x::AbstractArray) = ndims(x) < 2 ? x : PermutedDimsArray(x, reversed(x))

# An Array whose memory has the elements of `x` in row-major order: the memory of `x` where that is possible.
row_major(x::Number) = fill(x)
row_major(x::Array) = ndims(x) < 2 ? x : permutedims(x, reversed(x))
row_major(x::AbstractArray) = ndims(x) < 2 ? collect(x) : collect(PermutedDimsArray(x, reversed(x)))

function row_major(x::PermutedDimsArray{T, N, perm, iperm, <:Array}) where {T, N, perm, iperm}
    return perm == reversed(x) ? parent(x) : permutedims(x, reversed(x))
end
