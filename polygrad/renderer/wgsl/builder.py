"""`WGSLBuilder`: one kernel as a module in WGSL, WebGPU's shading language.

Unlike C, WGSL has integers, floats and memory of 32-bit words only, no literals for NaN and infinity, and
compilers that may assume that neither occurs. So narrow integers are i32 and u32 kept in range, float16 and
bfloat16 are their bits, 64-bit integers are `vec2<u32>`. Memory packs narrow elements in words, and stores
them by atomics, as other invocations may store their neighbours. With the extension f16, in Targets that do
not pack float16, float16 is a type of registers and memory. Infinity and NaN come from the uniform buffer
(`runtime/webgpu/device.py` describes its layout). float64 is refused.

Must not know: adapters and devices.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, ClassVar

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes, float_to_bits, rounded
from polygrad.errors import InternalError
from polygrad.renderer.builder import Address
from polygrad.renderer.cstyle.base import NO_INFO, FunctionText, Pointer, ValueFacts
from polygrad.renderer.cstyle.lanes import LanesBuilder
from polygrad.renderer.source_text import ATOM, SUM, UNARY, Expression
from polygrad.renderer.wgsl.accessors import Use, packed_accessors, vector_accessors
from polygrad.renderer.wgsl.library import source
from polygrad.uop.ops import Ops

_SHORT_FLOATS = (dtypes.float16, dtypes.bfloat16)
_ARITHMETIC = (Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV)
_NARROW = (dtypes.int8, dtypes.int16, dtypes.uint8, dtypes.uint16)
_WIDE = (dtypes.int64, dtypes.uint64)
_WORDS = (dtypes.float32, dtypes.int32, dtypes.uint32)
_COMPARISONS = (Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ)
_WIDE_CALLS = {
    Ops.ADD: "add_64", Ops.SUB: "sub_64", Ops.MUL: "mul_64", Ops.NEG: "neg_64",
    Ops.IDIV: ("floor_divide_i64", "divide_u64"), Ops.MOD: ("floor_modulo_i64", "modulo_u64"),
    Ops.MAX: ("max_i64", "max_u64"), Ops.CMPLT: ("lt_i64", "lt_u64"), Ops.CMPEQ: "eq_64",
}  # fmt: skip


class WGSLBuilder(LanesBuilder):
    """See `LanesBuilder`. A buffer with loads and stores of vectors only is an array of vectors."""

    vector_sizes: ClassVar[tuple[int, ...]] = (4,)

    types: ClassVar[dict[DType, str]] = {
        dtypes.bool: "bool",
        dtypes.int8: "i32",
        dtypes.int16: "i32",
        dtypes.int32: "i32",
        dtypes.uint8: "u32",
        dtypes.uint16: "u32",
        dtypes.uint32: "u32",
        dtypes.int64: "vec2<u32>",
        dtypes.uint64: "vec2<u32>",
        dtypes.float16: "u32",
        dtypes.bfloat16: "u32",
        dtypes.float32: "f32",
    }
    wraps = True

    def __init__(self, target: Target, aligned: bool = True) -> None:
        super().__init__(target, aligned)
        self._params: list[DType] = []
        self._variables: list[str] = []
        self._uses: dict[str, set[Use]] = {}  # of each buffer
        self._functions: dict[str, None] = {}  # of the library
        self._shared: list[str] = []
        self._sizes = [1, 1, 1]  # of a workgroup
        self._specials: set[str] = set()
        self._enabled: set[str] = set()  # extensions of the language
        self._has_f16 = dtypes.float16 not in target.packed
        # the floats that registers hold as bits
        self._float_bits = (dtypes.bfloat16,) if self._has_f16 else _SHORT_FLOATS

    # --- how the language spells things

    def type(self, dtype: DType, lanes: int) -> str:
        if dtype == dtypes.float16 and self._has_f16:
            self._enabled.add("f16")
            return "f16"
        return super().type(dtype, lanes)

    def declaration(self, type_: str, name: str, value: str | None, mutable: bool) -> str:
        if value is None:
            return f"var {name}: {type_};"
        return f"{'var' if mutable else 'let'} {name}: {type_} = {value};"

    def literal(self, dtype: DType, value: Any) -> tuple[str, int]:
        if dtype.is_bool:
            return ("true" if value else "false"), ATOM
        if dtype in self._float_bits:
            return f"0x{float_to_bits(dtype, float(value)):04x}u", ATOM
        if dtype == dtypes.float16:
            return f"{self.type(dtype, 1)}({self._float_literal(rounded(dtype, float(value)))[0]})", ATOM
        if dtype == dtypes.float32:
            return self._float_literal(rounded(dtype, float(value)))
        number = int(value)
        if dtype in _WIDE:
            return f"vec2<u32>(0x{number & 0xFFFFFFFF:x}u, 0x{number >> 32 & 0xFFFFFFFF:x}u)", ATOM
        if self.type(dtype, 1) == "u32":
            return f"{number}u", ATOM
        if number == dtypes.int32.min:
            return "i32(-2147483648)", ATOM
        return f"{number}", ATOM if number >= 0 else UNARY

    def _float_literal(self, number: float) -> tuple[str, int]:
        if not math.isfinite(number):
            return self.special_float(dtypes.float32, number), ATOM
        if abs(number) < 2.0**-126 and str(number) != "0.0":  # a zero with a sign, or a denormal number
            return f"bitcast<f32>(0x{struct.pack('>f', number).hex()}u)", ATOM
        text, precedence = super().literal(dtypes.float32, number)
        return f"{text}f", precedence

    def special_float(self, dtype: DType, value: float) -> str:
        if math.isnan(value):
            return "arguments.nan"
        return "arguments.infinity" if value > 0 else "(-arguments.infinity)"

    def bits(self, value: Expression, src: DType, dst: DType, lanes: int) -> Expression:
        if src == dst:
            return value
        if src == dtypes.float16 and self._has_f16:
            value, src = self.library("f32_to_f16", [self.convert(value, "f32")], "u32"), dtypes.uint16
        if dst == dtypes.float16 and self._has_f16:
            half = self.bits(value, src, dtypes.uint16, lanes)
            return self.convert(self.library("f16_to_f32", [half], "f32"), self.type(dst, 1))
        if dst in _NARROW or dst in self._float_bits:
            return self.narrowed(self._as_register(value, src, dst), dst, lanes)
        return self._as_register(value, src, dst)

    def _as_register(self, value: Expression, src: DType, dst: DType) -> Expression:
        t = self.type(dst, 1)
        return value if self.type(src, 1) == t else self.call(f"bitcast<{t}>", [value], t)

    def bitcast(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if lanes != 1:
            return super().bitcast(value, src, dst, lanes)
        if src.is_bool != dst.is_bool:
            return self.cast(value, src, dst, 1)
        return self.bits(value, src, dst, 1)

    # --- the function

    def signature(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[str, list[str], list[str]]:
        self._params, self._variables = list(params), [f"v_{v}" for v in variables]
        self._uses = {f"data{i}": set() for i in range(len(params))}
        return "", list(self._uses), [f"arguments.{v}" for v in self._variables]

    def finish(self) -> FunctionText:
        """The kernel's module."""
        body = self._source.lines()
        parts = [f"enable {extension};\n" for extension in sorted(self._enabled)]
        parts += [self._arguments(), *map(self._binding, range(len(self._params))), *self._shared]
        parts += [f"\n{text}" for text in source(self._functions)]
        parts += [f"\n{text}" for i in range(len(self._params)) for text in self._accessors(i)]
        builtins = [
            f"@builtin({word}_id) {word.partition('_')[0]}: vec3<u32>"
            for word in ("workgroup", "local_invocation")
            if word in self._specials
        ]
        sizes = ", ".join(map(str, self._sizes))
        parts.append(f"\n@compute @workgroup_size({sizes})\nfn {self._name}({', '.join(builtins)}) {{")
        return FunctionText((), "\n".join([*parts, *body, "}", ""]))

    def _arguments(self) -> str:
        fields = [
            "infinity: f32",
            "nan: f32",
            "zero: f32",
            "zero_bits: u32",
            *(f"{v}: i32" for v in self._variables),
        ]
        lines = ["struct Arguments {", *(f"  {field}," for field in fields), "}"]
        binding = f"@group(0) @binding({len(self._params)}) var<uniform> arguments: Arguments;"
        return "\n".join([*lines, binding])

    def _binding(self, i: int) -> str:
        dtype, name = self._params[i], f"data{i}"
        element = self.type(dtype, 1)
        if self._packs(dtype):
            element = "atomic<u32>" if Use.STORE in self._uses[name] else "u32"
        elif self._is_vector(name):
            element = f"vec4<{element}>"
        return f"@group(0) @binding({i}) var<storage, read_write> {name}: array<{element}>;"

    def _is_vector(self, name: str) -> bool:
        uses = self._uses[name]
        return bool(uses) and uses <= {Use.LOAD_VECTOR, Use.STORE_VECTOR}

    def _accessors(self, i: int) -> list[str]:
        """The functions that load and store the elements of a buffer."""
        dtype, name = self._params[i], f"data{i}"
        if self._packs(dtype):
            return packed_accessors(name, dtype, self.type(dtype, 1), self._uses[name])
        return vector_accessors(name, self.type(dtype, 1), self._uses[name], self._is_vector(name))

    # --- expressions

    def library(self, name: str, args: Sequence[Expression], type_: str) -> Expression:
        """A call of a function of `wgsl/library.py`."""
        self._functions[name] = None
        return self.call(name, args, type_)

    def convert(self, value: Expression, type_: str, info: ValueFacts = NO_INFO) -> Expression:
        return self._source.value(f"{type_}({{}})", [value], type_, data=info)

    def choose(
        self, condition: Expression, a: Expression, b: Expression, type_: str, hint: str = "x"
    ) -> Expression:
        return self._source.value("select({}, {}, {})", [b, a, condition], type_, hint=hint)

    # --- values

    def alu(self, op: Ops, dtype: DType, args: Sequence[Any], lanes: int) -> Any:
        if lanes != 1:
            return super().alu(op, dtype, args, lanes)
        if dtype in _WIDE and op is not Ops.WHERE:
            return self._wide(op, dtype, args)
        if op is Ops.NEG and dtype in (dtypes.int32, dtypes.index):
            return self.unary("-", args[0], "i32")
        if dtype == dtypes.float32:
            if op in _ARITHMETIC:
                args = self._rounded(op, args)
            if op is Ops.CMPNE:  # a compiler may make `a < b || a > b` of `a != b`
                same = super().alu(Ops.CMPEQ, dtype, args, lanes)
                return self.unary("!", same, "bool")
            if op is Ops.MAX:
                return self.library("max_f32", args, "f32")
            if op is Ops.TRUNC:
                return self.library("trunc_f32", args, "f32")
            if op is Ops.SQRT:
                return self.call("sqrt", args, "f32")
        if op is Ops.MAX and dtype.is_int:
            return self.call("max", args, self.type(dtype, 1))
        if op in (Ops.IDIV, Ops.MOD) and self.type(dtype, 1) == "i32":
            name = "floor_divide_i32" if op is Ops.IDIV else "floor_modulo_i32"
            return self.narrowed(self.library(name, args, "i32"), dtype, lanes)
        if op in (Ops.SHL, Ops.SHR):
            return self._shift(op, dtype, args)
        return super().alu(op, dtype, args, lanes)

    def _rounded(self, op: Ops, args: Sequence[Any]) -> list[Any]:
        """The operands of float arithmetic, so that a compiler does not simplify it: as real numbers, x * 0
        and x - x are 0, and x + 1.5e7 - 1.5e7 is x."""
        out = [self._hidden_zero(a) if a.data.value == 0 else a for a in args]
        if op in (Ops.ADD, Ops.SUB):
            out = [self.library("as_rounded", [a], "f32") if a.precedence == SUM else a for a in out]
        if op in (Ops.SUB, Ops.FDIV) and out[0] is out[1]:
            out[1] = self.library("as_rounded", [out[1]], "f32")
        return out

    def _hidden_zero(self, zero: Expression) -> Expression:
        sign = "-" if math.copysign(1.0, zero.data.value) < 0 else ""
        return self._source.atom(f"{sign}arguments.zero", "f32", zero.data, UNARY if sign else ATOM)

    def integer(self, op: Ops, dtype: DType, a: Any, b: Any, lanes: int) -> Any:
        out = self.binary(op, a, b, self.type(dtype, 1))
        return out if op in (Ops.AND, Ops.OR, Ops.XOR) else self.narrowed(out, dtype, lanes)

    def _shift(self, op: Ops, dtype: DType, args: Sequence[Any]) -> Any:
        value, places = args
        if self.type(dtype, 1) == "i32":
            places = self._places(places, "i32")
        t = self.type(dtype, 1)
        info = NO_INFO
        if dtype == dtypes.index and op is Ops.SHL and args[1].data.value is not None:
            info = ValueFacts(multiple=value.data.multiple << args[1].data.value)
        shifted = self.binary(op, value, places, t, info)
        return shifted if op is Ops.SHR else self.narrowed(shifted, dtype, 1)

    def _places(self, places: Expression, type_: str) -> Expression:
        """The amount of a shift, as u32."""
        if places.data.value is not None:
            return self._source.atom(f"{int(places.data.value)}u", "u32")
        if type_ == "vec2<u32>":
            return self.component(places, "x", "u32")
        return self.convert(places, "u32")

    def _wide(self, op: Ops, dtype: DType, args: Sequence[Any]) -> Any:
        """Arithmetic of 64-bit integers."""
        t = "vec2<u32>"
        if op in (Ops.AND, Ops.OR, Ops.XOR):
            return self.binary(op, args[0], args[1], t)
        if op in (Ops.SHL, Ops.SHR):
            name = "shl_64" if op is Ops.SHL else "shr_u64" if dtype.is_unsigned else "shr_i64"
            return self.library(name, [args[0], self._places(args[1], t)], t)
        if op is Ops.CMPNE:
            same = self.library("eq_64", args, "bool")
            return self.unary("!", same, "bool")
        if op is Ops.MULACC:
            return self._wide(Ops.ADD, dtype, [self._wide(Ops.MUL, dtype, args[:2]), args[2]])
        names = _WIDE_CALLS.get(op)
        if names is None:
            raise self.unknown_op(op, dtype)
        name = names if isinstance(names, str) else names[dtype.is_unsigned]
        return self.library(name, args, "bool" if op in _COMPARISONS else t)

    def logic(self, op: Ops, a: Any, b: Any, lanes: int) -> Any:
        if op is Ops.XOR:
            op = Ops.CMPNE
        if op is Ops.CMPLT:
            return self.binary(Ops.AND, self.unary("!", a, "bool"), b, "bool")
        return self.binary(op, a, b, "bool")

    def narrowed(self, value: Any, dtype: DType, lanes: int) -> Any:
        """The low bits of a register, whose value may be out of range, as `dtype`."""
        if dtype not in _NARROW and dtype not in self._float_bits:
            return value
        t = self.type(dtype, 1)
        return self._source.value(f"extractBits({{}}, 0u, {dtype.bits}u)", [value], t)

    # --- conversions

    def cast(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if lanes != 1:
            return super().cast(value, src, dst, lanes)
        t = self.type(dst, 1)
        if src == dst:
            return value
        if src.is_bool:
            one, zero = self.const(dst, 1, 1), self.const(dst, 0, 1)
            return self.choose(value, one, zero, t)
        if dst.is_bool and src.is_float:  # a test of bits, as adapters may flush denormal numbers to zero
            return self._is_not_zero(value, src)
        if src == dtypes.float16 and self._has_f16:
            return self.cast(self.convert(value, "f32"), dtypes.float32, dst, lanes)
        if src in self._float_bits:
            name = "f16_to_f32" if src == dtypes.float16 else "bf16_to_f32"
            return self.cast(self.library(name, [value], "f32"), dtypes.float32, dst, lanes)
        if dst.is_bool:
            return self.alu(Ops.CMPNE, src, [value, self.const(src, 0, 1)], lanes)
        if dst in _SHORT_FLOATS:
            if src != dtypes.float32:
                value = self._odd_float(value, src)
            if t == "f16":
                return self.convert(value, t)
            return self.library("f32_to_f16" if dst == dtypes.float16 else "f32_to_bf16", [value], t)
        if src == dtypes.float32:
            return self._float_to_int(value, dst)
        if dst == dtypes.float32:
            return self._int_to_float(value, src)
        return self._int_to_int(value, src, dst)

    def _is_not_zero(self, value: Expression, src: DType) -> Expression:
        if src == dtypes.float16 and self._has_f16:
            value, src = self.convert(value, "f32"), dtypes.float32
        bits = value if src in self._float_bits else self.call("bitcast<u32>", [value], "u32")
        size = self.binary(Ops.AND, bits, self.const(dtypes.uint32, (1 << (src.bits - 1)) - 1, 1), "u32")
        return self.binary(Ops.CMPNE, size, self.const(dtypes.uint32, 0, 1), "bool")

    def _odd_float(self, value: Expression, src: DType) -> Expression:
        """An integer as a float32 rounded to odd. Rounded to 16 bits, it is rounded once."""
        if src in _NARROW:
            return self._int_to_float(value, src)
        wide = dtypes.uint64 if src.is_unsigned else dtypes.int64
        name = "u64_to_odd_f32" if src.is_unsigned else "i64_to_odd_f32"
        return self.library(name, [self._int_to_int(value, src, wide)], "f32")

    def _float_to_int(self, value: Expression, dst: DType) -> Expression:
        if dst in _WIDE:
            return self.library("f32_to_u64" if dst.is_unsigned else "f32_to_i64", [value], "vec2<u32>")
        t = self.type(dst, 1)
        whole = self.library("f32_to_i32" if t == "i32" else "f32_to_u32", [value], t)
        if dst not in _NARROW:
            return whole
        if dst.is_unsigned:
            return self.call("min", [whole, self.const(dst, dst.max, 1)], t)
        return self.call(
            "clamp", [whole, self.const(dst, dst.min, 1), self.const(dst, dst.max, 1)], t, NO_INFO
        )

    def _int_to_float(self, value: Expression, src: DType) -> Expression:
        if src in _WIDE:
            return self.library("u64_to_f32" if src.is_unsigned else "i64_to_f32", [value], "f32")
        if src == dtypes.uint32:
            return self.library("u32_to_f32", [value], "f32")
        return self.convert(value, "f32")

    def _int_to_int(self, value: Expression, src: DType, dst: DType) -> Expression:
        s, t = self.type(src, 1), self.type(dst, 1)
        if dst in _WIDE:
            if src in _WIDE:
                return value
            if s == "u32":
                return self._source.value("vec2<u32>({}, 0u)", [value], t)
            return self._source.value(
                "vec2<u32>(vec2<i32>({}, {} >> 31u))", [value, value], t, needs=(0, UNARY)
            )
        if src in _WIDE:
            value, s = self.component(value, "x", "u32"), "u32"
        if s != t:
            value = self.call(f"bitcast<{t}>", [value], t, ValueFacts(multiple=1))
        fits = src not in _WIDE and dst.min <= src.min and src.max <= dst.max
        return value if fits else self.narrowed(value, dst, 1)

    # --- memory

    def _packs(self, dtype: DType) -> bool:
        """Whether buffers pack several elements in a word."""
        return dtype.itemsize < 4 and not (dtype == dtypes.float16 and self._has_f16)

    def _is_packed(self, pointer: Pointer, dtype: DType) -> bool:
        """Whether this memory packs several elements in a word: buffers may, workgroup memory does not."""
        return pointer.name in self._uses and self._packs(dtype)

    def load_scalar(self, pointer: Pointer, place: Expression, dtype: DType) -> Expression:
        name, t = pointer.name, self.type(dtype, 1)
        if name in self._uses:
            self._uses[name].add(Use.LOAD)
        element = f"load_{name}({{}})" if self._is_packed(pointer, dtype) else f"{name}[{{}}]"
        return self._source.value(element, [place], t, reads="memory")

    def from_memory(self, value: Expression, dtype: DType) -> Expression:
        """The element itself: the functions that load give a register's value."""
        return value

    def store_scalar(self, pointer: Pointer, place: Expression, value: Expression, dtype: DType) -> None:
        name = pointer.name
        if name in self._uses:
            self._uses[name].add(Use.STORE)
        packed = self._is_packed(pointer, dtype)
        self._source.statement(
            f"store_{name}({{}}, {{}});" if packed else f"{name}[{{}}] = {{}};", [place, value]
        )

    def guarded_load(
        self, pointer: Pointer, place: Expression, dtype: DType, condition: Expression, other: Expression
    ) -> Expression:
        """The load is not conditional: WebGPU keeps it inside of the buffer."""
        return self.choose(condition, self.load_scalar(pointer, place, dtype), other, self.type(dtype, 1))

    def has_vector(self, dtype: DType, size: int) -> bool:
        return dtype in _WORDS or dtype.itemsize < 4

    def _vector_size(self, address: Address, dtype: DType, lanes: int) -> int:
        if address.pointer.name not in self._uses:  # memory of a workgroup
            return 1
        return super()._vector_size(address, dtype, lanes)

    def address_of(self, address: Address, dtype: DType) -> Expression:
        """The position of an element, as WGSL has no addresses."""
        return self.place(address)

    def vector_type(self, dtype: DType, size: int) -> str:
        return f"vec{size}<{self.type(dtype, 1)}>"

    def vector_maker(self, dtype: DType, size: int) -> str:
        return self.vector_type(dtype, size)

    def load_vector(self, pointer: Pointer, start: Expression, dtype: DType, size: int) -> Expression:
        name, t = pointer.name, self.vector_type(dtype, size)
        self._uses[name].add(Use.LOAD_VECTOR)
        return self._source.value(f"load4_{name}({{}})", [start], t, hint="v", reads="memory")

    def store_vector(self, pointer: Pointer, start: Expression, dtype: DType, values: Sequence[Any]) -> None:
        name, make = pointer.name, self.vector_maker(dtype, len(values))
        self._uses[name].add(Use.STORE_VECTOR)
        self._source.statement(f"store4_{name}({{}}, {make}({{}}, {{}}, {{}}, {{}}));", [start, *values])

    # --- control

    def loop(self, size: Expression) -> Expression:
        if size.precedence < SUM:  # in i < a >> b WGSL sees a template
            size = self._source.value("({})", [size], "i32", data=size.data)
        return super().loop(size)

    # --- workgroups

    def special(self, kind: str, axis: int, size: Any) -> Expression:
        if kind == "invocation":
            if size.data.value is None:
                raise InternalError("WGSLBuilder.special: the size of a workgroup is not constant")
            self._sizes[axis] = int(size.data.value)
        word = "local_invocation" if kind == "invocation" else "workgroup"
        self._specials.add(word)
        return self._source.value(
            f"i32({word.partition('_')[0]}.{'xyz'[axis]})",
            [],
            "i32",
            hint="g" if kind == "workgroup" else "l",
        )

    def shuffled(self, value: Expression, mask: int, type_: str) -> Expression:
        self._enabled.add("subgroups")
        return self.call("subgroupShuffleXor", [value, self._source.atom(f"{mask}u", "u32")], type_)

    def barrier(self, pending: int | None = None) -> None:
        self._source.statement("workgroupBarrier();", [])

    def shared(self, name: str, dtype: DType, size: int, swizzled: bool = False) -> Pointer:
        self._shared.append(f"var<workgroup> {name}: array<{self.type(dtype, 1)}, {size}>;")
        return Pointer(name)


PACKED = tuple(d for d in WGSLBuilder.types if d.itemsize < 4)  # several in a word, without extensions
