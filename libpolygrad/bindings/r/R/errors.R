# Errors are conditions of the class "polygrad_error", and of one that says the kind, such as
# "polygrad_trust_error": tryCatch(..., polygrad_trust_error = function(e) ...).

# Called by src/polygrad.c with a status.
fail <- function(status, message) {
  kind <- names(status_names)[match(status, status_names)]
  raise(if (status < 0) "no_library" else if (is.na(kind)) "other" else kind, message)
}

raise <- function(kind, ...) {
  classes <- c(paste0("polygrad_", kind, "_error"), "polygrad_error", "error", "condition")
  stop(structure(list(message = paste0(...), call = NULL), class = classes))
}
