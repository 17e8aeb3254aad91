"""What a UOp's `arg` holds, where it is more than a number, a name or a shape; node.py says of which ops."""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

from polygrad.dtype import DType, dtypes
from polygrad.uop.ops import Ops

if TYPE_CHECKING:
    from polygrad.uop.node import UOp
    from polygrad.uop.shapes import Sint


class AxisKind(IntEnum):
    """How a RANGE runs."""

    LOOP = 0  # a loop over output elements
    REDUCE = 1  # a loop over reduced elements
    UPCAST = 2  # unrolled output elements: a tile of registers
    UNROLL = 3  # unrolled reduced elements
    LANE = 4  # the lanes of a SIMD vector
    SCAN = 5  # a loop over output elements that go in order, as running values do
    GLOBAL = 6  # the workgroups of a grid
    LOCAL = 7  # the invocations of a workgroup
    SUBGROUP = 8  # the lanes of a subgroup, which run in step

    __hash__ = int.__hash__


class Axis(NamedTuple):
    """RANGE: `id` is a path, from the axis of the kernel as it was scheduled to what was made of it:
    splitting (1,) gives (1, 0), (1, 1), ... So ids are unique without looking at the rest of the kernel."""

    id: tuple[int, ...]
    kind: AxisKind

    def child(self, number: int, kind: AxisKind | None = None) -> Axis:
        """The axis made of this one: 0 the loop over its tiles, 1 unrolled, 2 its lanes."""
        return Axis((*self.id, number), self.kind if kind is None else kind)

    def segment(self, number: int) -> Axis:
        """This axis in one of the parts that its loop, or one around or inside it, was divided into."""
        return self.child(3 + 2 * number)

    def copy(self, number: int, kind: AxisKind | None = None) -> Axis:
        """This axis in what fills the kernel's STAGE `number`."""
        return self.child(4 + 2 * number, kind)


class AddrSpace(IntEnum):
    """Where memory is."""

    GLOBAL = 0  # a buffer that the kernel is given
    LOCAL = 1  # the kernel's own, one for each thread
    SHARED = 2  # a workgroup's own

    __hash__ = int.__hash__


class Param(NamedTuple):
    """PARAM: a kernel's pointer argument number `slot`, to `size` elements; the GLOBAL ones come first.
    SHARED ones are no arguments: the kernel declares them."""

    slot: int
    size: int
    space: AddrSpace = AddrSpace.GLOBAL


class Memory(NamedTuple):
    """STAGE: `size` elements in `space`."""

    size: int
    space: AddrSpace


class Special(NamedTuple):
    """SPECIAL: the number of a workgroup (GLOBAL) or of an invocation in its workgroup (LOCAL) along
    dimension `axis`, 0 to 2."""

    kind: AxisKind
    axis: int


class Magnitude(IntEnum):
    """SIN: what is known of its argument."""

    NEAR = 0  # it needs no long range reduction (`transcendental.is_far`)

    __hash__ = int.__hash__


class Exponent(IntEnum):
    """EXP2: what its operand is."""

    SCALED = (
        0  # x * c: its kernels may take all digits of c, as `exp` does. Any other product is rounded first
    )

    __hash__ = int.__hash__


class Dot(NamedTuple):
    """DOT: the numbers that words of 32 bits hold, those of the first operand and those of the second."""

    a: DType
    b: DType

    @property
    def elements(self) -> int:
        """How many a word holds."""
        return 4 // self.a.itemsize

    @property
    def total(self) -> DType:
        """The dtype of the sums."""
        return dtypes.float32 if self.a.is_float else dtypes.int32


class Reg(NamedTuple):
    """DEFINE_REG: a mutable register, told apart by `id`."""

    id: int


class Var(NamedTuple):
    """DEFINE_VAR: a symbolic integer, `lo` to `hi`, both included. `dtype`: the name of the dtype that it has
    as a number among Tensors, if it was said."""

    name: str
    lo: int
    hi: int
    dtype: str = ""

    def __repr__(self) -> str:
        said = f", dtype={self.dtype!r}" if self.dtype else ""
        return f"Var(name={self.name!r}, lo={self.lo!r}, hi={self.hi!r}{said})"


class Steps(NamedTuple):
    """INDEX: the part of the position that is constant per tile element, sum(step * range) + offset."""

    steps: tuple[tuple[UOp, int], ...]
    offset: int


class Shear(NamedTuple):
    """SHEAR: at position `k` of axis `along`, `size` elements of `axis` from `start + step * k` on."""

    axis: int
    along: int
    start: Sint
    step: Sint
    size: Sint


class Reduction(NamedTuple):
    """REDUCE_AXIS: combine with `op` along `axes`, which stay as size 1. SCAN_AXIS: running values along the
    only one of `axes`."""

    op: Ops
    axes: tuple[int, ...]


class For(NamedTuple):
    """FOR: `body`, a SINK of what values become in a trip, `trips` times over; of these the one number
    `result`. In the body, source i of the node is PARAM i under a RESHAPE."""

    trips: int
    body: UOp
    result: int


class Leaf:
    """DETACH: a leaf of autograd, at which gradients arrive. Compared by identity: all versions of one
    Tensor's value have the same. `tensor`: a weak reference to the Tensor; `hooks`: as of `Hooks`."""

    __slots__ = ("hooks", "tensor")

    def __init__(self, tensor: Callable[[], Any]) -> None:
        self.tensor = tensor
        self.hooks: list[Callable[[UOp], UOp]] = []


class Spent(Enum):
    """DETACH: `backward` has gone through this value. SPENT: gradients still pass, but what they read is not
    kept when its memory is overwritten. FREED: it was, and the graph is gone: a gradient that comes here is
    an error."""

    SPENT = "spent"
    FREED = "freed"


class Hooks:
    """DETACH: a gradient that passes goes through the functions `hooks`, one after the other."""

    __slots__ = ("hooks",)

    def __init__(self) -> None:
        self.hooks: list[Callable[[UOp], UOp]] = []


class Sharding(NamedTuple):
    """COPY: onto `devices`, each of which has an equal part of the elements along `axis`, in order; None:
    each has all of them."""

    devices: tuple[str, ...]
    axis: int | None


class ExactFloat(float):
    """A float constant that is told apart by its bits: -0.0 is not 0.0 and NaN equals NaN."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and struct.pack("<d", self) == struct.pack("<d", other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(struct.pack("<d", self))
