#!/usr/bin/env bash
# The parts of `make test-all`, by the command $PYTEST, with the wheel $1, in $2 processes, the end-to-end tests in $3. A
# part that fails does not keep the others from running; at the end comes what each took, and whether it passed.
set -uo pipefail
cd "$(dirname "$0")/.."
wheel=$1 jobs=$2 e2e_jobs=$3
export HYPOTHESIS_PROFILE=thorough
read -ra pytest <<< "$PYTEST --durations=40"
quick=(env POLYGRAD_TEST_LEFTOVERS=1 "${pytest[@]}" -n "$jobs" --dist worksteal -m "not e2e")
table=() failed=0

part() {
  local name=$1 start=$SECONDS result=passed
  shift
  "$@" || { result=failed failed=1; }
  table+=("$(printf '%-28s %4d s  %s' "$name" $((SECONDS - start)) $result)")
}

part 'what tests need' bash -ec 'for what in toolchains node24 firefox ecosystem languages ray; do scripts/$what.sh; done'
part 'devices, guarded' env POLYGRAD_TEST_GUARDS=1 "${quick[@]}" tests/device
part 'all that is not end-to-end' "${quick[@]}" --ignore=tests/device
part 'parity' .venv/bin/python -m tests.parity
part 'npm' npm test --silent
part 'end-to-end' "${pytest[@]}" -n "$e2e_jobs" --dist loadfile -m e2e
part 'other Pythons' scripts/pythons.sh "$wheel" "$jobs"
part 'demo' .venv/bin/python examples/demo.py
printf '%s\n' "${table[@]}"
exit $failed
