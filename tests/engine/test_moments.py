"""Ctrl-C between any two instructions of polygrad: afterwards locks are free, values are those from before or
after, and the next call is right."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from c_compiler import SLOW_CC
from moments import interrupt_at, sites
from works import WORK, Work, check_after, ready, search, trajectory

from polygrad.helpers import Context

pytestmark = pytest.mark.usefixtures("default_device")


def check(make: Callable[[], Work], most: int, seed: int, before: int) -> int:
    """Interrupt the step after `before` steps at some instructions; how often that was."""
    with Context(BEAM=int(make is search)):
        return _check(make, most, seed, before)


def _check(make: Callable[[], Work], most: int, seed: int, before: int) -> int:
    wanted, rng, count = trajectory(make, before + 3), random.Random(seed), 0
    places = sites(ready(make, before).act)
    for place in rng.sample(places, min(most, len(places))):
        work = ready(make, before)
        if interrupt_at(work.act, place):
            check_after(work, wanted, before)
            count += 1
    return count


@pytest.mark.parametrize("device", ["CPU", "WASM", "INTERP", SLOW_CC])
@pytest.mark.parametrize("make", WORK, ids=lambda w: w.__name__)
def test_after_ctrl_c_at_some_instructions_the_next_step_is_right(
    make: Callable[[], Work], device: str
) -> None:
    assert check(make, 40, seed=1, before=1) > 3


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("device", ["CPU", "WASM", "INTERP"])
@pytest.mark.parametrize("before", [0, 1, 2])
@pytest.mark.parametrize("make", WORK, ids=lambda w: w.__name__)
def test_after_ctrl_c_at_many_instructions_the_next_step_is_right(
    make: Callable[[], Work], before: int, device: str
) -> None:
    assert check(make, 300, seed=2, before=before) > 10
