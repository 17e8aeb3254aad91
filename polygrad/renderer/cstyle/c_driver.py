"""A driver as C. Its loader fills the array `kernels` with the kernels' addresses.

void run(char **table, int64_t *variables, int64_t thread, int64_t threads, void **team) {
  if (thread == 0)                                                                             serial calls
    kernels[0]((char *[]){table[1] + 64, ...}, (int64_t[]){variables[0], ...});
  if (threads > 1) ((barrier *)team[0])(team, threads);                             where a call has a barrier
  kernels[1](..., (int64_t[]){thread, ...});                                                   a parallel call
  parts(kernels[2], ...);                                                                one that has parts
}

For one thread `parts` calls the kernel once, else it is the team's `run_parts` (see `runtime/program.py`).
"""

from __future__ import annotations

from polygrad.helpers import PART, PARTS, PARTS_PER_THREAD, THREAD, THREADS
from polygrad.renderer.driver import Driver, DriverCall

_HEAD = """#include <stdint.h>

typedef void kernel(char **pointers, int64_t *values);
typedef void barrier(void **team, int64_t threads);
typedef void run_parts(kernel *, char **pointers, int64_t *values, int64_t place, int64_t number,
                       int64_t thread, int64_t threads, void **team);
"""
_PARTS = """
static void parts(kernel *function, char **pointers, int64_t *values, int64_t place, int64_t number,
                  int64_t thread, int64_t threads, void **team) {
  if (threads < 2)
    function(pointers, values);
  else
    ((run_parts *)team[3])(function, pointers, values, place, number, thread, threads, team);
}
"""
# The values of THREAD_VARIABLES in a call, without those that change from part to part.
_GIVEN = {
    THREAD: "thread",
    THREADS: "threads",
    PART: "0",
    PARTS: f"(threads < 2 ? 1 : threads * {PARTS_PER_THREAD})",
}


def c_driver(driver: Driver) -> str:
    """The driver's source."""
    lines = [_HEAD, f"kernel *kernels[{max(len(driver.kernels), 1)}];"]
    if any(call.has_parts for call in driver.calls):
        lines.append(_PARTS)
    lines.append("void run(char **table, int64_t *variables, int64_t thread, int64_t threads, void **team) {")
    number = 0
    for call in driver.calls:
        if call.barrier:
            lines.append("  if (threads > 1) ((barrier *)team[0])(team, threads);")
        serial = driver.parallel and not call.parallel
        lines.append(
            f"  {'if (thread == 0) ' if serial else ''}{_call(call, number)} // {driver.kernels[call.kernel]}"
        )
        number += call.has_parts
    return "\n".join([*lines, "}", ""])


def _call(call: DriverCall, number: int) -> str:
    """The text of a call. `number`: its place among the calls that have parts."""
    addresses = [f"table[{p.entry}]" + (f" + {p.offset}" if p.offset else "") for p in call.pointers]
    values = [f"variables[{v}]" if isinstance(v, int) else _GIVEN[v] for v in call.values]
    # null if there are none: C has no array without elements
    pointers = f"(char *[]){{{', '.join(addresses)}}}" if addresses else "0"
    numbers = f"(int64_t[]){{{', '.join(values)}}}" if values else "0"
    kernel = f"kernels[{call.kernel}]"
    if not call.has_parts:
        return f"{kernel}({pointers}, {numbers});"
    place = call.values.index(PART)
    return f"parts({kernel}, {pointers}, {numbers}, {place}, {number}, thread, threads, team);"
