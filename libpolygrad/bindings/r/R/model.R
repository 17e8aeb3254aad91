# A model is an external pointer to one of libpolygrad, and what that says of itself. Copies of it are the same
# model: what a run writes to state stays in it.

load_model <- function(source, native = FALSE, stoppable = FALSE, trust_digests = FALSE, threads = 1,
                       max_bytes = 0, wasmtime = NULL) {
  flags <- sum(c(1, 2, 4)[c(isTRUE(native), isTRUE(stoppable), isTRUE(trust_digests))])
  numbers <- as.numeric(c(flags, threads, max_bytes))
  if (!is.null(wasmtime)) wasmtime <- path_of(wasmtime, "wasmtime")
  pointer <- .Call(C_open_model, source_of(source, "load_model"), numbers, wasmtime)
  described <- .Call(C_describe, pointer)
  for (i in seq_along(described$entries)) {
    described$entries[[i]]$index <- i - 1L
    for (role in c("inputs", "outputs", "variables")) {
      described$entries[[i]][[role]] <- by_name(described$entries[[i]][[role]])
    }
  }
  described$entries <- by_name(described$entries)
  described$values <- by_name(described$values)
  structure(c(list(pointer = pointer), described), class = "polygrad_model")
}

path_of <- function(path, what) {
  if (!is.character(path) || length(path) != 1 || is.na(path)) raise("argument", what, ": expected a path")
  path.expand(path)
}

# A path, or the bytes of a file.
source_of <- function(source, what) if (is.raw(source)) source else path_of(source, what)

# Descriptions by name, with their indices.
by_name <- function(descriptions) {
  for (i in seq_along(descriptions)) descriptions[[i]]$index <- i - 1L
  names(descriptions) <- vapply(descriptions, function(d) d$name, "")
  descriptions
}

close.polygrad_model <- function(con, ...) invisible(.Call(C_close_model, unclass(con)$pointer))

# Runs: inputs by name, as arguments or as one list; outputs as a list.
run <- function(model, ..., .entry = 1, .timeout = 0) {
  fields <- unclass(model)
  entry <- fields$entries[[find_entry(fields, .entry)]]
  given <- list(...)
  if (length(given) == 1 && is.null(names(given)) && is.list(given[[1]]) && !is.data.frame(given[[1]])) {
    given <- given[[1]]
  }
  wanted <- c(names(entry$inputs), names(entry$variables))
  missing_names <- setdiff(names(entry$inputs), names(given))
  if (length(given) != length(unique(names(given))) || length(setdiff(names(given), wanted)) || length(missing_names)) {
    raise("argument", "run: expected the inputs ", said(wanted), ", got ", said(names(given)))
  }
  inputs <- Map(as_array, given[names(entry$inputs)], names(entry$inputs))
  variables <- bind_variables(entry, inputs, given)
  for (name in names(inputs)) {
    write_array(fields, entry$index, 0L, entry$inputs[[name]], inputs[[name]]$data, inputs[[name]]$sizes)
  }
  .Call(C_run_entry, fields$pointer, entry$index, variables, as.numeric(.timeout))
  names_of_axes <- axis_names(entry, inputs)
  lapply(entry$outputs, function(output) {
    out <- read_array(fields, entry$index, 1L, output, sizes_of(output, variables))
    with_dimnames(out, output, entry, names_of_axes)
  })
}

find_entry <- function(fields, entry) {
  found <- if (is.character(entry)) match(entry, names(fields$entries)) else entry
  if (is.na(found) || found < 1 || found > length(fields$entries)) {
    raise("not_found", "entry: expected one of ", said(names(fields$entries)), ", got ", entry)
  }
  found
}

said <- function(names) paste0("[", paste(names, collapse = ", "), "]")

