# On the files of tests/binding_models.py, in the folder that POLYGRAD_TEST_FILES names. Without it there is nothing
# to test.

folder <- Sys.getenv("POLYGRAD_TEST_FILES")
if (folder == "") {
  cat("POLYGRAD_TEST_FILES is not set\n")
  quit(status = 0)
}

library(polygrad)

file_of <- function(name) file.path(folder, name)

# The kind of the error that an expression raises.
kind_of <- function(expression) {
  error <- tryCatch({
    expression
    NULL
  }, error = identity)
  stopifnot(inherits(error, "polygrad_error"))
  sub("polygrad_(.*)_error", "\\1", class(error)[1])
}

near <- function(a, b) isTRUE(all.equal(a, b, tolerance = 1e-6))

x <- matrix(c(1, 2, 3, -1, -2, 0.5, 0, 1), ncol = 2, byrow = TRUE)
y <- c(0L, 1L, 2L, 1L)

train <- function(model, steps) vapply(seq_len(steps), function(i) run(model, x = x, y = y)$loss, 0)

# A model says what it has.
model <- load_model(file_of("training.pgrd"))
stopifnot(
  device(model) == "WASM",
  all(c("weight", "bias", "optimizer.lr") %in% names(model)),
  length(model) == length(names(model)),
  identical(dim(model[["weight"]]), c(3L, 2L)),
  identical(names(coef(model)), names(model)),
  identical(coef(model)$weight, model[["weight"]])
)
table <- summary(model)
stopifnot(
  identical(table$role[1:4], c("input", "input", "output", "value")),
  identical(table$shape[1:4], c("[4, 2]", "[4]", "[]", "[3, 2]")),
  identical(table$dtype[1:2], c("float32", "int32")),
  nrow(table) == 3 + length(model),
  any(grepl("float32 +\\[4, 2\\]", capture.output(print(model))))
)
stopifnot(summary(load_model(file_of("sizes.pgrd")))$shape[1] == "[n, 3]")

# Training stays in the model; fit is a loop of it.
before <- model[["weight"]]
losses <- train(model, 20)
stopifnot(losses[20] < losses[1] / 2, !identical(model[["weight"]], before))
twice <- load_model(file_of("training.pgrd"))
history <- fit(twice, x = rbind(x, x[4:1, ]), y = c(y, rev(y)), order = c(1, 2, 1))
by_hand <- load_model(file_of("training.pgrd"))
expected <- c(
  run(by_hand, x = x, y = y)$loss, run(by_hand, x = x[4:1, ], y = rev(y))$loss, run(by_hand, x = x, y = y)$loss
)
stopifnot(identical(history$loss, expected), identical(history$batch, c(1, 2, 1)))
shuffled <- fit(twice, x = rbind(x, x), y = c(y, y), epochs = 3)
stopifnot(nrow(shuffled) == 6, all(shuffled$batch %in% 1:2), identical(shuffled$epoch, rep(c(1, 2, 3), each = 2)))

# A saved model goes on where it was.
saved <- save_values(model)
path <- tempfile(fileext = ".safetensors")
save_values(model, path)
stopifnot(identical(readBin(path, "raw", file.size(path)), saved))
expected <- train(model, 3)
other <- load_model(file_of("training.pgrd"))
load_values(other, saved)
stopifnot(identical(train(other, 3), expected))
load_values(other, path)
stopifnot(
  identical(train(other, 3), expected),
  kind_of(load_values(other, file_of("nowhere"))) == "io",
  kind_of(load_values(other, saved[1:20])) == "damaged"
)

# Values are read and written.
model[["bias"]] <- c(1, 2, 3)
stopifnot(identical(model[["bias"]], c(1, 2, 3)))
weight <- matrix(1:6, 3)
model[["weight"]] <- weight
stopifnot(
  near(model[["weight"]], weight),
  kind_of(model[["weight"]] <- t(weight)) == "shape",
  kind_of(model[["bias"]] <- 1) == "shape",
  kind_of(model[["bias"]] <- letters[1:3]) == "argument",
  kind_of(model[["scale"]]) == "not_found"
)
model[["optimizer.lr"]] <- 0
losses <- train(model, 2)
stopifnot(losses[1] == losses[2])
copy <- model
copy[["bias"]] <- c(4, 5, 6) # the same model
stopifnot(identical(model[["bias"]], c(4, 5, 6)))

