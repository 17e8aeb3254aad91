"""Limits of exported files. They bound what a reader does for a file of somebody else before it trusts it.

`wasm_runtime/src/limits.ts` has the same numbers.
"""

from __future__ import annotations

MAX_HEADER = 64 << 20  # bytes of a header
MAX_DEPTH = 32  # of lists and objects in each other, in JSON
MAX_INTEGER = 2**53 - 1  # the largest that JavaScript's numbers tell apart from its neighbours
MAX_BYTES = 1 << 40  # of a buffer, of the arena, and of a part of a file
MAX_RANK = 64  # sizes in a shape
MAX_ARGUMENTS = 1000  # of a kernel: its pointers and its variables
MAX_THREADS = 4096
MAX_TARGETS = 64  # of a file
MAX_INVOCATIONS = 1024  # in a workgroup
MAX_SUBGROUP = 128  # invocations
MAX_GRID = 2**31 - 1  # workgroups along an axis
