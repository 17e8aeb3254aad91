"""The arguments of UOps that are more than a number, a name or a shape. node.py lists the ops; those that
hold UOps themselves are in linear.py (`Steps`) and for_loop.py (`For`)."""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum, IntEnum
from typing import Any, NamedTuple

from polygrad.dtype import DType, dtypes
from polygrad.uop.ops import Ops
from polygrad.uop.sizes import Sint


class AxisKind(IntEnum):
    """The kind of a RANGE."""

    LOOP = 0  # a loop over output elements
    REDUCE = 1  # a loop over reduced elements
    UPCAST = 2  # unrolled output elements: a tile of registers
    UNROLL = 3  # unrolled reduced elements
    LANE = 4  # the lanes of a SIMD vector
    SCAN = 5  # a loop over output elements in order, for running values
    GLOBAL = 6  # the workgroups of a grid
    LOCAL = 7  # the invocations of a workgroup
    SUBGROUP = 8  # the lanes of a subgroup, which run in step

    __hash__ = int.__hash__


class Axis(NamedTuple):
    """RANGE: `id` is a path. It starts at the number of the scheduled kernel's axis, and each split appends a
    number: splitting (1,) gives (1, 0), (1, 1), ... So new ids are unique without a look at other axes."""

    id: tuple[int, ...]
    kind: AxisKind

    def child(self, number: int, kind: AxisKind | None = None) -> Axis:
        """An axis that this one was split into: 0 is the loop over tiles, 1 the unrolled axis, 2 the
        lanes."""
        return Axis((*self.id, number), self.kind if kind is None else kind)

    def segment(self, number: int) -> Axis:
        """This axis in part `number` of a partitioned loop: its own, one around it or one inside of it."""
        return self.child(3 + 2 * number)

    def is_other_segment(self, other: Axis) -> bool:
        """Whether `other` is this axis in another part of a partitioned loop."""
        if len(self.id) != len(other.id) or self.id[0] != other.id[0]:
            return False
        different = [pair for pair in zip(self.id, other.id, strict=True) if pair[0] != pair[1]]
        return len(different) == 1 and all(n > 1 and n % 2 for n in different[0])

    def copy(self, number: int, kind: AxisKind | None = None) -> Axis:
        """This axis in the loops that fill the kernel's STAGE `number`."""
        return self.child(4 + 2 * number, kind)


class AddrSpace(IntEnum):
    """An address space."""

    GLOBAL = 0  # a buffer, which is an argument of the kernel
    LOCAL = 1  # private memory of each thread
    SHARED = 2  # memory of a workgroup

    __hash__ = int.__hash__


class Param(NamedTuple):
    """PARAM: a kernel's pointer argument number `slot`, to `size` elements; the GLOBAL ones come first.
    SHARED ones are no arguments: the kernel declares them. `depth`, `swizzled`: as of the STAGE that it is
    the memory of."""

    slot: int
    size: int
    space: AddrSpace = AddrSpace.GLOBAL
    depth: int = 1
    swizzled: bool = False


class Memory(NamedTuple):
    """STAGE: `size` elements in `space`.

    `depth`: how many buffers of that size a workgroup has: while it reads one, copies to the others go on.
    `swizzled`: of each 8 rows of 128 bytes, row r has its pieces of 16 bytes in the order of `piece XOR r`,
    so that a column of pieces lies in different banks. That is how tensor cores read memory.
    """

    size: int
    space: AddrSpace
    depth: int = 1
    swizzled: bool = False


class Pending(NamedTuple):
    """BARRIER: how many groups of copies, the last ones, need not be complete."""

    groups: int


class Special(NamedTuple):
    """SPECIAL: the number of a workgroup (GLOBAL) or of an invocation in its workgroup (LOCAL) along
    dimension `axis`, 0 to 2."""

    kind: AxisKind
    axis: int


class Magnitude(IntEnum):
    """SIN: a fact about its operand."""

    NEAR = 0  # it needs no long range reduction (`transcendental/sine.py`)

    __hash__ = int.__hash__


class Exponent(IntEnum):
    """EXP2: a fact about its operand."""

    # x * c, which is not rounded: c has more digits than its dtype, as in `exp`. Other products are rounded.
    SCALED = 0
    # such a product that is at most 0, or NaN, as in `softmax`
    NONPOSITIVE = 1

    __hash__ = int.__hash__


class Dot(NamedTuple):
    """DOT: the dtypes of the numbers packed in words of 32 bits, of the first operand and of the second.
    `bits`: of the first operand's numbers, which are not negative; 0: all that their dtype has."""

    a: DType
    b: DType
    bits: int = 0

    @property
    def elements(self) -> int:
        """The count of numbers in a word."""
        return 4 // self.a.itemsize

    @property
    def max_a(self) -> int:
        """The largest number of the first operand, if these are integers."""
        return (1 << self.bits) - 1 if self.bits else int(self.a.max)

    @property
    def total(self) -> DType:
        """The dtype of the sums."""
        return dtypes.float32 if self.a.is_float else dtypes.int32


MATRIX_SIDE = 16  # MATMUL: the rows of a matrix register, and the words of a row


class Reg(NamedTuple):
    """DEFINE_REG: a mutable register, identified by `id`."""

    id: int


class Var(NamedTuple):
    """DEFINE_VAR: a symbolic integer, `lo` to `hi`, both included. `dtype`: the name of its dtype as an
    operand of Tensors, or empty for the default."""

    name: str
    lo: int
    hi: int
    dtype: str = ""

    def __repr__(self) -> str:
        dtype = f", dtype={self.dtype!r}" if self.dtype else ""
        return f"Var(name={self.name!r}, lo={self.lo!r}, hi={self.hi!r}{dtype})"


class Shear(NamedTuple):
    """SHEAR: at position `k` of axis `along`, take `size` elements of `axis` from `start + step * k` on."""

    axis: int
    along: int
    start: Sint
    step: Sint
    size: Sint


class Reduction(NamedTuple):
    """REDUCE_AXIS: combine with `op` along `axes`, which keep size 1. SCAN_AXIS: running values along the one
    axis in `axes`."""

    op: Ops
    axes: tuple[int, ...]


class Leaf:
    """DETACH: a leaf of autograd, at which gradients arrive. Leaves are compared by identity; all versions of
    a Tensor's value share one. `tensor`: a weak reference to the Tensor, which has the leaf's hooks: the
    intern table holds this object, and would hold a Tensor that a hook refers to for ever."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Callable[[], Any]) -> None:
        self.tensor = tensor


class Spent(Enum):
    """DETACH: `backward` has gone through this value. SPENT: gradients still pass, but the values that they
    read are not preserved when their memory is overwritten. FREED: they were overwritten and the graph is
    gone, so a gradient that arrives here is an error."""

    SPENT = "spent"
    FREED = "freed"

    __hash__ = object.__hash__  # an Enum hashes its name in Python


class Hooks:
    """DETACH: a gradient that passes goes through the functions `hooks`, one after the other."""

    __slots__ = ("hooks",)

    def __init__(self) -> None:
        self.hooks: list[Callable[[Any], Any]] = []  # from UOp to UOp


class Sharding(NamedTuple):
    """COPY: to `devices`, each of which gets an equal part of the elements along `axis`, in order, or with
    None a copy of all of them."""

    devices: tuple[str, ...]
    axis: int | None


class ExactFloat(float):
    """A float constant that is compared by its bits: -0.0 is not 0.0 and NaN equals NaN."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and struct.pack("<d", self) == struct.pack("<d", other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(struct.pack("<d", self))
