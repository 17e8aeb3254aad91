#!/usr/bin/env bash
# The quick tests of the core with the wheel $1, in $2 processes, under each Python that is here beside .venv's: 3.11 to
# 3.14, also one of pyenv's, each in an environment of its own in build/. Pyodide's 3.14 runs in the end-to-end tests.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0
core=(uop schedule codegen renderer runtime capture engine tensor nn training export cli)

# A Python $1 that works, or nothing: pyenv has a command for each version, which works only if that is switched on.
find_python() {
  for python in "python$1" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$1".*/bin/python; do
    if "$python" -c pass 2> /dev/null; then
      echo "$python"
      return
    fi
  done
}

for version in 3.11 3.12 3.13 3.14; do
  [ "$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')" != "$version" ] || continue
  python=$(find_python "$version")
  if [ -z "$python" ]; then
    echo "Python $version is not here: nothing is tested with it"
    continue
  fi
  folder=build/python$version
  [ -x "$folder/bin/pip" ] || "$python" -m venv "$folder"
  "$folder/bin/pip" install --quiet --upgrade 'pip>=25.1'
  # One after the other: torch for some Pythons is a build for CUDA, which needs another NVRTC than the tests'.
  "$folder/bin/pip" install --quiet --group test
  "$folder/bin/pip" install --quiet --group judges
  "$folder/bin/pip" uninstall --quiet --yes triton # torch's for CUDA, which crashes beside the tests' WebGPU driver
  "$folder/bin/pip" install --quiet --force-reinstall --no-deps "$1"
  "$folder/bin/pip" install --quiet "$1"
  POLYGRAD_TEST_WHEEL=1 "$folder/bin/pytest" -n "$2" --dist worksteal -m "not slow and not e2e" "${core[@]/#/tests/}" || failed=1
done
exit $failed
