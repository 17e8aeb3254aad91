"""`retarget`: the kernels of a captured Program lowered anew, from their ASTs, for another Target.

The new Program makes the same launches of kernels without code, on the same buffers. The new kernels have
other loops, and other memory of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from polygrad.codegen.lower.passes import LoweringContext, lower
from polygrad.codegen.target import Target
from polygrad.dtype import to_dtype
from polygrad.engine.compile import origin_of
from polygrad.engine.compiled_kernels import KernelArtefact, describe_kernel
from polygrad.errors import CaptureError, InternalError
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program
from polygrad.schedule.memory import Lifetime, plan
from polygrad.uop.node import UOp


@dataclass(frozen=True)
class Retargeted:
    """`program`: of kernels without code, for one thread. `linear`: each kernel's linear form, by its
    name."""

    program: Program
    linear: Mapping[str, list[UOp]]


@dataclass(frozen=True, slots=True)
class _NewKernel:
    """`slots`: the PARAMs of the AST that the pointers of the old kernel are for."""

    slots: tuple[int, ...]
    artefact: KernelArtefact


def retarget(program: Program, target: Target, language: str) -> Retargeted:
    """`program`, which a device of this process was given, for `target`. `language`: of the new kernels.

    Raises CaptureError when the caches no longer have the AST of a kernel.
    """
    context = LoweringContext(target)
    kernels: list[_NewKernel] = []
    linear: dict[str, list[UOp]] = {}
    for old in program.kernels:
        origin = origin_of(old.name, program.device)
        if origin is None:
            raise CaptureError(
                f"save: kernel {old.name}: expected what it was made of, which is no longer in the caches of "
                "kernels: capture the step in a new process, and save it right after that"
            )
        code = lower(origin.ast, target)
        artefact = describe_kernel(code, context, language)
        kernels.append(_NewKernel(origin.slots, artefact))
        linear[artefact.kernel.name] = code
    buffers, launches = list(program.buffers), []
    for launch in program.launches:
        launches.append(_launch(launch, kernels[launch.kernel], buffers))
    distinct = list(dict.fromkeys(k.artefact.kernel for k in kernels))
    number = {kernel: i for i, kernel in enumerate(distinct)}
    launches = [replace(x, kernel=number[kernels[x.kernel].artefact.kernel]) for x in launches]
    return Retargeted(_planned(program, target, buffers, distinct, launches), linear)


def _launch(launch: Launch, kernel: _NewKernel, buffers: list[BufferSpec]) -> Launch:
    """The launch of a new kernel, whose own memory joins `buffers`."""
    bound = dict(zip(kernel.slots, launch.bindings))
    missing = [slot for slot in kernel.artefact.slots if slot not in bound]
    if missing:
        raise InternalError(f"retarget: {kernel.artefact.kernel.name} needs the dropped PARAMs {missing}")
    bindings = [bound[slot] for slot in kernel.artefact.slots]
    for nbytes in kernel.artefact.local:
        bindings.append(Binding(len(buffers)))
        buffers.append(BufferSpec(nbytes, "uint8", "scratch"))
    return Launch(launch.kernel, tuple(bindings))


def _planned(
    program: Program, target: Target, buffers: list[BufferSpec], kernels: list[Kernel], launches: list[Launch]
) -> Program:
    """The Program with a new arena. Scratch that is not used any more has no size."""
    lifetimes: dict[int, Lifetime] = {}
    for i, launch in enumerate(launches):
        for number in {b.buffer for b in launch.bindings if buffers[b.buffer].role == "scratch"}:
            spec = buffers[number]
            first = lifetimes[number].first if number in lifetimes else i
            lifetimes[number] = Lifetime(spec.size * to_dtype(spec.dtype).itemsize, first, i)
    offsets, arena = plan(list(lifetimes.values()), target.alignment)
    places = dict(zip(lifetimes, offsets, strict=True))
    for i, spec in enumerate(buffers):
        if spec.role == "scratch":
            buffers[i] = replace(spec, size=spec.size if i in places else 0, offset=places.get(i, 0))
    threads = target.threads if any(kernel.parallel for kernel in kernels) else 1
    return replace(
        program,
        target=target.key,
        buffers=tuple(buffers),
        kernels=tuple(kernels),
        launches=tuple(launches),
        arena=arena,
        driver=b"",
        threads=threads,
        shared_memory=False,
    )
