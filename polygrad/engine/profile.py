"""Profiles: the kernels that a computation launches, and their times.

    result = profile(lambda: step.run(x, y), seconds=0.2)
    print(result)                              a table of its kernels, the longest first
    for launch in result.launches:
        print(launch.origin.kernel.name, launch.seconds)

While a profile is taken, a Program runs launch by launch, each launch a Program of its own on the same
buffers, in the same order. So each call has its usual results, and a training step can be profiled as it
trains. The driver of a captured step, which makes all launches in one call, is used for the total time only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from polygrad.engine.compile import Origin, origin_of
from polygrad.engine.devices import Device
from polygrad.engine.explain import work
from polygrad.engine.recording import watch
from polygrad.engine.report import count_of, html_table_of, table_of, time_of
from polygrad.errors import ArgumentError, CaptureError
from polygrad.monitor import exclusive
from polygrad.runtime.interface import Executable, Handle
from polygrad.runtime.program import BufferSpec, Launch, Program
from polygrad.uop.origins import Place

_HEAD = ("kernel", "device", "launches", "time", "share", "operations", "memory")
_UNITS = ("FLOP/s", "B/s")
_MAX_WARM_CALLS = 8  # a captured function is captured in the second
_ADVICE = "capture it (TinyJit, compile_step)"


@dataclass(frozen=True, slots=True)
class ProfiledLaunch:
    """One launch of a computation. `origin`: its kernel and that kernel's AST. `program`: the launch alone,
    with all buffers of its Program.

    `seconds`: the mean over all rounds. It is the device's time if the device measures it (CUDA, METAL,
    WEBGPU), else it includes the call from Python.
    """

    origin: Origin
    program: Program
    seconds: float

    @property
    def buffers(self) -> tuple[BufferSpec, ...]:
        """Its buffers, in the order of the kernel's pointers; the first one is written."""
        return tuple(self.program.buffers[b.buffer] for b in self.program.launches[0].bindings)

    @property
    def places(self) -> tuple[Place, ...]:
        """The lines of the program that made what it computes, that of its result first; none unless
        `recorded_origins` recorded them."""
        return self.program.launches[0].places


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """The launches of one call of a computation, in order. Printed, it is a table of the kernels, the slowest
    first.

    `rounds`: the number of timed calls. `seconds`: the mean time of a call outside of a profile, with the
    time in Python.
    """

    launches: tuple[ProfiledLaunch, ...]
    rounds: int
    seconds: float

    def __str__(self) -> str:
        return f"{self._headline}\n{table_of(_HEAD, self._rows(), left=2)}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<p>{self._headline}</p>{html_table_of(_HEAD, self._rows(), left=2)}"

    @property
    def _headline(self) -> str:
        """The totals in words."""
        total = sum(launch.seconds for launch in self.launches)
        what = f"{len(self.launches)} launches" if len(self.launches) != 1 else "1 launch"
        whole = f"{time_of(self.seconds)} a call (mean of {self.rounds} calls)"
        return f"{what}, {time_of(total)} in kernels, {whole}"

    def _rows(self) -> list[list[str]]:
        """A row for each kernel, with the sum of its launches."""
        total = sum(launch.seconds for launch in self.launches) or 1.0
        kernels: dict[tuple[str, str], list[ProfiledLaunch]] = {}
        for launch in self.launches:
            kernels.setdefault((launch.origin.kernel.name, launch.program.device), []).append(launch)
        seconds = {key: sum(launch.seconds for launch in launches) for key, launches in kernels.items()}
        rows = []
        for key in sorted(kernels, key=lambda key: -seconds[key]):
            launches, spent = kernels[key], seconds[key] or 1e-9
            todo = work(launches[0].origin)
            rates = [
                count_of(todo.flops * len(launches) / spent),
                count_of(todo.nbytes * len(launches) / spent),
            ]
            share = f"{100 * seconds[key] / total:.1f} %"
            rows.append(
                [
                    *key,
                    f"{len(launches)}",
                    time_of(seconds[key]),
                    share,
                    *[f"{r}{u}" for r, u in zip(rates, _UNITS)],
                ]
            )
        return rows