# Arrays of all dtypes keep their axes: place i, j, k has 100 i + 10 j + k.
place <- function(i, j, k) 100 * (i - 1) + 10 * (j - 1) + (k - 1)
places <- outer(outer(1:2, 1:3, function(i, j) place(i, j, 1)), 0:3, `+`)
stopifnot(identical(dim(places), c(2L, 3L, 4L)), places[2, 3, 4] == 123)
dtypes <- list(
  bool = places %% 2 == 1,
  int8 = places - 100,
  uint8 = places,
  int16 = places - 500,
  uint16 = places + 60000,
  int32 = places - 70000,
  uint32 = places + 4e9,
  int64 = places - 2^52,
  uint64 = places + 2^52,
  float16 = 1 + places / 1024,
  bfloat16 = places - 64,
  float32 = places + 0.5,
  float64 = places + 0.1
)
permuted <- load_model(file_of("permuted.pgrd"))
inputs <- dtypes
names(inputs) <- paste0("x.", names(dtypes))
outputs <- run(permuted, inputs)
for (name in names(dtypes)) {
  stopifnot(identical(dim(outputs[[name]]), c(4L, 2L, 3L)), all(outputs[[name]] == aperm(dtypes[[name]], c(3, 1, 2))))
}
stopifnot(
  is.logical(outputs$bool), is.integer(outputs$int8), is.integer(outputs$int32), is.double(outputs$uint32),
  is.double(outputs$float16)
)
change <- function(name, value) {
  inputs[[name]][1, 1, 1] <- value
  inputs
}
for (case in list(
  list("x.bool", NA), list("x.bool", 2), list("x.int8", 128), list("x.int8", 0.5), list("x.uint8", -1),
  list("x.int32", NA), list("x.int32", 2^31), list("x.uint32", 2^32), list("x.int64", 2^54), list("x.uint64", -1)
)) {
  stopifnot(kind_of(run(permuted, change(case[[1]], case[[2]]))) == "argument")
}
# R's missing integer is a number of int32, and its doubles have no rounding in few bits that surprises.
stopifnot(is.double(run(permuted, change("x.int32", -2^31))$int32))
stopifnot(run(permuted, change("x.int32", -2^31))$int32[1, 1, 1] == -2^31)
rounded <- function(name, values) {
  inputs[[paste0("x.", name)]][] <- rep_len(values, 24)
  aperm(run(permuted, inputs)[[name]], c(2, 3, 1))[seq_along(values)]
}
stopifnot(
  identical(rounded("float16", c(65504, 65519, 65520, -1e9)), c(65504, 65504, Inf, -Inf)),
  identical(rounded("float16", c(1 + 2^-11, 1 + 3 * 2^-11, 2^-24, 2^-25, 3 * 2^-26)), c(1, 1 + 2^-9, 2^-24, 0, 2^-24)),
  identical(rounded("bfloat16", c(1 + 2^-8, 1 + 3 * 2^-8, 2^-133, Inf, 3e38)), c(1, 1 + 2^-6, 2^-133, Inf, 226 * 2^120)),
  is.nan(rounded("float16", NaN)), is.nan(rounded("bfloat16", NA)), is.nan(rounded("float32", NA)),
  identical(1 / rounded("float16", -0.0), -Inf)
)

