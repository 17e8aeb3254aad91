"""The cost model of the schedule: the costs of operations, and the sizes from which a graph is fused or
divided.

A cost of running is in multiply-adds of one SIMD value; `bench/calibrate.py` prints each beside what it
measures. A cost of compiling is in simple operations that take a compiler as long. Numbers that depend on a
Target are in codegen/opts/cost.py.
"""

from __future__ import annotations

from polygrad.uop.ops import Ops

# operations that cost more than one to run
_RUN_COST = {
    Ops.EXP2: 20,
    Ops.LOG2: 25,
    Ops.SIN: 30,
    Ops.POW: 60,
    Ops.THREEFRY: 80,
    Ops.FDIV: 4,
    Ops.RECIPROCAL: 4,
    Ops.SQRT: 4,
}

# operations that become many
_COMPILE_COST = {Ops.SIN: 100, Ops.EXP2: 20, Ops.LOG2: 20, Ops.POW: 40, Ops.THREEFRY: 100}

# fusion_partition.py: values that are computed again in each consumer, instead of stored once
MAX_BUFFERS = 3  # that a duplicated expression reads
MAX_COPIES = 32  # a kernel computes a node at no more indices than this
MAX_BROADCAST = 1 << 18  # cost of running that a broadcast may repeat
CHEAP = 4  # cost of running of a value that any broadcast may repeat
MAX_TILE_ROWS = 8  # of a product's register tile, in which each value of the other operand is used
MAX_TILE_WORK = 24  # cost of running of a value of an operand that such tiles compute again
MAX_SMALL_OPERAND = 1 << 14  # elements of an operand that is stored however cheap it is
MAX_REPEATED = 256  # elements that a duplicated reduction to a scalar may read

# operation_limit.py
MAX_OPERATIONS = 1000  # cost of compiling of a kernel

# codegen/kernels/fuse.py
MIN_ROWS = 8  # with fewer, lanes and threads divide the passes over a row better in kernels of their own

# products.py, isolated_products.py: products in kernels of their own
MIN_PRODUCT = 1 << 15  # terms of a product that is worth a launch
MIN_VECTOR_PRODUCT = 1 << 17  # ... of a product with one row
MIN_REUSE = 4  # how often it reads each element of its operands
MAX_BLOCK_TERMS = 256  # terms of a product of integers that is a term of a sum of floats
MIN_USED_SHARE = 2  # one of this many elements has to be used; else the product is computed where it is used


def run_cost(op: Ops) -> int:
    """The cost of running `op` for one value."""
    return _RUN_COST.get(op, 1)


def compile_cost(op: Ops) -> int:
    """The cost of compiling one `op` of a kernel."""
    return _COMPILE_COST.get(op, 1)
