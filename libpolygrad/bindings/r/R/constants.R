# Written by scripts/generate_bindings.py from libpolygrad/manifest.json: do not edit.

status_names <- c(
  argument = 1L,
  io = 2L,
  format = 3L,
  version = 4L,
  digest = 5L,
  damaged = 6L,
  trust = 7L,
  unsupported = 8L,
  memory = 9L,
  no_engine = 10L,
  compile = 11L,
  trap = 12L,
  shape = 13L,
  busy = 14L,
  interrupted = 15L,
  timeout = 16L,
  half_written = 17L,
  not_found = 18L
)

dtype_names <- c(
  bool = 0L,
  int8 = 1L,
  uint8 = 2L,
  int16 = 3L,
  uint16 = 4L,
  int32 = 5L,
  uint32 = 6L,
  int64 = 7L,
  uint64 = 8L,
  fp8e4m3 = 9L,
  fp8e5m2 = 10L,
  float16 = 11L,
  bfloat16 = 12L,
  float32 = 13L,
  float64 = 14L
)
