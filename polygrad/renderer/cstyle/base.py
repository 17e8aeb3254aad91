"""`CStyleBuilder`: writes one kernel as source text of a language like C.

People read the text, too: `source_text.py` names values and folds those that are used once. This module knows
what operations are in all such languages: operators, floor division, a maximum that keeps NaN, saturating
conversions, float16 and bfloat16 as their bits. An operation of several lines is a function before the kernel
(`helper`), written once, by the same builder. A child says how registers and memory hold a dtype, how
constants and functions are spelled and what a kernel's signature is. It may replace any method.

SIMD values are vector types in C (`c.py`) and several scalars on GPUs (`cstyle/lanes.py`).

Must not know: axes and tiles, compilers, devices.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes, float_to_bits, rounded
from polygrad.errors import DeviceError, InternalError
from polygrad.helpers import is_pow2
from polygrad.renderer import convert
from polygrad.renderer.builder import HALF_DTYPES, Address, Builder
from polygrad.renderer.source_text import (
    ATOM,
    BITS,
    COMPARE,
    PRODUCT,
    SELECT,
    SHIFT,
    SUM,
    UNARY,
    Expression,
    SourceText,
)
from polygrad.uop.alu import evaluate
from polygrad.uop.ops import Ops

# operator and its precedence
_OPERATORS = {
    Ops.ADD: ("+", SUM), Ops.SUB: ("-", SUM), Ops.MUL: ("*", PRODUCT), Ops.FDIV: ("/", PRODUCT),
    Ops.IDIV: ("/", PRODUCT), Ops.MOD: ("%", PRODUCT), Ops.SHL: ("<<", SHIFT), Ops.SHR: (">>", SHIFT),
    Ops.AND: ("&", BITS), Ops.OR: ("|", BITS), Ops.XOR: ("^", BITS),
    Ops.CMPLT: ("<", COMPARE), Ops.CMPNE: ("!=", COMPARE), Ops.CMPEQ: ("==", COMPARE),
}  # fmt: skip
_BOOL_OPS = {Ops.ADD: Ops.OR, Ops.MUL: Ops.AND, Ops.MAX: Ops.OR}
_COMPARISONS = (Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ)


class Pointer(NamedTuple):
    """A buffer or workgroup memory: its name in the text, and its address space, if the language has them.
    `swizzled`: see uop/args.py."""

    name: str
    space: str = ""
    swizzled: bool = False


class FunctionText(NamedTuple):
    """A kernel's text, and the declarations before it. Kernels in one source share equal declarations."""

    preamble: tuple[str, ...]
    text: str

    def __str__(self) -> str:
        return module([self])


def module(functions: Sequence[FunctionText]) -> str:
    """The source of several functions."""
    parts = dict.fromkeys(part for f in functions for part in f.preamble)
    return "\n".join([*parts, "", *(f.text for f in functions)])


class ValueFacts(NamedTuple):
    """What is known of a value. `value`: of a constant. `multiple`: of an index, a number that divides it.
    `dtype`: of a mask, the integers that it consists of. `scalar`: of a splat constant, the scalar. `bits`:
    of a signed integer, the same bits as an unsigned one."""

    value: Any = None
    multiple: int = 1
    dtype: DType | None = None
    scalar: Expression | None = None
    bits: Expression | None = None


NO_INFO = ValueFacts()


