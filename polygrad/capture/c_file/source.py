"""The text of the C file, around the variants of its kernels: constants, init, and the checks of each run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from polygrad.capture.c_file.arrays import array_address, array_text
from polygrad.capture.c_file.header import STATUSES, entry_head, init_head
from polygrad.capture.c_file.model import CModel, Entry, Value
from polygrad.capture.c_file.variants import Variant, variant_text
from polygrad.renderer.cstyle.portable import MATH, PRELUDE

_MACROS = """\
#if !defined(__GNUC__) || defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(__FAST_MATH__)
#error "-ffast-math changes results: compile this file without it"
#endif
#if defined(__GNUC__) /* clang, too: no vector is an argument of a function that is called */
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

/* The width of vectors in bytes, and whether multiply-adds of sums are fused. */
#if defined({macro}_VECTOR)
#define VECTOR {macro}_VECTOR
#elif !defined(__clang__) && (!defined(__GNUC__) || __GNUC__ < 12)
#define VECTOR 0
{defaults}#else
#define VECTOR 0
#endif
#if {others}
#error "{macro}_VECTOR: this file has no code for vectors of that width"
#endif
#if defined({macro}_FMA)
#define FUSED {macro}_FMA
#elif defined(__FMA__) || defined(__AVX512F__) || defined(__aarch64__)
#define FUSED 1
#else
#define FUSED 0
#endif
#if VECTOR && defined(__SSE2__)
#include <immintrin.h>
#elif VECTOR && defined(__aarch64__)
#include <arm_neon.h>
#endif
"""
# The processors that have registers of a width, by their compilers' macros.
_PROCESSORS = {
    64: "defined(__AVX512F__) && defined(__AVX512VL__) && defined(__AVX512BW__) && defined(__AVX512DQ__)",
    32: "defined(__AVX2__)",
    16: "defined(__SSE2__) || defined(__aarch64__) || defined(__wasm_simd128__) || defined(__VSX__)",
}


def source_text(model: CModel, variants: Sequence[Variant], selftest: str) -> str:
    """The C file. `selftest`: the text of its test."""
    bodies = [variant_text(model, variant) for variant in variants]
    needs_math = any(MATH in body for body in bodies)
    name = model.name
    parts = [
        f"/* {model.stem}.c: see {model.stem}.h. Compilers that fuse a * b + c unless told otherwise (gcc "
        f"without\n   -std=c11) need -ffp-contract=off for the bits that {name}_selftest compares. */\n",
        f'#include "{model.stem}.h"\n',
        (f"{MATH}\n" if needs_math else "") + "#include <stdbool.h>\n",
        _macros(model),
        PRELUDE,
        _constants(model),
        *_variants(variants, bodies),
        *_init(model),
        *(_run(model, entry) for entry in model.entries),
        selftest,
        _status_text(model),
    ]
    return "\n".join(part for part in parts if part)


def _macros(model: CModel) -> str:
    widths = sorted(model.options.vectors, reverse=True)
    defaults, wider = "", []
    for width in (64, 32, 16):
        wider.append(f"({_PROCESSORS[width]})")
        if width in widths:
            defaults += f"#elif {' || '.join(wider)}\n#define VECTOR {width}\n"
            wider = []
    others = " && ".join(f"VECTOR != {width}" for width in (0, *sorted(widths)))
    return _MACROS.format(macro=model.macro, defaults=defaults, others=others)


def _variants(variants: Sequence[Variant], bodies: Sequence[str]) -> Iterable[str]:
    for i, (variant, body) in enumerate(zip(variants, bodies, strict=True)):
        what = f"vectors of {variant.width} bytes" if variant.width else "scalars"
        text = body.replace(f"{MATH}\n", "")
        yield f"#{'elif' if i else 'if'} VECTOR == {variant.width} /* {what} */\n\n{text}"
    yield "#endif\n"


def constant_name(value: Value) -> str:
    """The name of the constant that has a value's contents."""
    return f"value_{value.name}"


def _is_constant(value: Value) -> bool:
    """Whether the file has the value's contents."""
    return value.place is None and (value.data.nbytes > 0 or not value.is_state)


def _constants(model: CModel) -> str:
    return "".join(
        array_text(constant_name(v), v.dtype, v.data, v.size) for v in model.values if _is_constant(v)
    )


