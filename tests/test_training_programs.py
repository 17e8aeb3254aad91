"""Training programs mean what they mean in torch: 1,000 random ones, 2,000 longer ones in
`make test-all`, and as many as one wants by `make soak`."""

from __future__ import annotations

import pytest
from training_programs import run

COUNTS = {"INTERP": 400, "CPU": 300, "WASM": 300}
THOROUGH = {"INTERP": 1_000, "CPU": 500, "WASM": 500}


@pytest.mark.parametrize("device, first", [(d, i) for d, n in COUNTS.items() for i in range(0, n, 100)])
def test_training_programs_are_torchs_to_2e_3(device: str, first: int) -> None:
    for seed in range(first, first + 100):
        run(seed, device)


@pytest.mark.slow
@pytest.mark.parametrize("device, first", [(d, i) for d, n in THOROUGH.items() for i in range(0, n, 500)])
def test_many_training_programs_are_torchs_to_2e_3(device: str, first: int) -> None:
    for seed in range(10_000_000 + first, 10_000_000 + first + 500):
        run(seed, device, length=16)
