"""`Builder`: how the emitter (emit.py) writes one function in a backend's language.

The emitter walks a linear kernel, keeps track of tiles (unrolled axes) and calls these methods; a builder
knows instructions, not axes. Each builder represents values as it likes. `lanes` is 1 for a scalar, else the
number of elements of a SIMD value: one number per kernel (the size of its LANE axis, a power of two). Dtypes
are those of the IR (`dtypes.index` included: the target's machine integer). Each builder represents bools as
it likes, but stores one as a byte, 0 or 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

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

HALF_DTYPES = (dtypes.float16, dtypes.bfloat16)
_NO_WORKGROUPS = "the device has no workgroups"


class Address(NamedTuple):
    """Element number `base` + `offset` of the memory at `pointer`. `base`: an index scalar; None for 0."""

    pointer: Pointer
    base: Value | None = None
    offset: int = 0

    def plus(self, elements: int) -> Address:
        """The address of a later element."""
        return Address(self.pointer, self.base, self.offset + elements)

    def with_base(self, base: Value) -> Address:
        """The address with another base."""
        return Address(self.pointer, base, self.offset)


class Operand(NamedTuple):
    """A tensor core's operand in swizzled memory of the workgroup: where it begins, whether its rows go along
    the terms, and how far apart the blocks of 64 rows or columns are, in elements."""

    start: Address
    along_terms: bool
    step: int


class Matrix(NamedTuple):
    """A matrix of words in memory: where it begins, and the words from one row to the next. The words of a
    row are neighbours."""

    start: Address
    step: int


class Builder(ABC):
    """One function being written: `begin`, then values and stores in order, then `finish`."""

    has_safepoints = False  # whether a long kernel checks a flag that asks it to stop
    has_prefetch = False  # whether loads of large buffers are announced
    target: Target

    @abstractmethod
    def begin(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[list[Pointer], list[Value]]:
        """Open the function; its pointers, one for each dtype of `params`, and its variables (index
        scalars)."""

    @abstractmethod
    def finish(self) -> Any:
        """Close the function; the result, of a type of the builder's own."""

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

    def unknown_op(self, op: Ops, dtype: DType) -> InternalError:
        """The error of `alu` for an op that it does not have."""
        return InternalError(f"{type(self).__name__}.alu: {op} of {dtype} is no op of Builder.alu")

    def dot(self, kinds: Dot, a: Value, b: Value, c: Value, lanes: int) -> Value:
        """c plus the products of the elements packed in the words a and b, of dtype `kinds.total`. `kinds`
        is one of the target's `dots`. `lanes` is 1, or at least 4. Floats are added in any order, and
        subnormal numbers may count as 0."""
        raise self._missing("dot", "the Target names no DOT")

    def matmul(self, kinds: Dot, c: Matrix, a: Matrix, b: Matrix, size: tuple[int, int, int]) -> None:
        """Set c to the products of a's rows and b's columns, as `dot` adds them up. `kinds`: of the elements
        in a's words and in b's, one of the target's `matrices` in either order. `size`: rows, columns and
        words: whole tiles of 16, or fewer than 16 rows; at most four tiles of c."""
        raise self._missing("matmul", "the Target names no products of matrices")

    def cast(self, value: Value, src: DType, dst: DType, lanes: int) -> Value:
        """Convert numerically. float to int truncates and saturates, NaN gives 0; to bool is != 0; to
        float16/bfloat16 rounds to nearest even."""
        if src == dst:
            return value
        if src in HALF_DTYPES:
            return self.cast(self.extend_half(value, src, lanes), dtypes.float32, dst, lanes)
        if dst in HALF_DTYPES:
            if src != dtypes.float64:
                value, src = self.cast(value, src, dtypes.float32, lanes), dtypes.float32
            return self.truncate_to_half(value, src, dst, lanes)
        return self.cast_number(value, src, dst, lanes)

    @abstractmethod
    def cast_number(self, value: Value, src: DType, dst: DType, lanes: int) -> Value:
        """`cast` between different dtypes other than float16 and bfloat16."""

    @abstractmethod
    def extend_half(self, value: Value, src: DType, lanes: int) -> Value:
        """float16 or bfloat16 to float32."""

    @abstractmethod
    def truncate_to_half(self, value: Value, src: DType, dst: DType, lanes: int) -> Value:
        """float32 or float64 to float16 or bfloat16, rounded once."""

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
        """Combine the lanes with ADD, MUL or MAX into a scalar, in the order of a balanced tree."""

    @abstractmethod
    def interleave(self, a: Value, b: Value, dtype: DType, lanes: int) -> tuple[Value, Value]:
        """a0 b0 a1 b1 ... of two SIMD values of at least 4 lanes: its first half, and its second."""

    # --- blocks: consecutive elements as memory holds them, which are permuted before they become lanes

    @abstractmethod
    def block_size(self, dtype: DType, lanes: int) -> int:
        """How many elements one block has, in a kernel of this many lanes."""

    @abstractmethod
    def load_block(self, address: Address, dtype: DType, lanes: int) -> Block:
        """A block of consecutive elements."""

    @abstractmethod
    def permute(self, blocks: Sequence[Block], positions: Sequence[int], dtype: DType) -> Value:
        """The SIMD value whose lane i is element `positions[i]` of the concatenated blocks."""

    # --- memory

    @abstractmethod
    def load(self, address: Address, dtype: DType, lanes: int) -> Value:
        """`lanes` consecutive elements."""

    @abstractmethod
    def load_masked(self, address: Address, dtype: DType, lanes: int, mask: Value, other: Value) -> Value:
        """`lanes` (> 1) consecutive elements where the bool `mask` holds, `other` elsewhere. Elements whose
        mask is false may lie outside of memory."""

    @abstractmethod
    def store(self, address: Address, value: Value, dtype: DType, lanes: int) -> None:
        """Write `lanes` consecutive elements."""

    def prefetch(self, address: Address) -> None:
        """Have the cache line at an address fetched, which may lie outside memory. Only where `has_prefetch`
        says so."""
        raise self._missing("prefetch", "the device does not fetch ahead")

    # --- control

    @abstractmethod
    def loop(self, size: Value) -> Value:
        """Open a loop of `size` rounds (an index scalar, possibly 0); its counter, an index scalar."""

    @abstractmethod
    def end_loop(self) -> None:
        """Close the innermost open loop."""

    def safepoint(self) -> None:
        """Return from the kernel if it was asked to stop. At the start of a round of the innermost open
        loop."""
        raise self._missing("safepoint", "kernels of this device cannot be stopped")

    def _missing(self, method: str, reason: str) -> InternalError:
        return InternalError(f"{type(self).__name__}.{method}: {reason}")

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

    # --- workgroups: only on GPUs

    def special(self, kind: str, axis: int, size: Value) -> Value:
        """An index scalar: the workgroup's place in the grid (`kind` "workgroup") or the invocation's place
        in its workgroup ("invocation") along `axis`, 0 to 2; `size`: how many there are, an index scalar."""
        raise self._missing("special", _NO_WORKGROUPS)

    def wmma(
        self, core: TensorCore, a: Sequence[Value], b: Sequence[Value], c: Sequence[Value]
    ) -> Sequence[Value]:
        """The elements of a @ b + c that this invocation holds, from the elements of a, b and c that it
        holds. They are in the order of the core's fragments, the first axis of elements fastest."""
        raise self._missing("wmma", "the Target names no tensor core")

    def wmma_in_memory(self, core: TensorCore, a: Operand, b: Operand, c: Sequence[Value]) -> Sequence[Value]:
        """`wmma` of operands in workgroup memory."""
        raise self._missing("wmma_in_memory", "the Target names no tensor core")

    def shuffle_xor(self, value: Value, dtype: DType, mask: int, lanes: int) -> Value:
        """The value of the invocation whose number in the subgroup differs by the bits `mask`. All
        invocations must execute it, so it is written right here, never into a branch."""
        raise self._missing("shuffle_xor", "subgroups of this device do not exchange values")

    def barrier(self, pending: int | None = None) -> None:
        """Wait for all invocations of the workgroup. Then all see what any wrote to workgroup memory.
        `pending`: and for all groups of copies, but the last so many."""
        raise self._missing("barrier", _NO_WORKGROUPS)

    def copies(self, target: Address, source: Address, dtype: DType, size: int) -> bool:
        """Whether `copy` copies so many elements from a buffer to memory of the workgroup."""
        return False

    def copy(self, target: Address, source: Address, dtype: DType, size: int) -> None:
        """Begin to copy; a later `barrier` waits for it."""
        raise self._missing("copy", _NO_WORKGROUPS)

    def commit(self) -> None:  # noqa: B027  (where nothing is copied so, nothing has to be done)
        """Make a group of the copies so far."""

    def shared(self, name: str, dtype: DType, size: int, swizzled: bool = False) -> Pointer:
        """Workgroup memory: `size` elements, undefined until written. `swizzled`: see uop/args.py."""
        raise self._missing("shared", _NO_WORKGROUPS)
