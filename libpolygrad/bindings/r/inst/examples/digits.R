# Trains the digit classifier that `examples/export_digits.py FOLDER` exported, without Python:
#
#     Rscript inst/examples/digits.R FOLDER [--native]
#
# Prints one line of JSON, as `examples/digits.py --json` does, and saves `trained.safetensors` to the folder.

library(polygrad)

batch <- 64

read_digits <- function(folder, name) {
  images <- file.path(folder, paste0(name, "_images.u8"))
  labels <- file.path(folder, paste0(name, "_labels.i32"))
  pixels <- readBin(images, "integer", file.size(images), size = 1, signed = FALSE)
  list(
    images = matrix(pixels, ncol = 64, byrow = TRUE),
    labels = readBin(labels, "integer", file.size(labels) / 4, size = 4, endian = "little")
  )
}

arguments <- commandArgs(trailingOnly = TRUE)
folder <- arguments[1]
native <- "--native" %in% arguments
training <- read_digits(folder, "train")
held_out <- read_digits(folder, "test")
order <- readBin(file.path(folder, "order.i32"), "integer", 1e6, size = 4, endian = "little") + 1

step <- load_model(file.path(folder, "training.pgrd"), native = native)
first <- system.time(fit(step, images = training$images, labels = training$labels, order = order[1]))[["elapsed"]]
later <- system.time(fit(step, images = training$images, labels = training$labels, order = order[-1]))[["elapsed"]]
save_values(step, file.path(folder, "trained.safetensors"))

evaluation <- load_model(file.path(folder, "evaluation.pgrd"), native = native)
for (name in names(evaluation)) evaluation[[name]] <- step[[name]]
loss <- predict(evaluation, training)$loss
accuracy <- predict(evaluation, held_out)$accuracy
steps <- length(order) - 1
cat(sprintf(
  paste0(
    '{"host": "r", "device": "%s", "steps_per_second": %.9g, "compile_seconds": %.9g, ',
    '"final_loss": %.9g, "test_accuracy": %.9g}\n'
  ),
  device(step), steps / later, first - later / steps, loss, accuracy
))
