"""From compiled kernels, buffers and calls to a Program. No other module puts one together.

A buffer is known by a key, anything hashable, and its spec. A call names its kernel, the key and byte offset
of each of the kernel's pointers, and its grid. Buffers are numbered in the order that they are given in.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polygrad.dtype import to_dtype
from polygrad.engine.barriers import place_barriers
from polygrad.engine.devices import Device
from polygrad.runtime.grid import Grid
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program, Variable
from polygrad.schedule.memory import Lifetime, lower_bound, plan
from polygrad.uop.origins import Place


@dataclass(frozen=True, slots=True)
class Call:
    """One launch of `kernel`. `pointers`: the key of the buffer and the byte offset of each pointer.
    `places`: see `Launch`."""

    kernel: Kernel
    pointers: tuple[tuple[Hashable, int], ...]
    grid: Grid | None = None
    places: tuple[Place, ...] = field(default=(), compare=False)

    @property
    def used(self) -> list[Hashable]:
        """The buffers that it reads or writes."""
        return [key for key, _ in self.pointers]

    @property
    def written(self) -> list[Hashable]:
        """The buffers that it writes."""
        return [self.pointers[i][0] for i in self.kernel.writes]


@dataclass(frozen=True, slots=True)
class Arena:
    """The byte offset of each scratch buffer, in an arena of `nbytes`. No arena can be smaller than
    `lower_bound` bytes."""

    offsets: dict[Hashable, int] = field(default_factory=dict)
    nbytes: int = 0
    lower_bound: int = 0


@dataclass(frozen=True, slots=True)
class Compiled:
    """The Program of a graph and where its results are: the SINK's source i lies in buffer `outputs[i]`, the
    first buffers are the slots. `arena_lower_bound`: see `Arena`."""

    program: Program
    outputs: tuple[int, ...]
    arena_lower_bound: int = 0


def plan_arena(
    device: str, buffers: Mapping[Hashable, BufferSpec], used: Sequence[Iterable[Hashable]]
) -> Arena:
    """An arena for the scratch among `buffers`, each of which is in use from the first step that uses it to
    the last one. `used`: what each step uses, which may be memory of other devices."""
    first: dict[Hashable, int] = {}
    last: dict[Hashable, int] = {}
    for step, keys in enumerate(used):
        for key in keys:
            first.setdefault(key, step)
            last[key] = step
    scratch = {key: spec for key, spec in buffers.items() if spec.role == "scratch"}
    lifetimes = [
        Lifetime(spec.size * to_dtype(spec.dtype).itemsize, first[key], last[key])
        for key, spec in scratch.items()
    ]
    offsets, nbytes = plan(lifetimes, Device.backend(device).target.alignment)
    return Arena(dict(zip(scratch, offsets, strict=True)), nbytes, lower_bound(lifetimes))


def assemble(
    device: str,
    buffers: Mapping[Hashable, BufferSpec],
    calls: Sequence[Call],
    arena: Arena | None = None,
    variables: Iterable[Variable] = (),
) -> Program:
    """The Program that makes `calls` on `device`, with equal kernels shared and barriers placed.

    `buffers`: by their keys, in order; scratch without its place, which `arena` has.
    """
    backend = Device.backend(device)
    arena = arena or Arena()
    number = {key: i for i, key in enumerate(buffers)}
    specs = [replace(spec, offset=arena.offsets.get(key, -1)) for key, spec in buffers.items()]
    kernels = list(dict.fromkeys(call.kernel for call in calls))
    kernel_number = {kernel: i for i, kernel in enumerate(kernels)}
    launches = [
        Launch(
            kernel_number[call.kernel],
            tuple(Binding(number[key], offset) for key, offset in call.pointers),
            call.grid,
            places=call.places,
        )
        for call in calls
    ]
    program = Program(
        device,
        backend.target.key,
        tuple(specs),
        tuple(kernels),
        tuple(launches),
        tuple(variables),
        arena.nbytes,
        threads=backend.target.threads if any(kernel.parallel for kernel in kernels) else 1,
        shared_memory=backend.shared_memory,
    )
    return place_barriers(program)