# An array, its sizes and the names along its axes. A data frame is a matrix.
as_array <- function(x, name) {
  if (is.data.frame(x)) x <- data.matrix(x)
  if (is.factor(x) || !(is.numeric(x) || is.logical(x) || is.raw(x))) {
    raise("argument", name, ": expected numbers, got ", class(x)[1])
  }
  if (is.null(dim(x))) {
    list(data = x, sizes = as.numeric(length(x)), dimnames = if (!is.null(names(x))) list(names(x)))
  } else {
    list(data = x, sizes = as.numeric(dim(x)), dimnames = dimnames(x))
  }
}

# The values of the Variables, in order: those that are given, and those that shapes tell.
bind_variables <- function(entry, inputs, given) {
  values <- rep(NA_real_, length(entry$variables))
  for (i in seq_along(values)) {
    value <- given[[names(entry$variables)[i]]]
    if (length(value) == 1 && is.numeric(value) && isTRUE(value == round(value))) values[i] <- value
  }
  for (name in names(inputs)) {
    input <- entry$inputs[[name]]
    sizes <- inputs[[name]]$sizes
    if (length(input$shape) == 0 && identical(sizes, 1)) next
    fits <- length(sizes) == length(input$shape)
    for (k in seq_len(if (fits) length(sizes) else 0)) {
      variable <- input$variables[k]
      if (variable > 0 && is.na(values[variable])) values[variable] <- sizes[k]
      fits <- fits && sizes[k] == (if (variable > 0) values[variable] else input$shape[k])
    }
    if (!fits) raise("shape", name, ": expected shape ", shape_text(input, entry), ", got ", said(sizes))
  }
  if (anyNA(values)) {
    raise("argument", "run: the Variables ", said(names(entry$variables)[is.na(values)]), " are missing")
  }
  values
}

sizes_of <- function(tensor, variables) {
  ifelse(tensor$variables > 0, c(variables, NA)[pmax(tensor$variables, 1)], tensor$shape)
}

shape_text <- function(tensor, entry) {
  said(ifelse(tensor$variables > 0, c(names(entry$variables), "")[pmax(tensor$variables, 1)], tensor$shape))
}

# The names along each Variable's axis: those of the first input that has some.
axis_names <- function(entry, inputs) {
  found <- vector("list", length(entry$variables))
  for (name in rev(names(inputs))) {
    for (k in seq_along(inputs[[name]]$dimnames)) {
      variable <- entry$inputs[[name]]$variables[k]
      along <- inputs[[name]]$dimnames[[k]]
      if (variable > 0 && !is.null(along)) found[[variable]] <- along
    }
  }
  found
}

# An output's axes whose size is a Variable have its inputs' names.
with_dimnames <- function(out, tensor, entry, names_of_axes) {
  along <- lapply(tensor$variables, function(v) if (v > 0) names_of_axes[[v]])
  if (all(vapply(along, is.null, TRUE))) return(out)
  if (is.null(dim(out))) {
    names(out) <- along[[1]]
    return(out)
  }
  names(along) <- ifelse(tensor$variables > 0, c(names(entry$variables), "")[pmax(tensor$variables, 1)], "")
  dimnames(out) <- along
  out
}

write_array <- function(fields, entry, role, tensor, data, sizes) {
  place <- c(entry, role, tensor$index, tensor$dtype)
  tryCatch(
    .Call(C_write_tensor, fields$pointer, place, data, sizes),
    polygrad_error = function(e) {
      e$message <- paste0(tensor$name, ": ", e$message)
      stop(e)
    }
  )
}

# A vector for one axis or none, else an array.
read_array <- function(fields, entry, role, tensor, sizes) {
  out <- .Call(C_read_tensor, fields$pointer, c(entry, role, tensor$index, tensor$dtype), as.numeric(sizes))
  if (length(sizes) > 1) dim(out) <- sizes
  out
}

# Models as R has them: predictions, coefficients, and a loop of training.

predict.polygrad_model <- function(object, newdata, ...) {
  inputs <- unclass(object)$entries[[1]]$inputs
  if (missing(newdata)) {
    outputs <- run(object, ...)
  } else if (is.list(newdata) && !is.data.frame(newdata)) {
    outputs <- run(object, c(newdata, list(...)))
  } else {
    outputs <- run(object, c(structure(list(newdata), names = names(inputs)[1]), list(...)))
  }
  if (length(outputs) == 1) outputs[[1]] else outputs
}

