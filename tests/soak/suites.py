"""Random programs by suite and seed: functions that run the programs of a seed, and return what failed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import training_programs
import write_programs
from tensor.state_programs import Program as StateProgram

from polygrad import Device
from soak.judge import Truth, truth
from soak.program import Program, generate
from soak.reduce import reduced
from soak.ways import WAYS, check

SEEDS = 10  # of a unit of work


@dataclass(frozen=True)
class Failure:
    """`program`: its JSON; empty where it follows from the seed alone (`BY_SEED`), and `way` is the suite."""

    suite: str
    seed: int
    device: str
    way: str
    message: str
    program: str = ""


Report = tuple[set[str], list[Failure]]


def message_of(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:4000]


def truth_of(p: Program) -> Truth | None:
    """None for a program that torch refuses."""
    try:
        return truth(p)
    except (RuntimeError, IndexError, ValueError):
        return None


def failure(p: Program, way: str, device: str) -> str:
    """How a program fails; empty when it does not."""
    judged = truth_of(p)
    try:
        if judged is not None:
            check(p, way, device, judged)
    except Exception as e:
        return message_of(e)
    return ""


def operations(seed: int, devices: tuple[str, ...], features: set[str]) -> list[Failure]:
    """A program of this package: on the first device in all ways, on others in one each."""
    p = generate(seed)
    judged = truth_of(p)
    if judged is None:
        return []
    features |= p.features
    failures = []
    ways = list(WAYS)
    runs = [(devices[0], w) for w in ways] + [
        (d, ways[(seed + i) % len(ways)]) for i, d in enumerate(devices[1:])
    ]
    for device, way in runs:
        try:
            check(p, way, device, judged)
        except Exception as e:
            small, message = reduced(p, message_of(e), partial(failure, way=way, device=device))
            failures.append(Failure("operations", seed, device, way, message, small.dumps()))
    return failures


def _states(seed: int, device: str) -> None:
    before, Device.DEFAULT = Device.DEFAULT, device
    try:
        StateProgram(random.Random(seed).randrange, exact=bool(seed % 2)).run(12)
    finally:
        Device.DEFAULT = before


def _writes(seed: int, device: str) -> None:
    write_programs.check_eager(write_programs.picker(seed), 12, device)


def _captured_writes(seed: int, device: str) -> None:
    write_programs.check_captured(write_programs.picker(seed), 8, device, ("jit", "step")[seed % 2])


# Programs that follow from a seed alone. Each function raises an error for one that is wrong.
BY_SEED: dict[str, Callable[[int, str], None]] = {
    "states": _states,
    "training": training_programs.run,
    "writes": _writes,
    "captured-writes": _captured_writes,
}


def again(f: Failure) -> str:
    """Run a program that failed again: how it fails; empty when it does not."""
    if f.program:
        return failure(Program.loads(f.program), f.way, f.device)
    try:
        BY_SEED[f.suite](f.seed, f.device)
    except Exception as e:
        return message_of(e)
    return ""


def run_seed(seed: int, devices: tuple[str, ...], features: set[str]) -> list[Failure]:
    """The programs of a seed, of all suites; `features` gets those of the programs."""
    failures = operations(seed, devices, features)
    device = devices[seed % len(devices)]
    for suite in BY_SEED:
        f = Failure(suite, seed, device, suite, "")
        if message := again(f):
            failures.append(replace(f, message=message))
    return failures


def run_seeds(first: int, devices: tuple[str, ...]) -> Report:
    """The programs of SEEDS seeds: which features they have, and what failed."""
    features: set[str] = set()
    failures = [f for seed in range(first, first + SEEDS) for f in run_seed(seed, devices, features)]
    return features, failures