class CStyleBuilder(Builder):
    """What all languages share. `target` says how wide an index is and whether MULACC is fused."""

    types: ClassVar[dict[DType, str]]  # in registers
    memory_types: ClassVar[dict[DType, str]] = {}  # in memory, where that differs
    header: ClassVar[tuple[str, ...]] = ()  # before every kernel
    functions: ClassVar[dict[tuple[Ops, DType], str]]  # of SQRT, TRUNC and MULACC, by dtype
    literal_suffixes: ClassVar[dict[DType, str]] = {}
    buffer_space: ClassVar[str] = ""  # the address space of buffers
    helper_prefix: ClassVar[str] = ""  # before a function that is not a kernel
    wraps = False  # signed arithmetic wraps around, instead of being undefined
    half_bits = False  # float16 and bfloat16 live in registers as uint16

    def __init__(self, target: Target) -> None:
        self.target = target
        self.index_dtype = dtypes.int64 if target.index_bits == 64 else dtypes.int32
        self._source = self._new_source()
        self._preamble: dict[str, str] = {text: text for text in self.header}
        self._name = ""
        self._signature = ""
        self._prologue: list[str] = []  # the first lines of the kernel
        self._is_single: list[bool] = []  # for each open loop: it has one round, and no text

    def _new_source(self) -> SourceText:
        return SourceText(self.declaration, NO_INFO)

    # --- how the language spells things

    @abstractmethod
    def signature(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[str, list[str], list[str]]:
        """The kernel's first lines, to the opening brace or beyond, and the names of its pointers and
        variables."""

    @abstractmethod
    def bits(self, value: Expression, src: DType, dst: DType, lanes: int) -> Expression:
        """A bitcast between two dtypes of one size whose registers have different types."""

    @abstractmethod
    def special_float(self, dtype: DType, value: float) -> str:
        """Infinity, minus infinity or NaN: a name or a call, with a minus sign before it or without."""

    def type(self, dtype: DType, lanes: int) -> str:
        """The type of a register."""
        name = self.types.get(self.index_dtype if dtype == dtypes.index else dtype)
        if name is None and dtype == dtypes.float64:
            raise DeviceError(
                f"device {self.target.name}: float64: the device has no such dtype: use float32 "
                "(Tensor.float()), or another device for this part (Tensor.to)"
            )
        if name is None or lanes != 1:
            raise InternalError(f"{type(self).__name__}: {dtype} x {lanes} has no type in this language")
        return name

    def memory_type(self, dtype: DType) -> str:
        """The type of an element in memory."""
        return self.memory_types.get(dtype) or self.type(dtype, 1)

    def declaration(self, type_: str, name: str, value: str | None, mutable: bool) -> str:
        return f"{type_} {name};" if value is None else f"{type_} {name} = {value};"

    def literal(self, dtype: DType, value: Any) -> tuple[str, int]:
        """A scalar constant's text and precedence."""
        if dtype.is_bool:
            return ("true" if value else "false"), ATOM
        if dtype in HALF_DTYPES and self.half_bits:
            return f"0x{float_to_bits(dtype, float(value)):04x}", ATOM
        suffix = self.literal_suffixes.get(dtype, "")
        if not dtype.is_float:
            number = int(value)
            wide = self.index_dtype if dtype == dtypes.index else dtype
            if not wide.is_unsigned and number == wide.min and wide.bits >= 32:
                return f"-{-(number + 1)}{suffix} - 1", SUM  # -2147483648 would be minus a larger type
            return f"{number}{suffix}", ATOM if number >= 0 else UNARY
        exact = rounded(dtype, float(value))
        if not math.isfinite(exact):
            text = self.special_float(dtype, exact)
            return text, UNARY if text[0] in "-(" else ATOM
        text = _shortest(dtype, exact) + suffix
        return text, UNARY if text.startswith("-") else ATOM

    # --- the function

    def begin(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[list[Pointer], list[Expression]]:
        self._name = name
        self._signature, pointers, numbers = self.signature(name, params, variables)
        t = self.type(dtypes.index, 1)
        return (
            [Pointer(p, self.buffer_space) for p in pointers],
            [self._source.atom(n, t) for n in numbers],
        )

    def finish(self) -> FunctionText:
        """The function's text, and the declarations that it needs."""
        lines = [self._signature, *self._prologue, *self._source.lines(), "}", ""]
        return FunctionText(tuple(self._preamble.values()), "\n".join(lines))

    def need(self, key: str, text: str) -> None:
        """Declare `text` before the function, once for each key."""
        self._preamble.setdefault(key, text)

    def helper(
        self,
        name: str,
        params: Sequence[tuple[str, str]],
        result: str,
        write: Callable[..., Expression],
        data: Sequence[ValueFacts] = (),
    ) -> str:
        """Declare a function before the kernel, once for each name; its name. `params`: (type, name) pairs;
        `write` gives the result for the parameters."""
        if name not in self._preamble:
            kernel, self._source = self._source, self._new_source()
            args = [
                self._source.atom(n, t, info)
                for (t, n), info in zip(params, data or [NO_INFO] * len(params), strict=True)
            ]
            value = write(*args)
            self._source.statement("return {};", [value])
            head = f"{self.helper_prefix}{result} {name}({', '.join(f'{t} {n}' for t, n in params)}) {{"
            text = "\n".join([head, *self._source.lines(), "}"])
            self._source = kernel
            self._preamble[name] = text  # after the helpers that it calls
        return name

    # --- expressions

    def binary(
        self,
        op: Ops,
        a: Expression,
        b: Expression,
        type_: str,
        info: ValueFacts = NO_INFO,
        hint: str = "x",
    ) -> Expression:
        """The operator of `op` between two operands."""
        symbol, precedence = _OPERATORS[op]
        # Parentheses where readers do not remember the precedence: shifts and bitwise operators. WGSL demands
        # them, too, and would read `a < b >> c` as a template.
        needs = (UNARY, UNARY) if precedence in (BITS, SHIFT) else (precedence, precedence + 1)
        if precedence == COMPARE:
            needs = (SUM, SUM)
        return self._source.value(
            f"{{}} {symbol} {{}}",
            [a, b],
            type_,
            needs=needs,
            precedence=precedence,
            hint=hint,
            data=info,
        )

    def unary(self, symbol: str, value: Expression, type_: str) -> Expression:
        """The operator `symbol` before a value."""
        return self._source.value(f"{symbol}{{}}", [value], type_, needs=ATOM, precedence=UNARY)

    def component(self, vector: Expression, name: str, type_: str) -> Expression:
        """A component of a vector."""
        return self._source.value(f"{{}}.{name}", [vector], type_, needs=ATOM)

    def call(
        self, name: str, args: Sequence[Expression], type_: str, info: ValueFacts = NO_INFO, hint: str = "x"
    ) -> Expression:
        return self._source.value(
            f"{name}({', '.join(['{}'] * len(args))})", args, type_, hint=hint, data=info
        )

    def convert(self, value: Expression, type_: str, info: ValueFacts = NO_INFO) -> Expression:
        """C's cast."""
        return self._source.value(f"({type_}){{}}", [value], type_, needs=UNARY, precedence=UNARY, data=info)

    def choose(
        self, condition: Expression, a: Expression, b: Expression, type_: str, hint: str = "x"
    ) -> Expression:
        """`condition ? a : b` of scalars."""
        return self._source.value(
            "{} ? {} : {}",
            [condition, a, b],
            type_,
            needs=SELECT + 1,
            precedence=SELECT,
            hint=hint,
        )

    def dtype_name(self, dtype: DType, lanes: int) -> str:
        """A dtype in the name of a helper."""
        return dtype.name if lanes == 1 else f"{dtype.name}x{lanes}"

    # --- values

    def const(self, dtype: DType, value: Any, lanes: int) -> Any:
        text, precedence = self.literal(dtype, value)
        info = ValueFacts(value, _multiple(dtype, value))
        return self.splat(self._source.atom(text, self.type(dtype, 1), info, precedence), dtype, lanes)

    def alu(self, op: Ops, dtype: DType, args: Sequence[Any], lanes: int) -> Any:
        if op is Ops.WHERE:
            return self.where(dtype, args[0], args[1], args[2], lanes)
        if dtype.is_bool:
            return self.logic(_BOOL_OPS.get(op, op), args[0], args[1], lanes)
        if op in _COMPARISONS:
            return self.compare(op, dtype, args[0], args[1], lanes)
        t = self.type(dtype, lanes)
        if op is Ops.MAX:
            return self._max(dtype, args[0], args[1], lanes)
        if op is Ops.MULACC:
            if dtype.is_float and self.target.fma:
                return self.function(op, dtype, args, lanes)
            return self.alu(Ops.ADD, dtype, (self.alu(Ops.MUL, dtype, args[:2], lanes), args[2]), lanes)
        if op is Ops.RECIPROCAL:
            return self.binary(Ops.FDIV, self.const(dtype, 1.0, lanes), args[0], t)
        if op is Ops.SQRT or op is Ops.TRUNC:
            return self.function(op, dtype, args, lanes) if dtype.is_float else args[0]
        if op is Ops.NEG and dtype.is_float:
            return self.unary("-", args[0], t)
        if op is Ops.NEG:
            return self.alu(Ops.SUB, dtype, (self.const(dtype, 0, lanes), args[0]), lanes)
        if op is Ops.IDIV or op is Ops.MOD:
            return self._divide(op, dtype, args[0], args[1], lanes)
        if op not in _OPERATORS:
            raise self.unknown_op(op, dtype)
        if dtype.is_float:
            return self.binary(op, args[0], args[1], t)
        if dtype == dtypes.index:
            return self.index(op, args[0], args[1], lanes)
        return self.integer(op, dtype, args[0], args[1], lanes)

    def index(self, op: Ops, a: Any, b: Any, lanes: int) -> Any:
        """`alu` on indices, which never overflow."""
        if a.data.value is not None and b.data.value is not None:
            return self.const(dtypes.index, evaluate(op, dtypes.index, [a.data.value, b.data.value]), lanes)
        if op in (Ops.ADD, Ops.SUB) and b.data.value == 0:
            return a
        t = self.type(dtypes.index, lanes)
        if op is Ops.SHL and a.data.value is not None:  # the literal may have a narrower type
            a = self.convert(a, t, a.data)
        return self.binary(op, a, b, t, _combine(op, a.data, b.data), "p")

    def integer(self, op: Ops, dtype: DType, a: Any, b: Any, lanes: int) -> Any:
        """ADD, SUB, MUL, shifts and bitwise operations on integers that wrap around."""
        t = self.type(dtype, lanes)
        if op in (Ops.AND, Ops.OR, Ops.XOR, Ops.SHR):
            return self.binary(op, a, b, t)
        if lanes == 1 and dtype.bits < 32:  # C computes in int
            wide = self.type(dtypes.int32, 1)
            # An int overflows with the product of two uint16, and a negative one has no left shift.
            if not self.wraps and (dtype == dtypes.uint16 or op is Ops.SHL):
                wide = self.type(dtypes.uint32, 1)
                a = self.convert(a, wide)
            return self.convert(self.binary(op, a, b, wide), t)
        if self.wraps or dtype.is_unsigned:
            return self.binary(op, a, b, t)
        u = self.type(dtypes.uint64 if dtype.bits == 64 else dtypes.uint32, 1)
        other = b if op is Ops.SHL else self._unsigned(b, dtype)
        bits = self.binary(op, self._unsigned(a, dtype), other, u)
        return self.convert(bits, t, ValueFacts(bits=bits))

    def _unsigned(self, value: Expression, dtype: DType) -> Expression:
        """A scalar integer of 32 or 64 bits as the unsigned one with the same bits."""
        unsigned = dtypes.uint64 if dtype.bits == 64 else dtypes.uint32
        if value.data.value is not None:
            return self.const(unsigned, unsigned.cast(value.data.value), 1)
        return value.data.bits or self.convert(value, self.type(unsigned, 1))

    def logic(self, op: Ops, a: Any, b: Any, lanes: int) -> Any:
        """AND, OR, XOR and comparisons of bools."""
        if op in (Ops.AND, Ops.OR, Ops.XOR, *_COMPARISONS):
            return self.binary(op, a, b, self.type(dtypes.bool, 1), hint="m")
        raise self.unknown_op(op, dtypes.bool)

    def compare(self, op: Ops, dtype: DType, a: Any, b: Any, lanes: int) -> Any:
        return self.binary(op, a, b, self.type(dtypes.bool, 1), hint="m")

    def where(self, dtype: DType, condition: Any, a: Any, b: Any, lanes: int) -> Any:
        return self.choose(condition, a, b, self.type(dtype, 1), "p" if dtype == dtypes.index else "x")

    def function(self, op: Ops, dtype: DType, args: Sequence[Any], lanes: int) -> Any:
        """SQRT, TRUNC or a fused MULACC of floats."""
        return self.call(self.functions[op, dtype], args, self.type(dtype, 1))

    def _max(self, dtype: DType, a: Any, b: Any, lanes: int) -> Any:
        """`b > a ? b : a` gives a where a is NaN; b is also taken where it is NaN itself."""
        t = self.type(dtype, lanes)

        def write(a: Any, b: Any) -> Any:
            larger = self.compare(Ops.CMPLT, dtype, a, b, lanes)
            if dtype.is_float:
                larger = self.logic(Ops.OR, larger, self.compare(Ops.CMPNE, dtype, b, b, lanes), lanes)
            return self.where(dtype, larger, b, a, lanes)

        name = f"max_{self.dtype_name(dtype, lanes)}"
        return self.call(self.helper(name, [(t, "a"), (t, "b")], t, write), [a, b], t)

    def _divide(self, op: Ops, dtype: DType, a: Any, b: Any, lanes: int) -> Any:
        """IDIV and MOD, rounded to minus infinity."""
        t, divisor = self.type(dtype, lanes), b.data.value or 0
        if dtype.is_unsigned:
            return self.narrowed(self.binary(op, a, b, t), dtype, lanes)
        if is_pow2(divisor):
            if op is Ops.IDIV:
                return self.binary(Ops.SHR, a, self.const(dtype, divisor.bit_length() - 1, lanes), t)
            return self.binary(Ops.AND, a, self.const(dtype, divisor - 1, lanes), t)

        def write(a: Any, b: Any) -> Any:
            # The quotient that C rounds to zero is one too large where the remainder is not 0 and differs in
            # sign from the divisor.
            remainder = self.narrowed(self.binary(Ops.MOD, a, b, t), dtype, lanes)
            zero = self.const(dtype, 0, lanes)
            signs = self.compare(Ops.CMPLT, dtype, self.binary(Ops.XOR, remainder, b, t), zero, lanes)
            inexact = self.compare(Ops.CMPNE, dtype, remainder, zero, lanes)
            is_large = self.logic(Ops.AND, inexact, signs, lanes)
            if op is Ops.MOD:
                out = self.binary(Ops.ADD, remainder, self.where(dtype, is_large, b, zero, lanes), t)
            else:
                one = self.where(dtype, is_large, self.const(dtype, 1, lanes), zero, lanes)
                out = self.binary(Ops.SUB, self.binary(Ops.IDIV, a, b, t), one, t)
            return self.narrowed(out, dtype, lanes)

        name = f"floor_{'divide' if op is Ops.IDIV else 'modulo'}_{self.dtype_name(dtype, lanes)}"
        return self.call(self.helper(name, [(t, "a"), (t, "b")], t, write), [a, b], t)

    def narrowed(self, value: Any, dtype: DType, lanes: int) -> Any:
        """A result of C's arithmetic, which is in int for small integers, as `dtype`."""
        wide = lanes != 1 or dtype == dtypes.index or dtype.bits >= 32
        return value if wide else self.convert(value, self.type(dtype, 1))

    # --- conversions

    def cast_number(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if dst.is_bool:
            return self.compare(Ops.CMPNE, src, value, self.const(src, 0, lanes), lanes)
        if src.is_float and not dst.is_float:
            t = self.type(dst, lanes)
            name = f"{self.dtype_name(src, lanes)}_to_{self.dtype_name(self._stored(dst), lanes)}"
            params = [(self.type(src, lanes), "x")]
            wide = self._stored(dst)

            def write(x: Any) -> Any:
                return convert.float_to_int(
                    self, x, self.convert_number(x, src, wide, lanes), src, wide, lanes
                )

            return self.call(self.helper(name, params, t, write), [value], t)
        return self.convert_number(value, src, dst, lanes)

    def convert_number(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        """A cast that is C's own: from bool, or between numbers, but not from float to an integer."""
        t = self.type(dst, lanes)
        if self.type(src, lanes) == t:
            return value
        return self.convert(value, t, ValueFacts(multiple=value.data.multiple))

    def extend_half(self, value: Any, src: DType, lanes: int) -> Any:
        return self.truncate_to_half(value, src, dtypes.float32, lanes)

    def truncate_to_half(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        write = convert.HALF_CONVERSIONS[src, dst]
        name = f"{self.dtype_name(src, lanes)}_to_{self.dtype_name(dst, lanes)}"
        t = self.type(dst, lanes)
        helper = self.helper(name, [(self.type(src, lanes), "x")], t, lambda x: write(self, x, lanes))
        return self.call(helper, [value], t)

    def bitcast(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if src.is_bool or dst.is_bool:
            return self.cast(value, src, dst, lanes)  # a bool's byte is 0 or 1
        if self.type(src, lanes) == self.type(dst, lanes):
            return value
        if self._stored(src).is_int and self._stored(dst).is_int:
            return self.convert(value, self.type(dst, lanes))
        return self.bits(value, src, dst, lanes)

    def _stored(self, dtype: DType) -> DType:
        """The dtype as which registers hold it."""
        if dtype == dtypes.index:
            return self.index_dtype
        return dtypes.uint16 if self.half_bits and dtype in HALF_DTYPES else dtype

    # --- lanes: here of scalars; a child has its own SIMD values

    def const_lanes(self, dtype: DType, values: Sequence[Any]) -> Any:
        return self.pack([self.const(dtype, v, 1) for v in values], dtype)

    def splat(self, value: Any, dtype: DType, lanes: int) -> Any:
        return value

    # --- memory

    def place(self, address: Address) -> Expression:
        """The position of an element."""
        index, offset = address.base, address.offset
        if index is None or index.data.value is not None:
            return self.const(dtypes.index, offset + (index.data.value if index else 0), 1)
        if not offset:
            return index
        sign, constant = Ops.ADD if offset > 0 else Ops.SUB, self.const(dtypes.index, abs(offset), 1)
        return self.index(sign, index, constant, 1)

    def address_of(self, address: Address, dtype: DType) -> Expression:
        """The address of an element, as an expression."""
        pointer, place = address.pointer, self.place(address)
        t = f"{pointer.space} {self.memory_type(dtype)} *".lstrip()
        if place.data.value == 0:
            return self._source.atom(pointer.name, t)
        return self._source.value(f"{pointer.name} + {{}}", [place], t, needs=SUM, precedence=SUM, hint="at")

    def load(self, address: Address, dtype: DType, lanes: int) -> Any:
        return self.load_scalar(address.pointer, self.place(address), dtype)

    def load_scalar(self, pointer: Pointer, place: Expression, dtype: DType) -> Expression:
        value = self._source.value(f"{pointer.name}[{{}}]", [place], self.memory_type(dtype), reads="memory")
        return self.from_memory(value, dtype)

    def from_memory(self, value: Expression, dtype: DType) -> Expression:
        """An element, as memory holds it, in a register."""
        if dtype.is_bool:
            return self._source.value(
                "{} != 0", [value], self.type(dtype, 1), needs=COMPARE + 1, precedence=COMPARE
            )
        return value

    def store(self, address: Address, value: Any, dtype: DType, lanes: int) -> None:
        self.store_scalar(address.pointer, self.place(address), value, dtype)

    def store_scalar(self, pointer: Pointer, place: Expression, value: Expression, dtype: DType) -> None:
        self._source.statement(f"{pointer.name}[{{}}] = {{}};", [place, self.to_memory(value, dtype)])

    def to_memory(self, value: Expression, dtype: DType) -> Expression:
        """A register's value as an element that memory holds."""
        return value

    # --- control

    def loop(self, size: Expression) -> Expression:
        t = self.type(dtypes.index, 1)
        self._is_single.append(size.data.value == 1)
        if self._is_single[-1]:
            return self.const(dtypes.index, 0, 1)
        name = self._source.name("i")
        self._source.open(
            f"for ({self.declaration(t, name, '0', True)} {name} < {{}}; {name}++) {{{{", [size], COMPARE + 1
        )
        return self._source.atom(name, t)

    def end_loop(self) -> None:
        if not self._is_single.pop():
            self._source.close()

    def begin_if(self, condition: Expression) -> None:
        self._source.open("if ({}) {{", [condition])

    def end_if(self) -> None:
        self._source.close()

    # --- registers

    def register(self, dtype: DType, lanes: int) -> Any:
        return self._source.variable(self.type(dtype, lanes), "acc")

    def get(self, register: Any) -> Any:
        return self._source.read(register)

    def set(self, register: Any, value: Any) -> None:
        self._source.assign(register, value)


def parameter_names(params: Sequence[DType], variables: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names of a kernel's pointers and of its variables. Those of variables have a prefix: a Variable may
    have a keyword's name, and one whose name is no identifier in C is numbered."""
    numbers = [f"var_{v}" if v.isidentifier() and v.isascii() else f"var{i}" for i, v in enumerate(variables)]
    return [f"data{i}" for i in range(len(params))], numbers


def _multiple(dtype: DType, value: Any) -> int:
    return abs(int(value)) if dtype.is_int else 1


def _combine(op: Ops, a: ValueFacts, b: ValueFacts) -> ValueFacts:
    """What is known of an index made of two others."""
    if op in (Ops.ADD, Ops.SUB):
        return ValueFacts(multiple=math.gcd(a.multiple, b.multiple))
    if op is Ops.MUL:
        return ValueFacts(multiple=a.multiple * b.multiple)
    if op is Ops.SHL and b.value is not None:
        return ValueFacts(multiple=a.multiple << b.value)
    return NO_INFO


def _shortest(dtype: DType, value: float) -> str:
    """The shortest decimal text that reads as `value`."""
    if value == int(value) and abs(value) < 1e15:
        return f"{value:.1f}"
    text = repr(value)
    if dtype != dtypes.float64:
        for digits in range(1, 10):
            text = f"{value:.{digits}g}"
            if rounded(dtype, float(text)) == value:
                break
    return text if "." in text or "e" in text else text + ".0"
