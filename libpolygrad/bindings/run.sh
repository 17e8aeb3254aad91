#!/usr/bin/env bash
# Runs a binding's tests, or its example on what `examples/export_digits.py FOLDER` wrote:
#
#     run.sh rust|go|r test
#     run.sh rust|go|r digits FOLDER [--native]
#     run.sh r install    the package alone, to build/bindings/r/library
#
# The environment says where the libraries are (POLYGRAD_LIBRARY, PG_WASMTIME), and for tests where the files of
# tests/binding_models.py are (POLYGRAD_TEST_FILES). What is built goes to build/bindings.
set -euo pipefail
cd "$(dirname "$0")"
build=$(cd ../.. && pwd)/build/bindings
task=$1/$2
shift 2

# Install the package of R, unless it is there: others may be running it.
install_r() {
  mkdir -p "$build/r/library"
  exec 9> "$build/r/lock"
  if command -v flock > /dev/null; then flock 9; fi
  sources=$(find r -type f -exec cksum {} + | sort)
  if [ "$sources" != "$(cat "$build/r/sources" 2> /dev/null)" ]; then
    rm -rf "$build/r/polygrad" "$build/r/sources"
    cp -r r "$build/r/polygrad" # R compiles in the sources' folder
    R CMD INSTALL --no-test-load "--library=$build/r/library" "$build/r/polygrad" > "$build/r/install.log" 2>&1 ||
      { cat "$build/r/install.log" >&2 && exit 1; }
    echo "$sources" > "$build/r/sources"
  fi
  exec 9>&-
}

case $task in
rust/*) export CARGO_TARGET_DIR=$build/rust CARGO_NET_OFFLINE=true && cd rust ;;
go/*) cd go ;;
r/*)
  install_r
  export R_LIBS=$build/r/library
  cd r
  ;;
esac
case $task in
rust/test) exec cargo test --quiet ;;
rust/digits) exec cargo run --quiet --release --example digits -- "$@" ;;
go/test) test -z "$(gofmt -l . | tee /dev/stderr)" && go vet ./... && exec go test -count=1 . ;;
go/digits) exec go run ./examples/digits "$@" ;;
r/install) ;;
r/test) exec Rscript tests/models.R ;;
r/digits) exec Rscript inst/examples/digits.R "$@" ;;
*) echo "run.sh: expected rust|go|r and test|digits, got $task" >&2 && exit 2 ;;
esac
