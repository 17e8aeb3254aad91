"""The text of the header: statuses, structs, functions."""

from __future__ import annotations

from collections.abc import Iterable

from polygrad.capture.c_file.model import CModel, Entry, Member
from polygrad.capture.c_file.variants import entry_arguments

# Statuses in order, with the text of each.
STATUSES = {
    "OK": "ok",
    "NULL_POINTER": "a pointer is null",
    "TOO_SMALL": "the memory has fewer bytes than the model needs",
    "MISALIGNED": "a pointer is not aligned for its type",
    "OUT_OF_BOUNDS": "a variable is out of its bounds",
    "WRONG_FILE": "the bytes are not those of the weights that were exported with this code",
    "OTHER_BITS": "results are right within rounding, but their bits differ from those of the export: the "
    "compiler fuses or reorders floating-point operations (gcc: add -ffp-contract=off; use no -ffast-math)",
    "WRONG_RESULT": "results differ from those of the export",
}


def header_text(model: CModel, size: int, test_size: int) -> str:
    """The header. `size`: the bytes of memory that a model needs; `test_size`: those of its test."""
    name, macro = model.name, model.macro
    parts = [
        _head(model),
        f"#ifndef {macro}_H\n#define {macro}_H\n",
        "#include <stddef.h>\n#include <stdint.h>\n",
        '#ifdef __cplusplus\nextern "C" {\n#endif\n',
        _numbers(model, size, test_size),
        "enum {\n" + "".join(f"  {macro}_{s} = {i},\n" for i, s in enumerate(STATUSES)) + "};\n",
    ]
    for entry in model.entries:
        parts += _structs(entry)
    if model.params:
        comment = "/* What runs read. The pointers may be set to other memory. */\n"
        parts.append(comment + _struct(f"{name}_params", model.params, "const "))
    if model.state:
        comment = "/* What runs read and write. It is in the memory that init was given. */\n"
        parts.append(comment + _struct(f"{name}_state", model.state, ""))
    parts += [_model_struct(model), *_functions(model)]
    parts.append(f"#ifdef __cplusplus\n}}\n#endif\n\n#endif /* {macro}_H */\n")
    return "\n".join(parts)


def _head(model: CModel) -> str:
    names = ", ".join(entry.function for entry in model.entries)
    weights = f", and {model.stem}.safetensors with the weights" if model.weights else ""
    return (
        f"/* {model.name}: a step that polygrad exported, as C11: this header and {model.stem}.c{weights}.\n"
        f"   Functions: {names}. Nothing is allocated, and no global is written: models in memory of\n"
        "   their own may run at the same time. */\n"
    )


def _numbers(model: CModel, size: int, test_size: int) -> str:
    macro = model.macro
    lines = [
        f"/* Bytes of memory of a model, and of its test. Aligned to 8; to {64} it is faster. */",
        f"#define {macro}_SIZE {size}",
    ]
    if model.options.selftest:
        lines.append(f"#define {macro}_SELFTEST_SIZE {test_size}")
    if model.state:
        lines += [
            "/* State is first in this memory: these bytes are all that training changes. */",
            f"#define {macro}_STATE_SIZE {model.state_size}",
        ]
    if model.weights:
        lines += [
            f"/* {model.stem}.safetensors: its bytes, and where each tensor begins. */",
            f"#define {macro}_WEIGHTS_SIZE {model.weights_size}",
        ]
        lines += [f"#define {macro}_OFFSET_{v.name} {v.place}" for v in model.values if v.place is not None]
    if model.options.threads > 1:
        lines += ["/* The most threads of a run. */", f"#define {macro}_THREADS {model.options.threads}"]
    return "\n".join(lines) + "\n"


def _structs(entry: Entry) -> Iterable[str]:
    if entry.inputs:
        yield _struct(f"{entry.structs}_inputs", entry.inputs, "const ")
    if entry.outputs:
        yield _struct(f"{entry.structs}_outputs", entry.outputs, "")


def _struct(name: str, members: Iterable[Member], qualifier: str) -> str:
    lines = [f"  {qualifier}{m.type} *{m.name}; /* {_described(m)} */\n" for m in members]
    return f"typedef struct {name} {{\n{''.join(lines)}}} {name};\n"


def _described(member: Member) -> str:
    """dtype and shape, and the tensor's own name where that is another."""
    shape = ", ".join(map(str, member.shape))
    own = "" if member.label == member.name else f' "{member.label}"'.replace("*/", "* /")
    bits = " (bits)" if str(member.dtype) not in member.type and member.type.startswith("uint") else ""
    return f"{member.dtype}{bits} [{shape}]{own}"


def _model_struct(model: CModel) -> str:
    name, lines = model.name, []
    if model.params:
        lines.append(f"  {name}_params params;\n")
    if model.state:
        lines.append(f"  {name}_state state;\n")
    before = ""
    if model.options.threads > 1:
        before = (
            "/* Calls task(data, 0), ..., task(data, count - 1), on any threads, and returns when all have\n"
            "   returned. `context` is the model's. */\n"
            f"typedef void {name}_parallel_for(void *context, int count,\n"
            "                                  void (*task)(void *data, int number), void *data);\n\n"
        )
        lines.append(
            f"  {name}_parallel_for *parallel_for; /* null: one thread */\n"
            "  void *context;\n  int threads; /* of a run, if parallel_for is set */\n"
        )
    lines.append("  void *scratch;\n")
    return f"{before}typedef struct {name} {{\n{''.join(lines)}}} {name};\n"


def _functions(model: CModel) -> Iterable[str]:
    name, macro = model.name, model.macro
    yield f"/* {macro}_SIZE. */\nsize_t {name}_size(void);\n"
    weights = (
        f" `weights`: the bytes of\n   {model.stem}.safetensors, which have to stay." if model.weights else ""
    )
    yield (
        "/* Make a model in `memory` of `size` bytes, which has to stay. State begins as it was "
        f"exported.{weights} */\n{init_head(model)};\n"
    )
    for entry in model.entries:
        yield _comment_of(entry) + f"{entry_head(model, entry)};\n"
    if model.options.selftest:
        yield _selftest(model)
    yield f"/* What a status means. */\nconst char *{name}_status_text(int status);\n"


def _selftest(model: CModel) -> str:
    return (
        "/* Run on kept inputs, and compare with the results of the export: their bits, where they are\n"
        "   known for this processor, else values within rounding.\n"
        f"   `size`: at least {model.macro}_SELFTEST_SIZE. */\n"
        f"{selftest_head(model)};\n"
    )


def _comment_of(entry: Entry) -> str:
    bounds = "".join(f" `{v.name}`: {v.lo} to {v.hi}." for v in entry.variables)
    return f"/* Run once.{bounds} Memory of inputs, outputs and state does not overlap. */\n"


def _weights_arguments(model: CModel) -> str:
    return ", const void *weights, size_t weights_size" if model.weights else ""


def init_head(model: CModel) -> str:
    return f"int {model.name}_init({model.name} *model, void *memory, size_t size{_weights_arguments(model)})"


def selftest_head(model: CModel) -> str:
    return f"int {model.name}_selftest(void *memory, size_t size{_weights_arguments(model)})"


def entry_head(model: CModel, entry: Entry) -> str:
    arguments = [f"const {model.name} *model", *(t + n for n, t in entry_arguments(entry).items())]
    return f"int {entry.function}({', '.join(arguments)})"
