"""`Variant`: the kernels of a model for vectors of one width, as C, and the functions that launch them.

    static void run_mlp(const mlp *model, const mlp_inputs *inputs, const mlp_outputs *outputs, idx batch) {
      unsigned char *scratch = model->scratch;
      r_64_16_...(outputs->loss, inputs->x, (const mem_f32 *)(const void *)(scratch + 256), batch);
    }

A parallel kernel has a struct with its arguments, which `parallel_for` gives to each thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from polygrad.capture.c_file.model import CModel, Entry
from polygrad.codegen.lower.passes import parameters
from polygrad.codegen.target import Target
from polygrad.dtype import DType, to_dtype
from polygrad.engine.retarget import Retargeted, retarget
from polygrad.helpers import PART, PARTS, THREAD, THREAD_VARIABLES, THREADS
from polygrad.renderer.cstyle.base import FunctionText, parameter_names
from polygrad.renderer.cstyle.portable import PortableCBuilder
from polygrad.renderer.emit import emit
from polygrad.runtime.program import Binding, Kernel, Launch, Program

_CACHES = (32 << 10, 1 << 20)  # of no processor in particular
_REGISTERS = {64: 32}  # by the width of vectors in bytes; 16 for others
_OF_TASKS = {THREAD: "(idx)number", PART: "(idx)number", THREADS: "task->count", PARTS: "task->count"}


@dataclass(frozen=True)
class Variant:
    """`width`: of vectors in bytes, 0 for scalar code. `programs`: of the entries, in order."""

    width: int
    target: Target
    programs: tuple[Retargeted, ...]

    @property
    def arena(self) -> int:
        """The bytes of scratch."""
        return max(r.program.arena for r in self.programs)


def variants_of(model: CModel) -> list[Variant]:
    """The variants of a model, scalar code first. Raises CaptureError as `retarget` does."""
    out = []
    for width in (0, *sorted(model.options.vectors)):
        target = Target(
            "C",
            width,
            _REGISTERS.get(width, 16),
            fma=width > 0,
            threads=model.options.threads,
            cache=_CACHES,
        )
        programs = tuple(retarget(entry.program, target, "c") for entry in model.entries)
        out.append(Variant(width, target, programs))
    return out


@dataclass
class _Text:
    """The functions of a variant: their declarations in order, and their texts by name."""

    declarations: dict[str, None] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)


def variant_text(model: CModel, variant: Variant) -> str:
    """The kernels of a variant and a function for each entry."""
    text = _Text()
    for retargeted in variant.programs:
        for kernel in retargeted.program.kernels:
            if kernel.name not in text.functions:
                linear = retargeted.linear[kernel.name]
                function: FunctionText = emit(
                    kernel.name, linear, PortableCBuilder(variant.target, kernel.writes)
                )
                text.declarations |= dict.fromkeys(function.preamble)
                text.functions[kernel.name] = function.text + (
                    _parallel_text(model, kernel, _kernel_dtypes(retargeted, kernel))
                    if kernel.parallel
                    else ""
                )
    entries = [
        _entry_text(model, entry, retargeted)
        for entry, retargeted in zip(model.entries, variant.programs, strict=True)
    ]
    return "\n".join([*text.declarations, "", *text.functions.values(), *entries])


def _kernel_dtypes(retargeted: Retargeted, kernel: Kernel) -> list[DType]:
    """The dtype of each pointer of a kernel."""
    return [n.dtype for n in parameters(retargeted.linear[kernel.name])]


def _pointer_type(dtype: DType, is_written: bool) -> str:
    return f"{'' if is_written else 'const '}{PortableCBuilder.memory_types[dtype]} *"


def _parallel_text(model: CModel, kernel: Kernel, dtypes: Sequence[DType]) -> str:
    """What divides a kernel among threads, as the function `NAME_parallel`."""
    pointers, _ = parameter_names(dtypes, [])
    types = [_pointer_type(d, i in kernel.writes) for i, d in enumerate(dtypes)]
    numbers = [v for v in kernel.variables if v not in THREAD_VARIABLES]
    _, all_names = parameter_names([], kernel.variables)
    names = dict(zip(kernel.variables, all_names, strict=True))
    fields = [f"{t}{p}" for t, p in zip(types, pointers, strict=True)]
    fields += [f"idx {names[v]}" for v in numbers]
    passed = [*pointers, *(names[v] for v in numbers)]
    given = [f"task->{p}" for p in pointers]
    given += [_OF_TASKS.get(v, f"task->{names[v]}") for v in kernel.variables]
    alone = [*pointers, *("0" if v in (THREAD, PART) else "1" if v in THREAD_VARIABLES else names[v]
                          for v in kernel.variables)]  # fmt: skip
    k = kernel.name
    return (
        f"struct {k}_task {{\n" + "".join(f"  {f};\n" for f in fields) + "  idx count;\n};\n\n"
        f"static void {k}_part(void *data, int number) {{\n"
        f"  const struct {k}_task *task = (const struct {k}_task *)data;\n"
        f"  {k}({', '.join(given)});\n}}\n\n"
        f"static void {k}_parallel({', '.join([f'const {model.name} *model', *fields])}) {{\n"
        f"  if (model->parallel_for && model->threads > 1) {{\n"
        f"    int count = model->threads < {model.macro}_THREADS ? model->threads : {model.macro}_THREADS;\n"
        f"    struct {k}_task task = {{{', '.join([*passed, 'count'])}}};\n"
        f"    model->parallel_for(model->context, count, {k}_part, &task);\n"
        f"  }} else {{\n    {k}({', '.join(alone)});\n  }}\n}}\n"
    )


def entry_arguments(entry: Entry) -> dict[str, str]:
    """The arguments of an entry besides the model, with their types."""
    arguments = {}
    if entry.inputs:
        arguments["inputs"] = f"const {entry.structs}_inputs *"
    if entry.outputs:
        arguments["outputs"] = f"const {entry.structs}_outputs *"
    return arguments | {v.name: "int64_t " for v in entry.variables}


def _entry_text(model: CModel, entry: Entry, retargeted: Retargeted) -> str:
    """The function that makes the launches of an entry."""
    program = retargeted.program
    lines = [_launch_text(model, entry, retargeted, launch) for launch in program.launches]
    body = "".join(f"  {line}\n" for line in lines)
    arguments = entry_arguments(entry)
    declared = [f"const {model.name} *model"]
    declared += [("idx " if t == "int64_t " else t) + name for name, t in arguments.items()]
    head = f"static void launch_{entry.function}({', '.join(declared)}) {{\n"
    scratch = "  unsigned char *scratch = (unsigned char *)model->scratch;\n"
    body = (scratch if "scratch + " in body else "") + body
    used = set(re.findall(r"\w+", body))
    unused = [name for name in ("model", *arguments) if name not in used]
    return head + "".join(f"  (void){name};\n" for name in unused) + body + "}\n"


def _launch_text(model: CModel, entry: Entry, retargeted: Retargeted, launch: Launch) -> str:
    program = retargeted.program
    kernel = program.kernels[launch.kernel]
    dtypes = _kernel_dtypes(retargeted, kernel)
    arguments = ["model"] if kernel.parallel else []
    for i, (binding, dtype) in enumerate(zip(launch.bindings, dtypes, strict=True)):
        arguments.append(_pointer_text(model, entry, program, binding, dtype, i in kernel.writes))
    numbers = {v.label: v.name for v in entry.variables}
    arguments += [numbers[v] for v in kernel.variables if v not in THREAD_VARIABLES]
    return f"{kernel.name}{'_parallel' if kernel.parallel else ''}({', '.join(arguments)});"


def _pointer_text(
    model: CModel, entry: Entry, program: Program, binding: Binding, dtype: DType, is_written: bool
) -> str:
    """The address that a launch gives to a kernel."""
    spec, t = program.buffers[binding.buffer], _pointer_type(dtype, is_written)
    void = "void *" if is_written else "const void *"
    if spec.role == "scratch":
        return f"({t})({void})(scratch + {spec.offset + binding.offset})"
    if spec.role in ("input", "output"):
        names: Mapping[str, str] = {m.label: m.name for m in entry.members(spec.role)}
        place = f"{spec.role}s->{names[spec.name]}"
    else:
        value = next(v for v in model.values if v.label == spec.name)
        place = f"model->{'state' if value.is_state else 'params'}.{value.name}"
    itemsize = to_dtype(spec.dtype).itemsize
    if binding.offset:
        if binding.offset % itemsize:
            return f"({t})({void})((const unsigned char *)({place}) + {binding.offset})"
        place = f"({place} + {binding.offset // itemsize})"
    return f"({t})({void}){place}"
