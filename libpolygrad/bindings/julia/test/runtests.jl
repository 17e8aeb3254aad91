# On the files of tests/binding_models.py, in the folder that POLYGRAD_TEST_FILES names.

using Polygrad
using Test

file(name) = joinpath(ENV["POLYGRAD_TEST_FILES"], name)

function kind_of(call)
    try
        call()
    catch e
        return e isa PolygradError ? e.kind : rethrow()
    end
    return nothing
end

const x = Float32[1 2; 3 -1; -2 0.5; 0 1]
const y = Int32[0, 1, 2, 1]

train(model, steps) = [model(; x = x, y = y).loss[] for _ in 1:steps]

@testset "a model says what it has" begin
    model = Model(file("training.pgrd"))
    @test Polygrad.device(model) == "WASM"
    @test [info.name for info in Polygrad.inputs(model)] == ["x", "y"]
    @test Polygrad.inputs(model)[1].shape == [4, 2]
    @test Polygrad.inputs(model)[1].dtype == Float32
    @test "optimizer.lr" in keys(model)
    @test Polygrad.inputs(Model(file("sizes.pgrd")))[1].shape == ["n", 3]
end

@testset "training stays in the model" begin
    model = Model(file("training.pgrd"))
    before = copy(model["weight"])
    losses = train(model, 20)
    @test losses[20] < losses[1] / 2
    @test model["weight"] != before
    saved = values_bytes(model)
    path = tempname()
    save(model, path)
    @test read(path) == saved
    expected = train(model, 3)
    other = Model(file("training.pgrd"))
    load!(other, saved)
    @test train(other, 3) == expected
    load!(other, path)
    @test train(other, 3) == expected
    @test kind_of(() -> load!(other, file("nowhere"))) == :io
end

@testset "values are read and written" begin
    model = Model(file("training.pgrd"))
    model["bias"] = Float32[1, 2, 3]
    @test model["bias"] == [1, 2, 3]
    model["bias"][2] = 5
    @test model["bias"] == [1, 5, 3]
    weight = Float32[1 2; 3 4; 5 6]
    model["weight"] = weight
    @test model["weight"] == weight
    @test kind_of(() -> model["weight"] = permutedims(weight)) == :shape
    @test kind_of(() -> model["bias"] = [1.0, 2.0, 3.0]) == :argument
    @test kind_of(() -> model["scale"]) == :not_found
end

@testset "elements of all dtypes keep their axes" begin
    places = [100 * (i - 1) + 10 * (j - 1) + (k - 1) for i in 1:2, j in 1:3, k in 1:4]
    arrays = Dict{String, Any}(
        "bool" => isodd.(places) |> Array,
        "int8" => Int8.(places .- 100),
        "uint8" => UInt8.(places),
        "int16" => Int16.(places .- 500),
        "uint16" => UInt16.(places .+ 60000),
        "int32" => Int32.(places .- 70000),
        "uint32" => UInt32.(places .+ 4000000000),
        "int64" => Int64.(places) .- 2^60,
        "uint64" => UInt64.(places) .+ UInt64(2)^63,
        "float16" => Float16.(1 .+ places ./ 1024),
        "bfloat16" => UInt16.(0x3c00 .+ places),
        "float32" => Float32.(places .+ 0.5),
        "float64" => places .+ 0.1,
    )
    model = Model(file("permuted.pgrd"))
    outputs = run_entry(model, "", Dict("x.$name" => value for (name, value) in arrays))
    for (name, value) in arrays
        @test outputs[Symbol(name)] == permutedims(value, (3, 1, 2))
    end
    views = Dict("x.$name" => Polygrad.turned(Polygrad.row_major(value)) for (name, value) in arrays)
    @test run_entry(model, "", views) == outputs
end

@testset "Variables come from shapes or by name" begin
    six = Float32[1 2 3; 4 5 6]
    model = Model(file("sizes.pgrd"))
    @test model(; x = six) == (twice = 2 * six, sum = Float32[5, 7, 9])
    first = Model(file("first.pgrd"))
    @test first(; x = Float32.(1:6), k = 2).first == [2, 3]
    @test kind_of(() -> first(; x = Float32.(1:6), k = 7)) == :argument
    @test kind_of(() -> first(; x = Float32.(1:6))) == :argument
    @test kind_of(() -> model(; x = six, n = 3)) == :shape
    @test kind_of(() -> model(; x = permutedims(six))) == :shape
end

@testset "errors" begin
    model = Model(file("training.pgrd"))
    @test kind_of(() -> model(; x = x)) == :argument
    @test kind_of(() -> model(; x = x, y = y, z = y)) == :argument
    @test kind_of(() -> model(; x = y, y = x)) in (:argument, :shape)
    @test kind_of(() -> Model(file("nowhere.pgrd"))) == :io
    @test kind_of(() -> Model(Vector{UInt8}("text"))) == :format
    @test kind_of(() -> Model(file("native.pgrd"))) == :trust
    @test kind_of(() -> Model(file("training.pgrd"); max_bytes = 10)) == :memory
    close(model)
    @test kind_of(() -> model(; x = x, y = y)) == :argument
    endless = Model(file("endless.pgrd"); stoppable = true)
    @test kind_of(() -> run_entry(endless, "", Dict(); timeout = 0.05)) == :timeout
    native = Model(file("native.pgrd"); native = true)
    @test native(; x = Float32[1 2 3]).twice == [2 4 6]
end
