"""Tensor cores: instructions by which the lanes of a subgroup multiply two small matrices together.

    WMMA(a, b, c, ...) = a @ b + c      a: m x k, b: k x n, c: m x n

Each lane holds a *fragment* of each matrix: some of its elements, in registers. A `Fragment` describes which
ones: row and column are sums of steps along axes of lanes and axes of the lane's elements. The axis k may be
in any order that `a` and `b` share, because it is summed. CUDA's order makes the elements of a lane
neighbours.

Some cores read the operands themselves, from memory of the workgroup.

CUDA: PTX ISA, "Matrix Fragments for mma.m16n8k16" and "mma.m16n8k8"; "Asynchronous Warpgroup Level Matrix
Instructions". Metal documents no layout of simdgroup_matrix; this is the one that its compilers have always
used (MLX and tinygrad rely on it, too).
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.dtype import DType, dtypes


class Term(NamedTuple):
    """`step` along an axis: of lanes, or of a lane's elements."""

    is_lane: bool
    axis: int
    step: int


Terms = tuple[Term, ...]


class Fragment(NamedTuple):
    """A lane's part of a matrix. `elements`: the sizes of the axes of its elements, the fastest first."""

    elements: tuple[int, ...]
    rows: Terms
    columns: Terms


class TensorCore(NamedTuple):
    """An instruction. `operands`, `total`: the dtypes of a and b, and of c. `lanes`: the sizes of the axes of
    the lanes, the fastest first. `rounds`: it rounds the operands to fewer bits than their dtype has.
    `in_memory`: it reads the operands itself, from swizzled memory of the workgroup (`Memory`), in rows along
    the terms or across them. All elements of an operand are in the fragment of every lane then: 64 terms, 64
    rows or columns, and how many 64s of these."""

    name: str
    m: int
    n: int
    k: int
    operands: DType
    total: DType
    lanes: tuple[int, ...]
    a: Fragment
    b: Fragment
    c: Fragment
    rounds: bool = False
    in_memory: bool = False

    @property
    def size(self) -> int:
        """The number of lanes."""
        out = 1
        for n in self.lanes:
            out *= n
        return out


def _lane(axis: int, step: int) -> Term:
    return Term(True, axis, step)


def _element(axis: int, step: int) -> Term:
    return Term(False, axis, step)


_MMA_LANES = (4, 8)
_MMA_C = Fragment((2, 2), (_lane(1, 1), _element(1, 8)), (_lane(0, 2), _element(0, 1)))


def _mma_16(name: str, operands: DType) -> TensorCore:
    a = Fragment((2, 2, 2), (_lane(1, 1), _element(1, 8)), (_lane(0, 4), _element(2, 2), _element(0, 1)))
    b = Fragment((2, 2), (_lane(0, 4), _element(1, 2), _element(0, 1)), (_lane(1, 1),))
    return TensorCore(name, 16, 8, 16, operands, dtypes.float32, _MMA_LANES, a, b, _MMA_C)


def _mma_tf32() -> TensorCore:
    a = Fragment((2, 2), (_lane(1, 1), _element(0, 8)), (_lane(0, 2), _element(1, 1)))
    b = Fragment((2,), (_lane(0, 2), _element(0, 1)), (_lane(1, 1),))
    return TensorCore(
        "mma_m16n8k8_tf32", 16, 8, 8, dtypes.float32, dtypes.float32, _MMA_LANES, a, b, _MMA_C, True
    )


WGMMA_SIDE = 64  # rows, terms, and elements of a row in memory: 128 bytes


def _wgmma(name: str, operands: DType, n: int) -> TensorCore:
    """wgmma.mma_async of PTX, of four subgroups: four of them in a row, of 16 terms each."""
    side = WGMMA_SIDE
    a = Fragment((side, side), (_element(1, 1),), (_element(0, 1),))
    b = Fragment((side, side, n // side), (_element(0, 1),), (_element(1, 1), _element(2, side)))
    rows = (_lane(1, 1), _element(1, 8), _lane(2, 16))
    c = Fragment((2, 2, n // 8), rows, (_lane(0, 2), _element(0, 1), _element(2, 8)))
    full = f"wgmma_m64n{n}k64_{name}"
    return TensorCore(full, side, n, side, operands, dtypes.float32, (4, 8, 4), a, b, c, in_memory=True)


def _simdgroup(name: str, operands: DType) -> TensorCore:
    part = Fragment((2,), (_lane(3, 4), _lane(1, 1)), (_lane(2, 4), _lane(0, 2), _element(0, 1)))
    return TensorCore(name, 8, 8, 8, operands, dtypes.float32, (2, 4, 2, 2), part, part, part)


# An Opt says which by its place here.
TENSOR_CORES = (
    _mma_16("mma_m16n8k16_half", dtypes.float16),
    _mma_16("mma_m16n8k16_bfloat", dtypes.bfloat16),
    _mma_tf32(),
    _simdgroup("simdgroup_8x8_half", dtypes.float16),
    _simdgroup("simdgroup_8x8_bfloat", dtypes.bfloat16),
    _simdgroup("simdgroup_8x8_float", dtypes.float32),
    _wgmma("half", dtypes.float16, 128),
    _wgmma("half", dtypes.float16, 64),
    _wgmma("bfloat", dtypes.bfloat16, 128),
    _wgmma("bfloat", dtypes.bfloat16, 64),
)
BY_NAME = {core.name: core for core in TENSOR_CORES}