def _init(model: CModel) -> Iterable[str]:
    name, macro = model.name, model.macro
    copied = [v for v in model.state if v.place is not None or v.data.nbytes]
    cleared = [v for v in model.state if v not in copied and v.nbytes]
    if copied:
        yield (
            "static void copy_bytes(void *target, const void *source, size_t count) {\n"
            "  for (size_t i = 0; i < count; i++)\n"
            "    ((unsigned char *)target)[i] = ((const unsigned char *)source)[i];\n}\n"
        )
    if model.weights:
        yield (
            "/* FNV-1a. */\nstatic uint64_t hash_of(const unsigned char *bytes, size_t count) {\n"
            "  uint64_t hash = 0xcbf29ce484222325ull;\n  for (size_t i = 0; i < count; i++)\n"
            "    hash = (hash ^ bytes[i]) * 0x100000001b3ull;\n  return hash;\n}\n"
        )
    lines = [
        f"if (!model || !memory{' || !weights' if model.weights else ''})\n    return {macro}_NULL_POINTER;",
        f"if (size < {macro}_SIZE)\n    return {macro}_TOO_SMALL;",
        f"if ((uintptr_t)memory % 8{' || (uintptr_t)weights % 8' if model.weights else ''})\n"
        f"    return {macro}_MISALIGNED;",
    ]
    if model.weights:
        lines += [
            "const unsigned char *file = (const unsigned char *)weights;",
            f"if (weights_size != {macro}_WEIGHTS_SIZE || hash_of(file, {len(model.weights)}) != "
            f"{_fnv(model.weights):#x}ull)\n    return {macro}_WRONG_FILE;",
        ]
    lines.append("unsigned char *bytes = (unsigned char *)memory;")
    for v in model.params:
        lines.append(f"model->params.{v.name} = (const {v.type} *){_source(model, v)};")
    for v in model.state:
        lines.append(f"model->state.{v.name} = ({v.type} *)(void *)(bytes + {v.offset});")
    lines += [f"copy_bytes(model->state.{v.name}, {_source(model, v)}, {v.nbytes});" for v in copied]
    for v in cleared:
        lines.append(f"for (size_t i = 0; i < {v.nbytes}; i++)\n    bytes[{v.offset} + i] = 0;")
    lines.append(f"model->scratch = bytes + {model.state_size};")
    if model.options.threads > 1:
        lines += ["model->parallel_for = 0;", "model->context = 0;", "model->threads = 1;"]
    lines.append(f"return {macro}_OK;")
    yield f"size_t {name}_size(void) {{\n  return {macro}_SIZE;\n}}\n"
    yield f"{init_head(model)} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def _source(model: CModel, value: Value) -> str:
    """The address of a value's first contents."""
    if value.place is not None:
        return f"(const void *)(file + {model.macro}_OFFSET_{value.name})"
    return f"(const void *){array_address(constant_name(value), value.dtype)}"


def _fnv(data: bytes) -> int:
    digest = 0xCBF29CE484222325
    for byte in data:
        digest = (digest ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return digest


def _run(model: CModel, entry: Entry) -> str:
    macro, lines = model.macro, []
    structs = [name for name in ("inputs", "outputs") if entry.members(name[:-1])]
    lines.append(
        f"if ({' || '.join(f'!{x}' for x in ('model', *structs))})\n    return {macro}_NULL_POINTER;"
    )
    pointers = [(f"{role}s->{m.name}", m) for role in ("input", "output") for m in entry.members(role)]
    kept = {b.name for b in entry.program.buffers if b.role in ("param", "state")}
    for v in model.values:
        if v.label in kept:
            pointers.append((f"model->{'state' if v.is_state else 'params'}.{v.name}", v))
    pointers = [(text, m) for text, m in pointers if m.size]
    for text, m in pointers:
        lines.append(f"if (!{text})\n    return {macro}_NULL_POINTER;")
        if m.dtype.itemsize > 1:
            lines.append(f"if ((uintptr_t){text} % {m.dtype.itemsize})\n    return {macro}_MISALIGNED;")
    for bound in entry.variables:
        lines.append(
            f"if ({bound.name} < {bound.lo} || {bound.name} > {bound.hi})\n    return {macro}_OUT_OF_BOUNDS;"
        )
    arguments = ["model", *structs, *(f"(idx){v.name}" for v in entry.variables)]
    lines += [f"launch_{entry.function}({', '.join(arguments)});", f"return {macro}_OK;"]
    return f"{entry_head(model, entry)} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def _status_text(model: CModel) -> str:
    cases = "".join(f'  case {model.macro}_{s}: return "{text}";\n' for s, text in STATUSES.items())
    return (
        f"const char *{model.name}_status_text(int status) {{\n  switch (status) {{\n{cases}"
        '  default: return "unknown status";\n  }\n}\n'
    )
