"""`Builder`: how the emitter (emit.py) writes one function in a backend's language.

The emitter walks a linear kernel, keeps track of tiles (unrolled axes) and calls these methods; a builder
knows instructions, not axes. A value is whatever the builder likes. `lanes` is 1 for a scalar, else the
number of elements of a SIMD value: one number per kernel (the size of its LANE axis, a power of two).
The dtypes given are those of the IR (`dtypes.index` included: the target's machine integer). A bool is a
builder's own matter until it is stored (one byte, 0 or 1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.errors import InternalError
from polygrad.uop.args import Dot
from polygrad.uop.ops import Ops
from polygrad.uop.tensor_cores import TensorCore

Value = Any
Register = Any
Pointer = Any
Block = Any


class Builder(ABC):
    """One function being written: `begin`, then values and stores in order, then `finish`."""

    has_safepoints = False  # whether a long kernel looks for whether it is to stop
    has_prefetch = False  # whether loads of large buffers are announced
    target: Target

    @abstractmethod
    def begin(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[list[Pointer], list[Value]]:
        """Open the function; its pointers (one per element dtype) and its variables (index scalars)."""

    @abstractmethod
    def finish(self) -> Any:
        """Close the function; what it gives is the renderer's business."""

    # --- values

    @abstractmethod
    def const(self, dtype: DType, value: Any, lanes: int) -> Value:
        """`value` (a Python bool, int or float; NaN, -0.0 and infinities included) in every lane."""

    @abstractmethod
    def const_lanes(self, dtype: DType, values: Sequence[Any]) -> Value:
        """A SIMD constant, lane by lane."""

    @abstractmethod
    def alu(self, op: Ops, dtype: DType, args: Sequence[Value], lanes: int) -> Value:
        """An elementwise op. `dtype` is that of the operands (of the last two, for WHERE, whose first is
        bool).

        Comparisons give bool; CMPNE of floats is true for NaN, CMPLT and CMPEQ are false. MAX of floats gives
        NaN when either is. Integers wrap. IDIV and MOD round to minus infinity; the divisor is never 0 or -1.
        Shift amounts are in range. Ops: SQRT, RECIPROCAL, NEG, TRUNC, ADD, SUB, MUL, FDIV, IDIV, MOD, MAX,
        SHL, SHR (arithmetic for signed), AND, OR, XOR, CMPLT, CMPNE, CMPEQ, WHERE, MULACC (a*b + c, fused
        where the target says so). float16 and bfloat16 arithmetic never comes: it is done in float32.
        """

    @abstractmethod
    def dot(self, kinds: Dot, a: Value, b: Value, c: Value, lanes: int) -> Value:
        """c + the sum of the products of what the words a and b hold, int32; `kinds` is one of the target's
        `dots`. `lanes` is 1, or at least 4."""

    @abstractmethod
    def cast(self, value: Value, src: DType, dst: DType, lanes: int) -> Value:
        """Convert numerically. float to int truncates and saturates, NaN gives 0; to bool is != 0; to
        float16/bfloat16 rounds to nearest even."""

    @abstractmethod
    def bitcast(self, value: Value, src: DType, dst: DType, lanes: int) -> Value:
        """The same bits as another dtype of the same size."""

    @abstractmethod
    def splat(self, value: Value, dtype: DType, lanes: int) -> Value:
        """A scalar in every lane."""

    @abstractmethod
    def extract(self, value: Value, dtype: DType, lane: int, lanes: int) -> Value:
        """One lane as a scalar."""

    @abstractmethod
    def pack(self, values: Sequence[Value], dtype: DType) -> Value:
        """Scalars as the lanes of one SIMD value."""

    @abstractmethod
    def reduce(self, op: Ops, value: Value, dtype: DType, lanes: int) -> Value:
        """The lanes combined with ADD, MUL or MAX into a scalar, as a balanced tree."""

    @abstractmethod
    def interleave(self, a: Value, b: Value, dtype: DType, lanes: int) -> tuple[Value, Value]:
        """a0 b0 a1 b1 ... of two SIMD values of at least 4 lanes: its first half, and its second."""

    # --- blocks: consecutive elements as memory holds them, to permute before they become lanes

    @abstractmethod
    def block_size(self, dtype: DType, lanes: int) -> int:
        """How many elements one block has, in a kernel of this many lanes."""

    @abstractmethod
    def load_block(
        self, pointer: Pointer, index: Value | None, offset: int, dtype: DType, lanes: int
    ) -> Block:
        """A block of consecutive elements (addresses as below)."""

    @abstractmethod
    def permute(self, blocks: Sequence[Block], positions: Sequence[int], dtype: DType) -> Value:
        """The SIMD value whose lane i is element `positions[i]` of the blocks one after the other."""

    # --- memory. An address is pointer + (index + offset) elements; `index` is an index scalar, or None for
    # 0.

    @abstractmethod
    def load(self, pointer: Pointer, index: Value | None, offset: int, dtype: DType, lanes: int) -> Value:
        """`lanes` consecutive elements."""

    @abstractmethod
    def load_masked(
        self,
        pointer: Pointer,
        index: Value | None,
        offset: int,
        dtype: DType,
        lanes: int,
        mask: Value,
        other: Value,
    ) -> Value:
        """`lanes` (> 1) consecutive elements where the bool `mask` holds, `other` elsewhere. Elements whose
        mask is false may lie anywhere, outside memory too."""

    @abstractmethod
    def store(
        self, pointer: Pointer, index: Value | None, offset: int, value: Value, dtype: DType, lanes: int
    ) -> None:
        """`lanes` consecutive elements written."""

    def prefetch(self, pointer: Pointer, index: Value | None, offset: int) -> None:
        """Have the cache line at an address fetched, which may lie outside memory. Only where `has_prefetch`
        says so."""
        raise InternalError(f"{type(self).__name__}.prefetch: expected a device that fetches ahead")

    # --- control

    @abstractmethod
    def loop(self, size: Value) -> Value:
        """Open a loop of `size` rounds (an index scalar, possibly 0); its counter, an index scalar."""

    @abstractmethod
    def end_loop(self) -> None:
        """Close the innermost open loop."""

    def safepoint(self, counter: Value, interval: int) -> None:
        """At the start of a round of the innermost open loop, whose counter is given: return from the kernel
        where it is to stop. `interval`: every how many rounds to look, a power of 2."""
        raise InternalError(f"{type(self).__name__}.safepoint: expected a kernel that a processor runs")

    def begin_if(self, condition: Value) -> None:
        """Open a block that runs where a bool scalar holds; `end_if` closes it."""
        one, zero = (self.const(dtypes.index, n, 1) for n in (1, 0))
        self.loop(self.alu(Ops.WHERE, dtypes.index, [condition, one, zero], 1))

    def end_if(self) -> None:
        """Close the block that `begin_if` opened."""
        self.end_loop()

    # --- registers: variables that live across rounds of a loop

    @abstractmethod
    def register(self, dtype: DType, lanes: int) -> Register:
        """A new mutable variable, undefined until set."""

    @abstractmethod
    def get(self, register: Register) -> Value: ...

    @abstractmethod
    def set(self, register: Register, value: Value) -> None: ...

    # --- workgroups: of GPUs alone

    def special(self, kind: str, axis: int, size: Value) -> Value:
        """An index scalar: the workgroup's place in the grid (`kind` "workgroup") or the invocation's place
        in its workgroup ("invocation") along `axis`, 0 to 2; `size`: how many there are, an index scalar."""
        raise InternalError(f"{type(self).__name__}.special: expected a device with workgroups")

    def wmma(
        self, core: TensorCore, a: Sequence[Value], b: Sequence[Value], c: Sequence[Value]
    ) -> Sequence[Value]:
        """The elements of a @ b + c that this lane holds, from those that it holds of each, in the order of
        the core's fragments, the first axis of elements fastest."""
        raise InternalError(f"{type(self).__name__}.wmma: expected no WMMA: its Target names no tensor core")

    def shuffle_xor(self, value: Value, dtype: DType, mask: int, lanes: int) -> Value:
        """What the invocation has whose number in the subgroup differs by the bits `mask`. All invocations
        come to it, so it is computed where it is asked for, and not in a branch."""
        raise InternalError(f"{type(self).__name__}.shuffle_xor: expected a device whose subgroups exchange")

    def barrier(self) -> None:
        """Wait for all invocations of the workgroup; all then see what any wrote to workgroup memory."""
        raise InternalError(f"{type(self).__name__}.barrier: expected a device with workgroups")

    def shared(self, name: str, dtype: DType, size: int) -> Pointer:
        """Workgroup memory: `size` elements, undefined until written."""
        raise InternalError(f"{type(self).__name__}.shared: expected a device with workgroups")