@dataclass(frozen=True, slots=True)
class _Part:
    """One launch of a Program as a Program of its own."""

    program: Program
    executable: Executable
    origin: Origin


@dataclass(slots=True)
class _ProfilingRunner:
    """Runs Programs launch by launch while it is `watch.runner`. `timed`: each launch and its seconds."""

    timed: list[tuple[_Part, float]] = field(default_factory=list)
    _parts: dict[int, tuple[Program, list[_Part]]] = field(default_factory=dict)  # by identity: code is long

    def round(self, compute: Callable[[], object]) -> list[tuple[_Part, float]]:
        """The launches of one call of `compute`."""
        self.timed = []
        watch.runner = self.run
        try:
            compute()
        finally:
            watch.runner = None
        return self.timed

    def run(
        self,
        program: Program,
        buffers: Sequence[Handle | None],
        arena: Handle | None,
        variables: Mapping[str, int],
    ) -> None:
        if id(program) not in self._parts:
            self._parts[id(program)] = program, [_part(program, launch) for launch in program.launches]
        for part in self._parts[id(program)][1]:
            self.timed.append((part, part.executable.measure(buffers, arena, variables)))


@exclusive
def profile(compute: Callable[[], object], seconds: float = 0.1) -> Profile:
    """Call `compute` again and again for some `seconds`; its launches, and the mean time of each.

    It is first called until it launches the same kernels twice in a row, so a `TinyJit` is captured by then.
    A value that is lazy in the first call is computed in it, and launches nothing in the second: capture the
    function that computes it.

    Raises ArgumentError when calls launch different kernels, and CaptureError inside of a captured function
    or of another profile, or for a kernel that this process does not have in memory.
    """
    watch.forbid("a profile", "profile calls of the captured function")
    if watch.runner is not None:
        raise CaptureError("profile: another profile is active: expected no profile inside of another")
    runner = _ProfilingRunner()
    names = _call_until_settled(runner, compute)
    rounds, sums = 0, [0.0] * len(names)
    timed: list[tuple[_Part, float]] = []
    end = time.perf_counter() + seconds
    while rounds == 0 or time.perf_counter() < end:
        timed = runner.round(compute)
        if _names(timed) != names:
            raise ArgumentError(
                f"profile: a call launched the kernels {_names(timed)}, others {names}: {_ADVICE}"
            )
        sums = [total + spent for total, (_, spent) in zip(sums, timed, strict=True)]
        rounds += 1
    compute()  # warms up the driver, which has not run for a while
    started = time.perf_counter()
    for _ in range(rounds):
        compute()
    whole = (time.perf_counter() - started) / rounds
    launches = (
        ProfiledLaunch(part.origin, part.program, total / rounds)
        for (part, _), total in zip(timed, sums, strict=True)
    )
    return Profile(tuple(launches), rounds, whole)


def _call_until_settled(runner: _ProfilingRunner, compute: Callable[[], object]) -> list[str]:
    """The names of the kernels that a call launches, once two calls in a row launch the same."""
    last: list[str] | None = None
    for _ in range(_MAX_WARM_CALLS):
        names = _names(runner.round(compute))
        if names == last:
            return names
        last = names
    raise ArgumentError(
        f"profile: each of {_MAX_WARM_CALLS} calls launched other kernels than the call before: {_ADVICE}"
    )


def _names(timed: list[tuple[_Part, float]]) -> list[str]:
    return [part.origin.kernel.name for part, _ in timed]


def _part(program: Program, launch: Launch) -> _Part:
    name = program.kernels[launch.kernel].name
    origin = origin_of(name, program.device)
    if origin is None:
        raise CaptureError(
            f"profile: kernel {name} is not in this process's memory any more: capture the function again"
        )
    alone = replace(
        program, kernels=(origin.kernel,), launches=(replace(launch, kernel=0, barrier=False),), driver=b""
    )
    return _Part(alone, Device[program.device].load(alone), origin)
