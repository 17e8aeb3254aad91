"""Random programs by suite and seed: functions that run the programs of a seed, and return what failed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import training_programs
import write_programs
from tensor.state_programs import Program as StateProgram

from soak.judge import Truth, truth
from soak.program import Program, generate
from soak.reduce import reduced
from soak.ways import WAYS, check

SEEDS = 10  # of a unit of work


@dataclass(frozen=True)
class Failure:
    """`program`: its JSON; empty for suites whose programs follow from the seed alone."""

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


def _others(suite: str, seed: int, devices: tuple[str, ...]) -> list[Failure]:
    device = devices[seed % len(devices)]
    runs: dict[str, Callable[[], None]] = {
        "states": lambda: StateProgram(random.Random(seed).randrange, bool(seed % 2)).run(12),
        "training": lambda: training_programs.run(seed, device),
        "writes": lambda: write_programs.check_eager(write_programs.picker(seed), 12, device),
        "captured writes": lambda: write_programs.check_captured(
            write_programs.picker(seed), 8, device, ("jit", "step")[seed % 2]
        ),
    }
    try:
        runs[suite]()
    except Exception as e:
        return [Failure(suite, seed, device if suite != "states" else "CPU", "", message_of(e))]
    return []


def run_seed(seed: int, devices: tuple[str, ...], features: set[str]) -> list[Failure]:
    """The programs of a seed, of all suites."""
    failures = operations(seed, devices, features)
    for suite in ("states", "training", "writes", "captured writes"):
        failures += _others(suite, seed, devices)
    return failures


def run_seeds(first: int, devices: tuple[str, ...]) -> Report:
    """The programs of SEEDS seeds: which features they have, and what failed."""
    features: set[str] = set()
    failures = [f for seed in range(first, first + SEEDS) for f in run_seed(seed, devices, features)]
    return features, failures