# Variables come from shapes or by name, and the names along their axes go with them.
sizes <- load_model(file_of("sizes.pgrd"))
six <- matrix(1:6, ncol = 3, byrow = TRUE)
outputs <- run(sizes, x = six)
stopifnot(identical(outputs$twice, six * 2), identical(outputs$sum, c(5, 7, 9)))
rownames(six) <- c("first", "second")
twice <- predict(sizes, six)$twice
stopifnot(
  identical(dimnames(twice), list(n = c("first", "second"), NULL)),
  identical(unname(twice["second", ]), c(8, 10, 12)),
  near(predict(sizes, data.frame(six))$sum, c(5, 7, 9)),
  is.null(names(predict(sizes, six)$sum))
)
first <- load_model(file_of("first.pgrd"))
for (k in c(1, 6)) stopifnot(identical(run(first, x = 1:6, k = k)$first, (2:7)[seq_len(k)] + 0))
stopifnot(identical(predict(first, 1:6, k = 2), c(2, 3))) # the one output alone
stopifnot(
  kind_of(run(first, x = 1:6, k = 0)) == "argument",
  kind_of(run(first, x = 1:6, k = 7)) == "argument",
  kind_of(run(first, x = 1:6, k = 1.5)) == "argument",
  kind_of(run(first, x = 1:6)) == "argument",
  kind_of(run(sizes, x = six, n = 3)) == "shape",
  kind_of(run(sizes, x = t(six))) == "shape",
  kind_of(run(sizes, x = 1:6)) == "shape",
  kind_of(run(sizes, x = matrix(0, 9, 3))) %in% c("shape", "argument")
)

# Inputs that are not the model's are errors.
model <- load_model(file_of("training.pgrd"))
stopifnot(
  kind_of(run(model, x = x)) == "argument",
  kind_of(run(model, x = x, z = y)) == "argument",
  kind_of(run(model, x = x, y = y, z = y)) == "argument",
  kind_of(run(model, x, y)) == "argument",
  kind_of(run(model, x = x, y = y + 0.5)) == "argument",
  kind_of(run(model, x = x, y = factor(y))) == "argument",
  kind_of(run(model, x = x[1:3, ], y = y)) == "shape",
  kind_of(run(model, x = x, y = y, .entry = "other")) == "not_found"
)

# Files that cannot be opened are errors.
bytes <- readBin(file_of("training.pgrd"), "raw", file.size(file_of("training.pgrd")))
stopifnot(length(load_model(bytes)) == length(model))
bytes[length(bytes)] <- xor(bytes[length(bytes)], as.raw(1))
stopifnot(
  kind_of(load_model(bytes)) == "digest",
  kind_of(load_model(charToRaw("text"))) == "format",
  kind_of(load_model(1)) == "argument",
  kind_of(load_model(c("a", "b"))) == "argument",
  kind_of(load_model(file_of("nowhere.pgrd"))) == "io",
  kind_of(load_model(file_of("training.pgrd"), max_bytes = 10)) == "memory",
  kind_of(load_model(file_of("training.pgrd"), wasmtime = file_of("nowhere.so"))) == "no_engine",
  kind_of(load_model(file_of("native.pgrd"))) == "trust"
)
native <- load_model(file_of("native.pgrd"), native = TRUE, threads = 2)
stopifnot(identical(run(native, x = matrix(1:3, 1))$twice, matrix(c(2, 4, 6), 1)))

# A timeout ends a run.
endless <- load_model(file_of("endless.pgrd"), stoppable = TRUE)
stopifnot(kind_of(run(endless, .timeout = 0.05)) == "timeout", identical(endless[["x"]], c(0L, 0L)))

# A bundle has entries and files.
bundle <- load_model(file_of("bundle.pgrd"))
stopifnot(
  run(bundle, x = matrix(c(1, 4), 1), n = 3, .entry = "main")$y[2] == 21,
  identical(rawToChar(model_file(bundle, "notes.txt")), "text"),
  kind_of(model_file(bundle, "nowhere")) == "not_found"
)

# Closed models are errors, and so are those of another session; the collector closes the others.
close(model)
close(model)
stopifnot(kind_of(run(model, x = x, y = y)) == "argument", kind_of(model[["bias"]]) == "argument")
again <- unserialize(serialize(bundle, NULL))
stopifnot(kind_of(run(again, x = matrix(c(1, 4), 1), n = 3)) == "argument")
for (i in 1:20) {
  train(load_model(file_of("training.pgrd")), 1)
  gc()
}
cat("all is well\n")
