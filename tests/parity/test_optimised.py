"""Optimised and unoptimised kernels compute the same, for the recorded cases and the comparison programs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import polygrad
import polygrad.nn
from polygrad.engine.devices import Device
from tests.parity.compare import load_cases, outputs_of
from tests.parity.counts import differences
from tests.parity.measure import Measured, measure, optimisation, output_of
from tests.parity.programs import PROGRAMS

TOLERANCE = 2e-5  # sums are added up in another order
CASES = load_cases()


@pytest.fixture(params=["CPU", "WASM"], autouse=True)
def default_device(request: pytest.FixtureRequest) -> Iterator[None]:
    before, Device.DEFAULT = Device.DEFAULT, request.param
    yield
    Device.DEFAULT = before


def recorded(name: str) -> Measured:
    return Measured(name, 0, [output_of(t) for t in outputs_of(CASES[name])])


@pytest.mark.parametrize("name", CASES)
def test_recorded_case_optimised_and_not_within_2e_5_of_the_greatest(name: str) -> None:
    with optimisation(True):
        optimised = recorded(name)
    with optimisation(False):
        assert not list(differences(optimised, recorded(name), TOLERANCE))


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_optimised_and_not_within_2e_5_of_the_greatest(name: str) -> None:
    with optimisation(True):
        optimised = measure(polygrad, name)
    with optimisation(False):
        assert not list(differences(optimised, measure(polygrad, name), TOLERANCE))
