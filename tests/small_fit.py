"""Twelve steps of `fit`, for programs that run it in other processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from polygrad import Tensor, nn
from polygrad.training import fit


def fit_some(**options: Any) -> nn.data.History:
    Tensor.manual_seed(7)
    model = nn.Linear(5, 3)
    random = np.random.default_rng(0)
    x = random.standard_normal((44, 5)).astype(np.float32)
    y = (x[:, 0] > x[:, 1]).astype(np.int32) + (x[:, 2] > 1)
    return fit(model, (x, y), loss="cross_entropy", epochs=4, batch_size=16, progress=False, **options)
