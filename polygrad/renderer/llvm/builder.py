"""`LLVMBuilder`: writes one kernel as LLVM IR text, for llvm/compile.py to compile.

A value is its operand text (`%v7`, `5`, `splat (float 0x3FF0000000000000)`), so writing an instruction is
one string appended to a list; nothing is parsed or built before LLVM reads the text. Registers are SSA
values with phis at loop heads, made as they are read (Braun et al., "Simple and Efficient Construction of
Static Single Assignment Form", 2013), and loops are written bottom-tested, so that the text needs no
clean-up pass. Every function is complete in itself: several texts, one after the other, are a module. There
are no fast-math flags; only MULACC is fused. Registers hold float16 and bfloat16 as their bits (i16), bool as
i1.

Must not know: llvmlite, the host, axes and tiles.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes, float_to_bits, rounded
from polygrad.errors import InternalError
from polygrad.helpers import is_pow2
from polygrad.renderer import convert
from polygrad.renderer.builder import HALF_DTYPES, Address, Builder, Matrix
from polygrad.renderer.llvm.x86_products import TILE, X86_DOTS, X86_MATMULS
from polygrad.shared_words import STOP_SYMBOL
from polygrad.uop.args import MATRIX_SIDE, Dot
from polygrad.uop.ops import Ops

_TYPE: dict[DType, str] = {
    dtypes.bool: "i1",
    dtypes.int8: "i8", dtypes.uint8: "i8",
    dtypes.int16: "i16", dtypes.uint16: "i16",
    dtypes.int32: "i32", dtypes.uint32: "i32",
    dtypes.int64: "i64", dtypes.uint64: "i64", dtypes.index: "i64",
    dtypes.float16: "i16", dtypes.bfloat16: "i16",
    dtypes.float32: "float", dtypes.float64: "double",
}  # fmt: skip

# Ops that are one instruction, by kind of operand.
_FLOAT_OPS = {
    Ops.ADD: "fadd", Ops.SUB: "fsub", Ops.MUL: "fmul", Ops.FDIV: "fdiv",
    Ops.CMPLT: "fcmp olt", Ops.CMPNE: "fcmp une", Ops.CMPEQ: "fcmp oeq",
}  # fmt: skip
_INT_OPS = {
    Ops.ADD: "add", Ops.SUB: "sub", Ops.MUL: "mul", Ops.SHL: "shl", Ops.SHR: "ashr",
    Ops.AND: "and", Ops.OR: "or", Ops.XOR: "xor",
    Ops.CMPLT: "icmp slt", Ops.CMPNE: "icmp ne", Ops.CMPEQ: "icmp eq",
}  # fmt: skip
_UINT_OPS = {**_INT_OPS, Ops.SHR: "lshr", Ops.CMPLT: "icmp ult", Ops.IDIV: "udiv", Ops.MOD: "urem"}
_INDEX_OPS = {**_INT_OPS, Ops.ADD: "add nsw", Ops.SUB: "sub nsw", Ops.MUL: "mul nsw"}
_BOOL_OPS = {**_UINT_OPS, Ops.ADD: "or", Ops.MUL: "and", Ops.MAX: "or"}
_OPS = {"float": _FLOAT_OPS, "int": _INT_OPS, "uint": _UINT_OPS, "index": _INDEX_OPS, "bool": _BOOL_OPS}


def vector(scalar: str, lanes: int) -> str:
    """The LLVM type of `lanes` values of the LLVM type `scalar`."""
    return scalar if lanes == 1 else f"<{lanes} x {scalar}>"


def _mangle(scalar: str, lanes: int) -> str:
    """A type as intrinsics spell it in their names."""
    scalar = {"float": "f32", "double": "f64", "half": "f16"}.get(scalar, scalar)
    return scalar if lanes == 1 else f"v{lanes}{scalar}"


def _literal(dtype: DType, value: Any) -> str:
    """A scalar constant as LLVM spells it."""
    if dtype.is_bool:
        return "true" if value else "false"
    if not dtype.is_float:
        return str(int(value))
    value = float(value)
    if dtype in HALF_DTYPES:
        return str(float_to_bits(dtype, value))
    if value != value:
        return "0x7FF8000000000000"
    return f"0x{struct.unpack('<Q', struct.pack('<d', rounded(dtype, value)))[0]:016X}"


class TypedPointer(NamedTuple):
    """A buffer: its address and the type of its elements in memory."""

    address: str
    type: str
    itemsize: int


class Register:
    """A variable of LLVM type `type`. The builder's levels hold its values."""

    __slots__ = ("type",)

    def __init__(self, type_: str) -> None:
        self.type = type_


