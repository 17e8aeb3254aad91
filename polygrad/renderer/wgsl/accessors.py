"""Functions in WGSL that load and store the elements of a buffer: elements packed in words, and vectors of
four."""

from __future__ import annotations

from enum import Enum, auto

from polygrad.dtype import DType


class Use(Enum):
    """A way in which a kernel uses a buffer."""

    LOAD = auto()
    STORE = auto()
    LOAD_VECTOR = auto()
    STORE_VECTOR = auto()


def packed_accessors(name: str, dtype: DType, type_: str, uses: set[Use]) -> list[str]:
    """The functions for elements packed in words. Another invocation may store other elements of a word, so
    one element is stored by atomics; four are whole words."""
    per_word, bits = 4 // dtype.itemsize, 8 * dtype.itemsize
    shift, mask = per_word.bit_length() - 1, f"0x{(1 << bits) - 1:x}u"
    place, atomic = f"u32(i & {per_word - 1}) * {bits}u", Use.STORE in uses
    signed, t, out = type_ == "i32", f"vec4<{type_}>", []

    def word(k: int = 0) -> str:
        at = f"{name}[{f'(i >> {shift}u) + {k}' if k else f'i >> {shift}u'}]"
        return f"atomicLoad(&{at})" if atomic else at

    def element(word: str, place: str) -> str:
        text = f"extractBits({f'bitcast<i32>({word})' if signed else word}, {place}, {bits}u)"
        return f"{text} != 0u" if dtype.is_bool else text

    def as_bits(value: str) -> str:
        if dtype.is_bool:
            return f"select(0u, 1u, {value})"
        return f"(bitcast<u32>({value}) & {mask})" if signed else value

    if Use.LOAD in uses:
        out.append(f"fn load_{name}(i: i32) -> {type_} {{\n  return {element(word(), place)};\n}}")
    if Use.STORE in uses:
        lines = [
            f"fn store_{name}(i: i32, value: {type_}) {{",
            f"  let place: u32 = {place};",
            f"  atomicAnd(&{name}[i >> {shift}u], ~({mask} << place));",
            f"  atomicOr(&{name}[i >> {shift}u], {as_bits('value')} << place);",
            "}",
        ]
        out.append("\n".join(lines))
    if Use.LOAD_VECTOR in uses:
        lines = [f"  let word{k}: u32 = {word(k)};" for k in range(dtype.itemsize)]
        elements = [element(f"word{e // per_word}", f"{e % per_word * bits}u") for e in range(4)]
        lines.append(f"  return {t}({', '.join(elements)});")
        out.append("\n".join([f"fn load4_{name}(i: i32) -> {t} {{", *lines, "}"]))
    if Use.STORE_VECTOR in uses:
        lines = []
        for k in range(dtype.itemsize):
            values = [as_bits(f"value.{c}") for c in "xyzw"[k * per_word : (k + 1) * per_word]]
            whole = " | ".join(f"({v} << {e * bits}u)" if e else v for e, v in enumerate(values))
            at = f"{name}[{f'(i >> {shift}u) + {k}' if k else f'i >> {shift}u'}]"
            lines.append(f"  atomicStore(&{at}, {whole});" if atomic else f"  {at} = {whole};")
        out.append("\n".join([f"fn store4_{name}(i: i32, value: {t}) {{", *lines, "}"]))
    return out


def vector_accessors(name: str, type_: str, uses: set[Use], is_vector: bool) -> list[str]:
    """The functions for four elements at once, at a position that is a multiple of four."""
    t, out = f"vec4<{type_}>", []
    if Use.LOAD_VECTOR in uses:
        elements = ", ".join(f"{name}[i{f' + {k}' if k else ''}]" for k in range(4))
        value = f"{name}[i >> 2u]" if is_vector else f"{t}({elements})"
        out.append(f"fn load4_{name}(i: i32) -> {t} {{\n  return {value};\n}}")
    if Use.STORE_VECTOR in uses:
        lines = [f"  {name}[i{f' + {k}' if k else ''}] = value.{'xyzw'[k]};" for k in range(4)]
        lines = [f"  {name}[i >> 2u] = value;"] if is_vector else lines
        out.append("\n".join([f"fn store4_{name}(i: i32, value: {t}) {{", *lines, "}"]))
    return out
