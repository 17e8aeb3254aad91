"""Random programs of views, reads and writes do what the model of tests/write_programs.py says: 200 on each
device, and as many as one wants by `make soak`."""

from __future__ import annotations

import pytest
from write_programs import check_captured, check_eager, picker

BATCHES = 10
COUNT = 200


@pytest.mark.parametrize("batch", range(BATCHES))
def test_every_step_as_it_comes(device, batch):
    for seed in range(batch, COUNT * 6 // 10, BATCHES):
        check_eager(picker(seed), 4 + seed % 13, device)


@pytest.mark.parametrize("how", ["jit", "step"])
@pytest.mark.parametrize("batch", range(BATCHES // 2))
def test_captured(device, batch, how):
    for seed in range(batch, COUNT * 2 // 10, BATCHES // 2):
        check_captured(picker(seed), 4 + seed % 9, device, how)
