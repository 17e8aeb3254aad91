"""`CBuilder`: C11 with the vector extensions of GCC (12 and later) and Clang.

A kernel is `void NAME(char **buffers, int64_t *variables)`. SIMD values are vectors (`float32x16`), to which
the compilers' own operators apply. Square roots and fused multiply-adds have no operator: they are functions
with a loop over the lanes, which compilers turn into one instruction. Bools of several lanes are masks:
integers, 0 or -1, as wide as the compared elements (`ValueFacts.dtype`). Registers hold float16 and bfloat16
as uint16. The text relies on signed integers that wrap around (`-fwrapv`) and on no contraction
(`-ffp-contract=off`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.renderer.builder import Address
from polygrad.renderer.cstyle.base import NO_INFO, CStyleBuilder, ValueFacts, parameter_names
from polygrad.renderer.source_text import ANY, ATOM, COMPARE, UNARY, Expression, SourceText
from polygrad.shared_words import STOP_SYMBOL
from polygrad.uop.ops import Ops

_SIGNED = {8: dtypes.int8, 16: dtypes.int16, 32: dtypes.int32, 64: dtypes.int64}
# Dtypes whose literals have exactly their type: such a literal may be an operand beside a vector.
_LITERAL_TYPES = (
    dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.uint64, dtypes.index, dtypes.float32, dtypes.float64,
)  # fmt: skip
_COMPARISONS = {Ops.CMPLT: "less", Ops.CMPNE: "unequal", Ops.CMPEQ: "equal"}
_FUNCTIONS = {Ops.SQRT: "sqrt", Ops.TRUNC: "trunc", Ops.MULACC: "fma"}
_INTEGER_TYPES = {d: f"{d}_t" for d in dtypes.ints}


# Instructions of x86 which GCC 12 does not select itself: by lanes, a macro that tells of it and the
# expression.
_X86_FROM_HALF = {
    8: ("__F16C__", "__builtin_ia32_vcvtph2ps256((__attribute__((vector_size(16))) short)x)"),
    16: (
        "__AVX512F__",
        "__builtin_ia32_vcvtph2ps512_mask("
        "(__attribute__((vector_size(32))) short)x, (__attribute__((vector_size(64))) float){0}, -1, 4)",
    ),
}
_X86_TO_HALF = {  # to nearest even
    8: ("__F16C__", "(uint16x8)__builtin_ia32_vcvtps2ph256(x, 0)"),
    16: (
        "__AVX512F__",
        "(uint16x16)__builtin_ia32_vcvtps2ph512_mask(x, 0, (__attribute__((vector_size(32))) short){0}, -1)",
    ),
}
_X86_MASKED_LOADS = {  # by bytes of an element and lanes
    (4, 16): (
        "__AVX512DQ__",
        "(__typeof__(x))__builtin_ia32_loadups512_mask((const float *)p, "
        "(__attribute__((vector_size(64))) float)x, __builtin_ia32_cvtd2mask512(mask))",
    ),
}


class CBuilder(CStyleBuilder):
    """`native_half`: the machine converts between float and `_Float16` (else: by integer arithmetic)."""

    types = {
        dtypes.bool: "bool",
        **_INTEGER_TYPES,
        dtypes.float16: "uint16_t", dtypes.bfloat16: "uint16_t",
        dtypes.float32: "float", dtypes.float64: "double",
    }  # fmt: skip
    memory_types = {dtypes.bool: "uint8_t"}
    # always_inline: GCC 12 does not align the stack for arguments that are wider than vector registers
    header: ClassVar[tuple[str, ...]] = (
        "#include <stdbool.h>\n#include <stdint.h>\n",
        "#define INLINE static inline __attribute__((always_inline))\n",
    )
    functions = {
        (op, dtype): f"__builtin_{name}{suffix}"
        for op, name in _FUNCTIONS.items()
        for dtype, suffix in ((dtypes.float32, "f"), (dtypes.float64, ""))
    }
    literal_suffixes = {dtypes.float32: "f", dtypes.uint32: "u", dtypes.int64: "ll", dtypes.uint64: "ull"}
    helper_prefix = "INLINE "
    wraps, half_bits = True, True
    has_safepoints = True

    def __init__(self, target: Target, native_half: bool = False) -> None:
        super().__init__(target)
        self.native_half = native_half

    def signature(
        self, name: str, params: Sequence[DType], variables: Sequence[str]
    ) -> tuple[str, list[str], list[str]]:
        lines = [f"void {name}(char **buffers, int64_t *variables) {{"]
        pointers, numbers = parameter_names(params, variables)
        for i, (pointer, dtype) in enumerate(zip(pointers, params, strict=True)):
            t = self.memory_type(dtype)
            lines.append(f"  {t} *{pointer} = ({t} *)buffers[{i}];")
        lines += [f"  int64_t {number} = variables[{i}];" for i, number in enumerate(numbers)]
        return "\n".join(lines), pointers, numbers

    def safepoint(self) -> None:
        self.need(
            STOP_SYMBOL,
            f"static const int64_t never_stops;\nconst volatile int64_t *{STOP_SYMBOL} = &never_stops;\n",
        )
        self._source.statement(f"if (*{STOP_SYMBOL}) return;", [])

    def special_float(self, dtype: DType, value: float) -> str:
        suffix = "f" if dtype == dtypes.float32 else ""
        if value != value:
            return f'__builtin_nan{suffix}("")'
        return f"__builtin_inf{suffix}()" if value > 0 else f"-__builtin_inf{suffix}()"

    def type(self, dtype: DType, lanes: int) -> str:
        if lanes == 1:
            return super().type(dtype, 1)
        stored = self._stored(dtype)
        name = f"{stored}x{lanes}"
        size = stored.itemsize * lanes
        self.need(name, f"typedef {self.types[stored]} {name} __attribute__((vector_size({size})));")
        return name

    def bits(self, value: Expression, src: DType, dst: DType, lanes: int) -> Expression:
        if lanes != 1:
            return self.convert(value, self.type(dst, lanes))
        s, d = self.type(src, 1), self.type(dst, 1)
        name = f"bits_{src}_to_{dst}"
        body = f"{{\n  union {{ {s} from; {d} to; }} bits = {{x}};\n  return bits.to;\n}}"
        self.need(name, f"INLINE {d} {name}({s} x) {body}")
        return self.call(name, [value], d)

    # --- vectors

    def binary(
        self,
        op: Ops,
        a: Expression,
        b: Expression,
        type_: str,
        info: ValueFacts = NO_INFO,
        hint: str = "x",
    ) -> Expression:
        if b.data.scalar is not None:
            b = b.data.scalar
        elif a.data.scalar is not None:
            a = a.data.scalar
        return super().binary(op, a, b, type_, info, hint)

    def function(self, op: Ops, dtype: DType, args: Sequence[Any], lanes: int) -> Any:
        if lanes == 1:
            return super().function(op, dtype, args, 1)
        t, names = self.type(dtype, lanes), "xyz"[: len(args)]
        name = f"{_FUNCTIONS[op]}_{t}"
        params = ", ".join(f"{t} {n}" for n in names)
        each = ", ".join(f"{n}[i]" for n in names)
        self.need(
            name,
            f"INLINE {t} {name}({params}) {{\n  for (int i = 0; i < {lanes}; i++)\n"
            f"    x[i] = {self.functions[op, dtype]}({each});\n  return x;\n}}",
        )
        return self.call(name, args, t)

    def convert_number(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if lanes == 1:
            return super().convert_number(value, src, dst, 1)
        if not src.is_bool:
            return self._converted(value, self.type(dst, lanes))
        if dst.is_float:
            zero, one = (self.const(dst, x, lanes) for x in (0.0, 1.0))
            return self.where(dst, value, one, zero, lanes)
        t = self.type(dst, lanes)
        mask = self._converted(value, t)
        return self.unary("-", mask, t)

    def _converted(self, value: Expression, type_: str, info: ValueFacts = NO_INFO) -> Expression:
        if value.type == type_:
            return value
        return self._source.value(f"__builtin_convertvector({{}}, {type_})", [value], type_, data=info)

    def extend_half(self, value: Any, src: DType, lanes: int) -> Any:
        if not (self.native_half and src == dtypes.float16):
            return super().extend_half(value, src, lanes)
        bits, t, half = self.type(src, lanes), self.type(dtypes.float32, lanes), self._half_type(lanes)
        name = f"half_to_{self.dtype_name(dtypes.float32, lanes)}"
        number = "both.half" if lanes == 1 else f"__builtin_convertvector(both.half, {t})"
        portable = f"  union {{ {bits} bits; {half} half; }} both = {{x}};\n  return {number};\n"
        self.need(name, f"INLINE {t} {name}({bits} x) {{\n{_on_x86(_X86_FROM_HALF.get(lanes), portable)}}}")
        return self.call(name, [value], t)

    def truncate_to_half(self, value: Any, src: DType, dst: DType, lanes: int) -> Any:
        if not (self.native_half and dst == dtypes.float16 and src == dtypes.float32):
            return super().truncate_to_half(value, src, dst, lanes)
        bits, t, half = self.type(dst, lanes), self.type(src, lanes), self._half_type(lanes)
        name = f"{self.dtype_name(src, lanes)}_to_half"
        number = f"({half})x" if lanes == 1 else f"__builtin_convertvector(x, {half})"
        portable = f"  union {{ {half} half; {bits} bits; }} both = {{{number}}};\n  return both.bits;\n"
        self.need(name, f"INLINE {bits} {name}({t} x) {{\n{_on_x86(_X86_TO_HALF.get(lanes), portable)}}}")
        return self.call(name, [value], bits)

    def _half_type(self, lanes: int) -> str:
        if lanes == 1:
            return "_Float16"
        name = f"halfx{lanes}"
        self.need(name, f"typedef _Float16 {name} __attribute__((vector_size({2 * lanes})));")
        return name

    # --- masks

    def _mask_type(self, dtype: DType, lanes: int) -> tuple[str, ValueFacts]:
        """The type and info of a mask as wide as `dtype`."""
        mask = _SIGNED[self._stored(dtype).itemsize * 8]
        return self.type(mask, lanes), ValueFacts(dtype=mask)

    def _fitting(self, dtype: DType, lanes: int) -> DType:
        """`dtype`, or a narrower integer of which `lanes` elements fit in a vector register."""
        bits, room = self._stored(dtype).itemsize * 8, 8 * max(self.target.simd_bytes, 16) // lanes
        return dtype if bits <= room else _SIGNED[max(room, 8)]

    def _mask(self, value: Any, dtype: DType, lanes: int) -> Any:
        """A mask as wide as `dtype`."""
        return self._converted(value, *self._mask_type(dtype, lanes))

    def _same_masks(self, a: Any, b: Any, lanes: int) -> tuple[Any, Any]:
        wider = max(a.data.dtype, b.data.dtype, key=lambda d: d.bits)
        return self._mask(a, wider, lanes), self._mask(b, wider, lanes)

    def compare(self, op: Ops, dtype: DType, a: Any, b: Any, lanes: int) -> Any:
        if lanes == 1:
            return super().compare(op, dtype, a, b, 1)
        narrower = self._fitting(dtype, lanes)
        if narrower == dtype or lanes == 2:
            return self.binary(op, a, b, *self._mask_type(dtype, lanes), hint="m")

        # GCC compares vectors longer than a register lane by lane. So each half is compared by itself.
        def write(a: Any, b: Any) -> Any:
            half, (part, _) = lanes // 2, self._mask_type(narrower, lanes // 2)
            masks = []
            for start in (0, half):
                operands = [self._part(x, dtype, start, half, NO_INFO) for x in (a, b)]
                masks.append(self._converted(self.compare(op, dtype, operands[0], operands[1], half), part))
            text = f"__builtin_shufflevector({{}}, {{}}, {', '.join(map(str, range(lanes)))})"
            return self._source.value(text, masks, m, data=info)

        t, (m, info) = self.type(dtype, lanes), self._mask_type(narrower, lanes)
        name = f"{_COMPARISONS[op]}_{t}"
        helper = self.helper(name, [(t, "a"), (t, "b")], m, write)
        return self.call(helper, [a, b], m, info, hint="m")

    def logic(self, op: Ops, a: Any, b: Any, lanes: int) -> Any:
        if lanes == 1:
            return super().logic(op, a, b, 1)
        a, b = self._same_masks(a, b, lanes)
        if op is Ops.CMPEQ or op is Ops.CMPLT:
            a = self._inverted(a)
        return self.binary(
            {Ops.CMPNE: Ops.XOR, Ops.CMPEQ: Ops.XOR, Ops.CMPLT: Ops.AND}.get(op, op),
            a,
            b,
            a.type,
            a.data,
            "m",
        )

    def _inverted(self, mask: Any) -> Any:
        return self._source.value(
            "~{}", [mask], mask.type, needs=UNARY, precedence=UNARY, hint="m", data=mask.data
        )

    def _new_source(self) -> SourceText:
        """GCC 12 vectorizes `for (...) y[i] = x[i] < (x[i] != 0 ? z[i] : x[i]) * 2` wrongly."""
        return SourceText(self.declaration, NO_INFO, conditional_loads=False)

    def where(self, dtype: DType, condition: Any, a: Any, b: Any, lanes: int) -> Any:
        if lanes == 1:
            return super().where(dtype, condition, a, b, 1)
        if dtype.is_bool:
            a, b = self._same_masks(a, b, lanes)
            condition, a = self._same_masks(condition, a, lanes)
            chosen = self.logic(Ops.AND, condition, a, lanes)
            return self.logic(Ops.OR, chosen, self.logic(Ops.CMPLT, condition, b, lanes), lanes)
        t = self.type(dtype, lanes)
        m, _ = self._mask_type(dtype, lanes)
        name = f"select_{t}"
        self.need(
            name,
            f"INLINE {t} {name}({m} mask, {t} x, {t} y) {{\n"
            f"  return ({t})((({m})x & mask) | (({m})y & ~mask));\n}}",
        )
        return self.call(name, [self._mask(condition, dtype, lanes), a, b], t)

    # --- lanes

    def splat(self, value: Any, dtype: DType, lanes: int) -> Any:
        if lanes == 1:
            return value
        info = ValueFacts(value.data.value)
        if info.value is not None and dtype in _LITERAL_TYPES:
            info = ValueFacts(info.value, scalar=value)
        if dtype.is_bool:
            info = ValueFacts(dtype=dtypes.int8)
            value = self._source.value("(int8_t)-{}", [value], "int8_t", needs=ATOM, precedence=UNARY)
        t = self.type(dtypes.int8 if dtype.is_bool else dtype, lanes)
        name, scalar = f"splat_{t}", self.types[dtypes.int8 if dtype.is_bool else self._stored(dtype)]
        each = ", ".join(["x"] * lanes)
        self.need(name, f"INLINE {t} {name}({scalar} x) {{\n  return ({t}){{{each}}};\n}}")
        if value.block is None:  # a constant, or a name
            return self._source.atom(f"{name}({value.text})", t, info)
        return self.call(name, [value], t, info)

    def extract(self, value: Any, dtype: DType, lane: int, lanes: int) -> Any:
        if lanes == 1:
            return value
        text = f"{{}}[{lane}] != 0" if dtype.is_bool else f"{{}}[{lane}]"
        return self._source.value(
            text, [value], self.type(dtype, 1), needs=ATOM, precedence=COMPARE if dtype.is_bool else ATOM,
        )  # fmt: skip

    def pack(self, values: Sequence[Any], dtype: DType) -> Any:
        lanes = len(values)
        if lanes == 1:
            return values[0]
        t = self.type(dtypes.int8 if dtype.is_bool else dtype, lanes)
        each = ", ".join(["(int8_t)-{}" if dtype.is_bool else "{}"] * lanes)
        info = ValueFacts(dtype=dtypes.int8) if dtype.is_bool else NO_INFO
        return self._source.value(
            f"({t}){{{{{each}}}}}", values, t, needs=ATOM if dtype.is_bool else ANY, data=info
        )

    def reduce(self, op: Ops, value: Any, dtype: DType, lanes: int) -> Any:
        """Combine the low half with the high half until one lane is left. For bools: whether any or all
        are true."""
        if dtype.is_bool:
            value = self._mask(value, value.data.dtype, lanes)
            kind, stored = ("all" if op is Ops.MUL else "any"), value.data.dtype
        else:
            kind, stored = f"reduce_{op.name.lower()}", dtype
        name, info = f"{kind}_{self.dtype_name(stored, lanes)}", value.data

        def write(x: Any) -> Any:
            size = lanes
            while size > 1:
                size //= 2
                low, high = (self._part(x, stored, start, size, info) for start in (0, size))
                x = self.alu(op, dtype, [low, high], size)
            return x

        result = self.type(dtype, 1)
        return self.call(self.helper(name, [(value.type, "x")], result, write, [info]), [value], result)

    def _part(self, value: Any, dtype: DType, start: int, size: int, info: ValueFacts) -> Any:
        if size == 1:
            return self.extract(value, dtypes.bool if info.dtype else dtype, start, 2)
        t = self.type(dtype, size)
        positions = ", ".join(str(i) for i in range(start, start + size))
        text = f"__builtin_shufflevector({{}}, {{}}, {positions})"
        return self._source.value(text, [value, value], t, data=info)

    def interleave(self, a: Any, b: Any, dtype: DType, lanes: int) -> tuple[Any, Any]:
        if dtype.is_bool:
            a, b = self._same_masks(a, b, lanes)
        low, high = (
            self._interleaved(
                half, [p for i in range(start, start + lanes // 2) for p in (i, i + lanes)], a, b
            )
            for half, start in (("low", 0), ("high", lanes // 2))
        )
        return low, high

    def _interleaved(self, half: str, positions: Sequence[int], a: Expression, b: Expression) -> Expression:
        t, name = a.type, f"interleave_{half}_{a.type}"
        chosen = ", ".join(map(str, positions))
        self.need(
            name,
            f"INLINE {t} {name}({t} x, {t} y) {{\n  return __builtin_shufflevector(x, y, {chosen});\n}}",
        )
        return self.call(name, [a, b], t, a.data)

    # --- memory

    def block_size(self, dtype: DType, lanes: int) -> int:
        return lanes

    def _loader(self, dtype: DType, lanes: int) -> str:
        """The function that loads a vector as memory holds it: of a bool, its bytes."""
        t, scalar = self.type(dtypes.uint8 if dtype.is_bool else dtype, lanes), self.memory_type(dtype)
        self._need_unaligned(t, scalar)
        name = f"load_{t}"
        self.need(name, f"INLINE {t} {name}(const {scalar} *p) {{\n  return *(const {t}_unaligned *)p;\n}}")
        return name

    def load_block(self, address: Address, dtype: DType, lanes: int) -> Any:
        name, t = self._loader(dtype, lanes), self.type(dtypes.uint8 if dtype.is_bool else dtype, lanes)
        return self._source.value(f"{name}({{}})", [self.address_of(address, dtype)], t, reads="memory")

    def _need_unaligned(self, type_: str, scalar: str) -> None:
        self.need(
            f"{type_}_unaligned",
            f"typedef {type_} {type_}_unaligned __attribute__((aligned(sizeof({scalar})), may_alias));",
        )

    def _loaded(self, block: Any, dtype: DType, lanes: int) -> Any:
        """A vector, as memory holds it, as a SIMD value."""
        if not dtype.is_bool:
            return block
        return self.compare(Ops.CMPNE, dtypes.uint8, block, self.const(dtypes.uint8, 0, lanes), lanes)

    def permute(self, blocks: Sequence[Any], positions: Sequence[int], dtype: DType) -> Any:
        """Shuffle the first two blocks, then insert the elements of each further block."""
        lanes = len(positions)

        def shuffled(a: Any, b: Any, chosen: Sequence[int]) -> Any:
            text = f"__builtin_shufflevector({{}}, {{}}, {', '.join(map(str, chosen))})"
            return self._source.value(text, [a, b], a.type)

        second = blocks[1] if len(blocks) > 1 else blocks[0]
        value = shuffled(blocks[0], second, [p if p < 2 * lanes else -1 for p in positions])
        for number, block in enumerate(blocks[2:], 2):
            first = number * lanes
            chosen = [p - first + lanes if first <= p < first + lanes else i for i, p in enumerate(positions)]
            value = shuffled(value, block, chosen)
        return self._loaded(value, dtype, lanes)

    def load(self, address: Address, dtype: DType, lanes: int) -> Any:
        if lanes == 1:
            return super().load(address, dtype, 1)
        return self._loaded(self.load_block(address, dtype, lanes), dtype, lanes)

    def load_masked(self, address: Address, dtype: DType, lanes: int, mask: Any, other: Any) -> Any:
        stored = dtypes.int8 if dtype.is_bool else dtype
        t, scalar = self.type(stored, lanes), self.memory_type(dtype)
        m, _ = self._mask_type(stored, lanes)
        name = f"load_masked_{'bool' if dtype.is_bool else ''}{t}"
        element = "(int8_t)-(p[i] != 0)" if dtype.is_bool else "p[i]"
        whole = f"{self._loader(dtype, lanes)}(p)" + (" != 0" if dtype.is_bool else "")
        portable = (
            f"  int missing = 0;\n  for (int i = 0; i < {lanes}; i++)\n    missing |= !mask[i];\n"
            f"  if (!missing)\n    return {whole};\n"
            f"  for (int i = 0; i < {lanes}; i++)\n    if (mask[i])\n      x[i] = {element};\n  return x;\n"
        )
        self.need(
            name,
            f"INLINE {t} {name}(const {scalar} *p, {m} mask, {t} x) {{\n"
            f"{_on_x86(_X86_MASKED_LOADS.get((stored.itemsize, lanes)), portable)}}}",
        )
        if dtype.is_bool:
            other = self._mask(other, stored, lanes)
        return self._source.value(
            f"{name}({{}}, {{}}, {{}})",
            [self.address_of(address, dtype), self._mask(mask, stored, lanes), other],
            t,
            reads="memory",
            data=ValueFacts(dtype=dtypes.int8) if dtype.is_bool else NO_INFO,
        )

    def store(self, address: Address, value: Any, dtype: DType, lanes: int) -> None:
        if lanes == 1:
            return super().store(address, value, dtype, 1)
        t, scalar = self.type(dtypes.uint8 if dtype.is_bool else dtype, lanes), self.memory_type(dtype)
        if dtype.is_bool:
            value = self.binary(Ops.AND, self._converted(value, t), self.const(dtypes.uint8, 1, lanes), t)
        self._need_unaligned(t, scalar)
        name = f"store_{t}"
        self.need(name, f"INLINE void {name}({scalar} *p, {t} x) {{\n  *({t}_unaligned *)p = x;\n}}")
        self._source.statement(f"{name}({{}}, {{}});", [self.address_of(address, dtype), value])

    # --- registers

    def register(self, dtype: DType, lanes: int) -> Any:
        if lanes == 1 or not dtype.is_bool:
            return super().register(dtype, lanes)
        t, info = self._mask_type(dtypes.int32, lanes)
        return self._source.variable(t, "acc", info)

    def set(self, register: Any, value: Any) -> None:
        if register.data.dtype is not None:
            value = self._converted(value, register.type)
        super().set(register, value)


def _on_x86(instruction: tuple[str, str] | None, portable: str) -> str:
    """The body of a function: with an instruction of x86 under GCC where there is one, else portable."""
    if instruction is None:
        return portable
    macro, expression = instruction
    return f"#if defined({macro}) && !defined(__clang__)\n  return {expression};\n#else\n{portable}#endif\n"