fit <- function(object, ...) UseMethod("fit")

fit.polygrad_model <- function(object, ..., epochs = 1, batch_size = NULL, order = NULL) {
  data <- list(...)
  entry <- unclass(object)$entries[[1]]
  first <- entry$inputs[[1]]
  if (is.null(batch_size)) {
    if (first$variables[1] > 0) raise("argument", "fit: expected a batch_size, as the model takes any")
    batch_size <- first$shape[1]
  }
  rows <- NROW(data[[first$name]])
  batches <- rows %/% batch_size
  if (is.null(order)) order <- unlist(lapply(seq_len(epochs), function(epoch) sample.int(batches)))
  history <- lapply(order, function(batch) {
    range <- (batch - 1) * batch_size + seq_len(batch_size)
    outputs <- run(object, lapply(data, function(x) rows_of(x, range)))
    unlist(outputs[lengths(outputs) == 1])
  })
  epoch <- (seq_along(order) - 1) %/% batches + 1
  invisible(data.frame(epoch = epoch, batch = order, do.call(rbind, history)))
}

# Some rows of an array with any number of axes.
rows_of <- function(x, range) {
  if (is.null(dim(x))) return(x[range])
  do.call(`[`, c(list(x, range), rep(list(TRUE), length(dim(x)) - 1), list(drop = FALSE)))
}

names.polygrad_model <- function(x) names(unclass(x)$values)

length.polygrad_model <- function(x) length(unclass(x)$values)

find_value <- function(fields, name) {
  found <- fields$values[[name]]
  if (is.null(found)) raise("not_found", "expected one of ", said(names(fields$values)), ", got ", name)
  found
}

`[[.polygrad_model` <- function(x, i) {
  fields <- unclass(x)
  value <- find_value(fields, i)
  read_array(fields, 0L, 2L, value, value$shape)
}

`[[<-.polygrad_model` <- function(x, i, value) {
  fields <- unclass(x)
  tensor <- find_value(fields, i)
  array <- as_array(value, i)
  if (!identical(array$sizes, tensor$shape) && !(length(tensor$shape) == 0 && identical(array$sizes, 1))) {
    raise("shape", i, ": expected shape ", said(tensor$shape), ", got ", said(array$sizes))
  }
  write_array(fields, 0L, 2L, tensor, array$data, array$sizes)
  x
}

coef.polygrad_model <- function(object, ...) sapply(names(object), function(name) object[[name]], simplify = FALSE)

save_values <- function(model, file = NULL) {
  invisible(.Call(C_save, unclass(model)$pointer, if (!is.null(file)) path_of(file, "save_values")))
}

load_values <- function(model, source) {
  .Call(C_load, unclass(model)$pointer, source_of(source, "load_values"))
  invisible(model)
}

model_file <- function(model, name) .Call(C_file, unclass(model)$pointer, as.character(name)[1])

# All tensors, a row each.
summary.polygrad_model <- function(object, ...) {
  fields <- unclass(object)
  rows <- function(tensors, entry, role) {
    lapply(tensors, function(tensor) {
      dtype <- names(dtype_names)[match(tensor$dtype, dtype_names)]
      data.frame(
        entry = entry$name, role = role, name = tensor$name, dtype = dtype, shape = shape_text(tensor, entry)
      )
    })
  }
  of_entries <- lapply(fields$entries, function(e) c(rows(e$inputs, e, "input"), rows(e$outputs, e, "output")))
  values <- rows(fields$values, list(name = "", variables = list()), "value")
  do.call(rbind, unname(c(unlist(unname(of_entries), recursive = FALSE), values)))
}

print.polygrad_model <- function(x, ...) {
  cat("polygrad model for ", device(x), "\n", sep = "")
  print(summary(x), row.names = FALSE)
  invisible(x)
}

device <- function(model) unclass(model)$device
