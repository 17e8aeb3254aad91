# Trains the digit classifier that `examples/export_digits.py FOLDER` exported, without Python:
#
#     julia --project=. examples/digits.jl FOLDER [--native]
#
# Prints one line of JSON, as `examples/digits.py --json` does, and saves `trained.safetensors` to the folder.

using Polygrad

const BATCH = 64

read_as(T, path) = collect(reinterpret(T, read(path)))

function read_digits(folder, name)
    pixels = read_as(UInt8, joinpath(folder, "$(name)_images.u8"))
    labels = read_as(Int32, joinpath(folder, "$(name)_labels.i32"))
    return permutedims(reshape(pixels, 64, :)), labels
end

function main(folder, native)
    images, labels = read_digits(folder, "train")
    order = read_as(Int32, joinpath(folder, "order.i32"))
    step = Model(joinpath(folder, "training.pgrd"); native = native)
    seconds = map(order) do number
        rows = (number * BATCH + 1):((number + 1) * BATCH)
        @elapsed step(; images = images[rows, :], labels = labels[rows]).loss[]
    end
    save(step, joinpath(folder, "trained.safetensors"))

    evaluation = Model(joinpath(folder, "evaluation.pgrd"); native = native)
    for name in keys(evaluation)
        evaluation[name] = step[name]
    end
    loss = evaluation(; images = images, labels = labels).loss[]
    held_out, answers = read_digits(folder, "test")
    accuracy = evaluation(; images = held_out, labels = answers).accuracy[]
    later = sort(seconds[2:end])
    median = later[div(length(later), 2) + 1]
    print("{\"host\": \"julia\", \"device\": \"$(Polygrad.device(step))\", ")
    print("\"steps_per_second\": $(length(later) / sum(later)), \"compile_seconds\": $(seconds[1] - median), ")
    println("\"final_loss\": $loss, \"test_accuracy\": $accuracy}")
    return nothing
end

main(ARGS[1], "--native" in ARGS)
