"""
Runs and trains models that polygrad exported (`.pgrd` files), through libpolygrad.

    model = Model("training.pgrd")
    outputs = model(; x = x, y = y)
    outputs.loss[]

The library is the one that the environment variable `POLYGRAD_LIBRARY` names, else the system's.
"""
module Polygrad

using Libdl: Libdl

export Model, PolygradError, TensorInfo, Variable, run_entry, save, load!, values_bytes

include("declarations.jl")
include("library.jl")
include("arrays.jl")
include("model.jl")

end