class _Level:
    """An open loop, or the function's body: the present values of registers, and what the loop's head is
    written from when the loop is closed. `is_branch`: it has one round at most."""

    __slots__ = (
        "addresses",
        "before",
        "counter",
        "guarded",
        "is_branch",
        "label",
        "phis",
        "size",
        "slot",
        "values",
    )

    def __init__(
        self,
        before: str,
        label: str,
        counter: str,
        size: str,
        slot: int,
        guarded: bool,
        is_branch: bool = False,
    ) -> None:
        self.values: dict[Register, str] = {}
        self.phis: list[tuple[str, Register, str]] = []  # phi, its register, its value before the loop
        self.before, self.label, self.counter, self.size = before, label, counter, size
        self.slot, self.guarded, self.is_branch = slot, guarded, is_branch
        self.addresses: dict[tuple[str, str], str] = {}


class LLVMBuilder(Builder):
    """LLVM IR text. `native_half`: the machine converts between float and half (else: by integer arithmetic).

    A kernel is `void NAME(char **buffers, int64_t *variables)`.
    """

    has_safepoints = True
    has_prefetch = True

    def __init__(self, target: Target, native_half: bool = False) -> None:
        self.target, self.native_half = target, native_half
        self._lines: list[str] = []
        self._levels: list[_Level] = []
        self._block = "entry"
        self._stops = False  # has a safepoint
        self._count = 0
        self._ints: dict[str, int] = {}  # integer constants by operand
        self._conditions: dict[str, str] = {}  # bools that were converted to integers, by operand
        self._numbers: set[str] = set()  # float constants that are not NaN
        self._halves: dict[str, str] = {}  # scalar floats that are converted halves: those, by operand

    def begin(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[list[TypedPointer], list[str]]:
        bits = 8 * self.target.simd_bytes
        width = f' "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}"' if bits else ""
        self._lines = [f"define void @{name}(ptr %buffers, ptr %variables) nounwind{width} {{", "entry:"]
        self._levels = [_Level("", "entry", "0", "1", -1, False)]
        self._block = "entry"
        pointers, values = [], []
        for i, dtype in enumerate(params):
            slot = self._emit(f"getelementptr ptr, ptr %buffers, i64 {i}")
            address = self._emit(f"load ptr, ptr {slot}, align 8")
            pointers.append(TypedPointer(address, "i8" if dtype.is_bool else _TYPE[dtype], dtype.itemsize))
        for i in range(len(variables)):
            slot = self._emit(f"getelementptr i64, ptr %variables, i64 {i}")
            values.append(self._emit(f"load i64, ptr {slot}, align 8"))
        return pointers, values

    def finish(self) -> str:
        """The function's text."""
        if len(self._levels) != 1:
            raise InternalError(f"LLVMBuilder.finish: {len(self._levels) - 1} loops are still open")
        self._lines.append("  ret void\n}\n")
        if self._stops:
            self._lines.append(f"@{STOP_SYMBOL} = external global i64\n")
        return "\n".join(self._lines)

    def _emit(self, instruction: str) -> str:
        self._count = n = self._count + 1
        self._lines.append(f"  %v{n} = {instruction}")
        return f"%v{n}"

    # --- values

    def const(self, dtype: DType, value: Any, lanes: int) -> str:
        text = _literal(dtype, value)
        if lanes != 1:
            text = f"splat ({_TYPE[dtype]} {text})"
        if dtype.is_int:
            self._ints[text] = int(value)
        elif dtype.is_float and value == value:
            self._numbers.add(text)
        return text

    def const_lanes(self, dtype: DType, values: Sequence[Any]) -> str:
        scalar = _TYPE[dtype]
        return "<" + ", ".join([f"{scalar} {_literal(dtype, v)}" for v in values]) + ">"

    def alu(self, op: Ops, dtype: DType, args: Sequence[str], lanes: int) -> str:
        t = vector(_TYPE[dtype], lanes)
        name = _OPS[dtype.kind].get(op)
        if name is not None:
            return self._emit(f"{name} {t} {args[0]}, {args[1]}")
        if op is Ops.WHERE:
            return self._emit(f"select {vector('i1', lanes)} {args[0]}, {t} {args[1]}, {t} {args[2]}")
        if op is Ops.MAX:
            return self._max(dtype, args[0], args[1], lanes)
        if op is Ops.MULACC:
            if dtype.is_float and self.target.fma:
                suffix = _mangle(_TYPE[dtype], lanes)
                return self._emit(f"call {t} @llvm.fma.{suffix}({t} {args[0]}, {t} {args[1]}, {t} {args[2]})")
            return self.alu(Ops.ADD, dtype, (self.alu(Ops.MUL, dtype, args[:2], lanes), args[2]), lanes)
        if op is Ops.NEG:
            return self._emit(
                f"fneg {t} {args[0]}" if dtype.is_float else f"sub {t} zeroinitializer, {args[0]}"
            )
        if op is Ops.RECIPROCAL:
            return self._emit(f"fdiv {t} {self.const(dtype, 1.0, lanes)}, {args[0]}")
        if op is Ops.SQRT or op is Ops.TRUNC:
            function = f"@llvm.{'sqrt' if op is Ops.SQRT else 'trunc'}.{_mangle(_TYPE[dtype], lanes)}"
            return self._emit(f"call {t} {function}({t} {args[0]})") if dtype.is_float else args[0]
        if op is Ops.IDIV or op is Ops.MOD:
            return self._divide(op, dtype, args[0], args[1], lanes)
        raise self.unknown_op(op, dtype)

    def dot(self, kinds: Dot, a: str, b: str, c: str, lanes: int) -> str:
        dot = X86_DOTS[kinds]
        if lanes == 1:  # as the first of four
            x, y, z = (
                self._emit(f"insertelement <4 x {t}> zeroinitializer, {t} {value}, i64 0")
                for t, value in (("i32", a), ("i32", b), (dot.total, c))
            )
            return self._emit(f"extractelement <4 x {dot.total}> {self.dot(kinds, x, y, z, 4)}, i64 0")
        total, operand = dot.types(lanes)
        if dot.element != "i32":
            words = vector("i32", lanes)
            a, b = (self._emit(f"bitcast {words} {value} to {operand}") for value in (a, b))
        return self._emit(f"call {total} @{dot.name}.{32 * lanes}({total} {c}, {operand} {a}, {operand} {b})")

    def matmul(self, kinds: Dot, c: Matrix, a: Matrix, b: Matrix, size: tuple[int, int, int]) -> None:
        """LLVM allocates the tile registers, and configures them once for the function."""
        rows, columns, words = size
        side, width = MATRIX_SIDE, 4 * MATRIX_SIDE  # bytes of a row
        height = min(rows, side)
        places = [(i, j) for i in range(0, rows, side) for j in range(0, columns, side)]
        steps = (4 * c.step, 4 * a.step, 4 * b.step)
        c_step, a_step, b_step = (self.const(dtypes.index, step, 1) for step in steps)

        def load(count: int, address: str, step: str) -> str:
            name = "@llvm.x86.tileloadd64.internal"
            return self._emit(f"call {TILE} {name}(i16 {count}, i16 {width}, ptr {address}, i64 {step})")

        sums = {place: Register(TILE) for place in places}
        for total in sums.values():
            zero = f"call {TILE} @llvm.x86.tilezero.internal(i16 {height}, i16 {width})"
            self.set(total, self._emit(zero))
        left = {i: self._address(a.start.plus(i * a.step)) for i, _ in places}
        right = {j: self._address(b.start.plus(j)) for _, j in places}
        counter = self.loop(self.const(dtypes.index, words // side, 1))
        tiles: dict[int, str] = {}
        for i, j in places:
            if j == 0:
                at = self._emit(f"getelementptr [{width} x i8], ptr {left[i]}, i64 {counter}")
                row_tile = load(height, at, a_step)
            if i == 0:
                at = self._emit(f"getelementptr [{side * 4 * b.step} x i8], ptr {right[j]}, i64 {counter}")
                tiles[j] = load(side, at, b_step)
            shape = f"i16 {height}, i16 {width}, i16 {width}"
            operands = ", ".join(f"{TILE} {x}" for x in (self.get(sums[i, j]), row_tile, tiles[j]))
            self.set(sums[i, j], self._emit(f"call {TILE} @{X86_MATMULS[kinds].name}({shape}, {operands})"))
        self.end_loop()
        for (i, j), total in sums.items():
            to = f"ptr {self._address(c.start.plus(i * c.step + j))}, i64 {c_step}, {TILE} {self.get(total)}"
            name = "@llvm.x86.tilestored64.internal"
            self._lines.append(f"  call void {name}(i16 {height}, i16 {width}, {to})")

    def _max(self, dtype: DType, a: str, b: str, lanes: int) -> str:
        t, mask = vector(_TYPE[dtype], lanes), vector("i1", lanes)
        if not dtype.is_float:
            greater = self._emit(f"icmp {'u' if dtype.is_unsigned else 's'}gt {t} {a}, {b}")
            return self._emit(f"select {mask} {greater}, {t} {a}, {t} {b}")
        if a in self._numbers:
            a, b = b, a
        # b > a ? b : a, one instruction, gives a where a is NaN. Then b is taken where b is NaN.
        greater = self._emit(f"fcmp ogt {t} {b}, {a}")
        larger = self._emit(f"select {mask} {greater}, {t} {b}, {t} {a}")
        if b in self._numbers:
            return larger
        nan = self._emit(f"fcmp uno {t} {b}, {b}")
        return self._emit(f"select {mask} {nan}, {t} {b}, {t} {larger}")

    def _divide(self, op: Ops, dtype: DType, a: str, b: str, lanes: int) -> str:
        """Signed IDIV and MOD, rounded to minus infinity."""
        t, divisor, sign = vector(_TYPE[dtype], lanes), self._ints.get(b, 0), dtype.bits - 1
        if is_pow2(divisor):
            other = self.const(dtype, divisor.bit_length() - 1 if op is Ops.IDIV else divisor - 1, lanes)
            return self._emit(f"{'ashr' if op is Ops.IDIV else 'and'} {t} {a}, {other}")
        if divisor > 0:  # a // c = ~(~a // c) for negative a
            flip = self._emit(f"ashr {t} {a}, {self.const(dtype, sign, lanes)}")
            quotient = self._emit(f"udiv {t} {self._emit(f'xor {t} {a}, {flip}')}, {b}")
            quotient = self._emit(f"xor {t} {quotient}, {flip}")
            if op is Ops.IDIV:
                return quotient
            return self._emit(f"sub {t} {a}, {self._emit(f'mul {t} {quotient}, {b}')}")
        quotient = self._emit(f"sdiv {t} {a}, {b}")
        remainder = self._emit(f"sub {t} {a}, {self._emit(f'mul {t} {quotient}, {b}')}")
        nonzero = self._emit(f"icmp ne {t} {remainder}, zeroinitializer")
        signs = self._emit(f"xor {t} {remainder}, {b}")
        differ = self._emit(f"icmp slt {t} {signs}, zeroinitializer")
        mask = vector("i1", lanes)
        is_large = self._emit(f"and {mask} {nonzero}, {differ}")
        if op is Ops.IDIV:
            return self._emit(f"add {t} {quotient}, {self._emit(f'sext {mask} {is_large} to {t}')}")
        correction = self._emit(f"select {mask} {is_large}, {t} {b}, {t} zeroinitializer")
        return self._emit(f"add {t} {remainder}, {correction}")

    # --- conversions

    def cast_number(self, value: str, src: DType, dst: DType, lanes: int) -> str:
        s, d = vector(_TYPE[src], lanes), vector(_TYPE[dst], lanes)
        if dst.is_bool:
            return self._emit(f"{'fcmp une' if src.is_float else 'icmp ne'} {s} {value}, zeroinitializer")
        if src.is_bool and dst.is_float:
            return self._emit(f"select {s} {value}, {d} {self.const(dst, 1.0, lanes)}, {d} zeroinitializer")
        if src.is_float and not dst.is_float:
            # poison where it is out of range, which is then not selected
            truncated = self._emit(f"{'fptoui' if dst.is_unsigned else 'fptosi'} {s} {value} to {d}")
            return convert.float_to_int(self, value, truncated, src, dst, lanes)
        if s == d:
            return value
        wider = dst.bits > src.bits or src.is_bool
        if src.is_float:
            return self._emit(f"{'fpext' if wider else 'fptrunc'} {s} {value} to {d}")
        if dst.is_float:
            return self._emit(f"{'uitofp' if src.is_unsigned else 'sitofp'} {s} {value} to {d}")
        extend = "zext" if src.is_unsigned or src.is_bool else "sext"
        result = self._emit(f"{extend if wider else 'trunc'} {s} {value} to {d}")
        if src.is_bool:
            self._conditions[result] = value
        return result

    def extend_half(self, value: str, src: DType, lanes: int) -> str:
        if not (self.native_half and src == dtypes.float16):
            return str(convert.HALF_CONVERSIONS[src, dtypes.float32](self, value, lanes))
        half = self._emit(f"bitcast {vector('i16', lanes)} {value} to {vector('half', lanes)}")
        single = self._emit(f"fpext {vector('half', lanes)} {half} to {vector('float', lanes)}")
        if lanes == 1:
            self._halves[single] = value
        return single

    def truncate_to_half(self, value: str, src: DType, dst: DType, lanes: int) -> str:
        if not (self.native_half and src == dtypes.float32 and dst == dtypes.float16):
            return str(convert.HALF_CONVERSIONS[src, dst](self, value, lanes))
        half = self._emit(f"fptrunc {vector('float', lanes)} {value} to {vector('half', lanes)}")
        return self._emit(f"bitcast {vector('half', lanes)} {half} to {vector('i16', lanes)}")

    def bitcast(self, value: str, src: DType, dst: DType, lanes: int) -> str:
        if src.is_bool != dst.is_bool:
            return self.cast(value, src, dst, lanes)  # a bool's byte is 0 or 1
        s, d = vector(_TYPE[src], lanes), vector(_TYPE[dst], lanes)
        return value if s == d else self._emit(f"bitcast {s} {value} to {d}")

    # --- lanes

    def splat(self, value: str, dtype: DType, lanes: int) -> str:
        if lanes == 1:
            return value
        t, scalar = vector(_TYPE[dtype], lanes), _TYPE[dtype]
        if value[0] != "%":
            text = f"splat ({scalar} {value})"
            if value in self._ints:
                self._ints[text] = self._ints[value]
            if value in self._numbers:
                self._numbers.add(text)
            return text
        if value in self._halves:
            # x86 has no conversion of a scalar: one vector instruction does it for all lanes. LLVM would load
            # the scalar into a register that it does not clear, so that a loop would wait for the sum there.
            halves = self.splat(self._halves[value], dtypes.float16, lanes)
            return self.extend_half(halves, dtypes.float16, lanes)
        first = self._emit(f"insertelement {t} poison, {scalar} {value}, i64 0")
        return self._emit(f"shufflevector {t} {first}, {t} poison, <{lanes} x i32> zeroinitializer")

    def extract(self, value: str, dtype: DType, lane: int, lanes: int) -> str:
        if lanes == 1:
            return value
        return self._emit(f"extractelement {vector(_TYPE[dtype], lanes)} {value}, i64 {lane}")

    def pack(self, values: Sequence[str], dtype: DType) -> str:
        if len(values) == 1:
            return values[0]
        t, scalar, out = vector(_TYPE[dtype], len(values)), _TYPE[dtype], "poison"
        for i, value in enumerate(values):
            out = self._emit(f"insertelement {t} {out}, {scalar} {value}, i64 {i}")
        return out

    def interleave(self, a: str, b: str, dtype: DType, lanes: int) -> tuple[str, str]:
        t = vector("i1" if dtype.is_bool else _TYPE[dtype], lanes)

        def half(first: int) -> str:
            mask = ", ".join(f"i32 {i}, i32 {i + lanes}" for i in range(first, first + lanes // 2))
            return self._emit(f"shufflevector {t} {a}, {t} {b}, <{lanes} x i32> <{mask}>")

        return half(0), half(lanes // 2)

    def block_size(self, dtype: DType, lanes: int) -> int:
        return lanes

    def load_block(self, address: Address, dtype: DType, lanes: int) -> str:
        """See `Builder.load_block`. Bools stay bytes, as memory holds them."""
        t = vector(address.pointer.type, lanes)
        return self._emit(f"load {t}, ptr {self._address(address)}, align {dtype.itemsize}")

    def permute(self, blocks: Sequence[str], positions: Sequence[int], dtype: DType) -> str:
        """Shuffle the first two blocks, then insert the elements of each further block."""
        lanes = len(positions)
        t = vector("i8" if dtype.is_bool else _TYPE[dtype], lanes)

        def shuffled(a: str, b: str, chosen: Sequence[int]) -> str:
            mask = ", ".join("i32 poison" if i < 0 else f"i32 {i}" for i in chosen)
            return self._emit(f"shufflevector {t} {a}, {t} {b}, <{lanes} x i32> <{mask}>")

        second = blocks[1] if len(blocks) > 1 else "poison"
        value = shuffled(blocks[0], second, [p if p < 2 * lanes else -1 for p in positions])
        for number, block in enumerate(blocks[2:], 2):
            first = number * lanes
            chosen = [p - first + lanes if first <= p < first + lanes else i for i, p in enumerate(positions)]
            value = shuffled(value, block, chosen)
        return self._loaded(value, dtype, lanes)

    def reduce(self, op: Ops, value: str, dtype: DType, lanes: int) -> str:
        """Combine the low half with the high half until one lane is left. For bools: whether any or all
        are true."""
        if dtype.is_bool:
            bits = self._emit(f"bitcast {vector('i1', lanes)} {value} to i{lanes}")
            return self._emit(
                f"icmp {'eq' if op is Ops.MUL else 'ne'} i{lanes} {bits}, {-1 if op is Ops.MUL else 0}"
            )
        while lanes > 1:
            t, half = vector(_TYPE[dtype], lanes), lanes // 2
            if half == 1:
                parts = [self._emit(f"extractelement {t} {value}, i64 {i}") for i in (0, 1)]
            else:
                parts = []
                for start in (0, half):
                    mask = ", ".join([f"i32 {i}" for i in range(start, start + half)])
                    parts.append(
                        self._emit(f"shufflevector {t} {value}, {t} poison, <{half} x i32> <{mask}>")
                    )
            value, lanes = self.alu(op, dtype, parts, half), half
        return value

    # --- memory

    def _address(self, address: Address) -> str:
        pointer, base, offset = address
        start = pointer.address
        if base is not None and base in self._ints:
            offset += self._ints[base]
        elif base is not None:
            start = self._element(pointer, base)
        if offset == 0:
            return start
        return self._emit(f"getelementptr i8, ptr {start}, i64 {offset * pointer.itemsize}")

    def _element(self, pointer: TypedPointer, index: str) -> str:
        key = (pointer.address, index)
        for level in self._levels:
            if key in level.addresses:
                return level.addresses[key]
        out = self._emit(f"getelementptr {pointer.type}, ptr {pointer.address}, i64 {index}")
        self._levels[-1].addresses[key] = out
        return out

    def load(self, address: Address, dtype: DType, lanes: int) -> str:
        return self._loaded(self.load_block(address, dtype, lanes), dtype, lanes)

    def _loaded(self, elements: str, dtype: DType, lanes: int) -> str:
        """Elements as memory holds them, as a value: of bools, memory holds bytes."""
        if not dtype.is_bool:
            return elements
        return self._emit(f"icmp ne {vector('i8', lanes)} {elements}, zeroinitializer")

    def load_masked(self, address: Address, dtype: DType, lanes: int, mask: str, other: str) -> str:
        scalar = address.pointer.type
        t = vector(scalar, lanes)
        if dtype.is_bool:
            other = self._emit(f"zext <{lanes} x i1> {other} to {t}")
        place = f"ptr align {dtype.itemsize} {self._address(address)}"
        name = f"@llvm.masked.load.{_mangle(scalar, lanes)}.p0"
        elements = self._emit(f"call {t} {name}({place}, <{lanes} x i1> {mask}, {t} {other})")
        return self._loaded(elements, dtype, lanes)

    def store(self, address: Address, value: str, dtype: DType, lanes: int) -> None:
        t = vector(address.pointer.type, lanes)
        if dtype.is_bool:
            value = self._emit(f"zext {vector('i1', lanes)} {value} to {t}")
        self._lines.append(f"  store {t} {value}, ptr {self._address(address)}, align {dtype.itemsize}")

    def prefetch(self, address: Address) -> None:
        self._lines.append(
            f"  call void @llvm.prefetch.p0(ptr {self._address(address)}, i32 0, i32 3, i32 1)"
        )

    # --- control

    def loop(self, size: str) -> str:
        rounds = self._ints.get(size)
        self._count = n = self._count + 1
        if rounds == 1:
            self._levels.append(_Level(self._block, "", self.const(dtypes.index, 0, 1), "1", -1, False))
            return self._levels[-1].counter
        guarded, label = rounds is None or rounds <= 0, f"loop{n}"
        condition = self._conditions.get(size)
        if guarded:
            is_positive = condition or self._emit(f"icmp sgt i64 {size}, 0")
            self._lines.append(f"  br i1 {is_positive}, label %{label}, label %end{n}")
        else:
            self._lines.append(f"  br label %{label}")
        self._lines.append(f"{label}:")
        self._lines.append("")  # for the phis, which are known when the loop is closed
        slot = len(self._lines) - 1
        self._levels.append(_Level(self._block, label, f"%i{n}", size, slot, guarded, condition is not None))
        self._block = label
        return f"%i{n}"

    def safepoint(self) -> None:
        self._count = n = self._count + 1
        proceed = f"proceed{n}"
        flag = self._emit(f"load volatile i64, ptr @{STOP_SYMBOL}")
        proceeds = self._emit(f"icmp eq i64 {flag}, 0")
        self._lines += [
            f"  br i1 {proceeds}, label %{proceed}, label %stop{n}",
            f"stop{n}:",
            "  ret void",
            f"{proceed}:",
        ]
        self._block = proceed
        self._stops = True

    def end_loop(self) -> None:
        level = self._levels.pop()
        if not level.label:
            self._levels[-1].values.update(level.values)
            return
        n, latch = level.label[4:], self._block
        rounds = ["%" + level.before]  # where a round begins: before the loop, or at its end
        if level.is_branch:
            self._lines.append(f"  br label %end{n}")
        else:
            rounds.append("%" + latch)
            self._lines.append(f"  %n{n} = add nuw nsw i64 {level.counter}, 1")
            self._lines.append(f"  %c{n} = icmp slt i64 %n{n}, {level.size}")
            self._lines.append(f"  br i1 %c{n}, label %{level.label}, label %end{n}")
        self._lines.append(f"end{n}:")
        self._block = f"end{n}"

        def phi(name: str, type_: str, *values: str) -> str:
            edges = ", ".join(f"[ {v}, {block} ]" for v, block in zip(values, rounds, strict=False))
            return f"  {name} = phi {type_} {edges}"

        phis = [phi(level.counter, "i64", "0", f"%n{n}")]
        for name, register, first in level.phis:
            last = level.values[register]
            phis.append(phi(name, register.type, first, last))
            if last == name:
                del level.values[register]  # the loop only reads it
        self._lines[level.slot] = "\n".join(phis)
        outer = self._levels[-1].values
        for register, last in level.values.items():
            if level.guarded:
                first = self._value(register) or "poison"
                last = self._emit(f"phi {register.type} [ {first}, %{level.before} ], [ {last}, %{latch} ]")
            outer[register] = last

    # --- registers

    def register(self, dtype: DType, lanes: int) -> Register:
        return Register(vector(_TYPE[dtype], lanes))

    def _value(self, register: Register) -> str | None:
        """The register's present value, with a phi in every open loop that it enters; None if it was never
        set."""
        depth = len(self._levels) - 1
        while depth >= 0 and register not in self._levels[depth].values:
            depth -= 1
        if depth < 0:
            return None
        value = self._levels[depth].values[register]
        for level in self._levels[depth + 1 :]:
            if level.label:
                self._count += 1
                first, value = value, f"%v{self._count}"
                level.phis.append((value, register, first))
            level.values[register] = value
        return value

    def get(self, register: Register) -> str:
        value = self._value(register)
        if value is None:
            raise InternalError("LLVMBuilder.get: a register is read before it is set")
        return value

    def set(self, register: Register, value: str) -> None:
        self._levels[-1].values[register] = value
