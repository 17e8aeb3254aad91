"""Training programs mean what they mean in torch: 2,000 random ones, 100,000 in `make test-all`."""

from __future__ import annotations

import pytest
from training_programs import run

COUNTS = {"INTERP": 1400, "CPU": 300, "WASM": 300}
THOROUGH = {"INTERP": 70_000, "CPU": 15_000, "WASM": 15_000}


@pytest.mark.parametrize("device, first", [(d, i) for d, n in COUNTS.items() for i in range(0, n, 100)])
def test_training_programs_are_torchs_to_2e_3(device: str, first: int) -> None:
    for seed in range(first, first + 100):
        run(seed, device)


@pytest.mark.slow
@pytest.mark.parametrize("device, first", [(d, i) for d, n in THOROUGH.items() for i in range(0, n, 2500)])
def test_many_training_programs_are_torchs_to_2e_3(device: str, first: int) -> None:
    for seed in range(10_000_000 + first, 10_000_000 + first + 2500):
        run(seed, device, length=16)
