"""What torch or numpy refuses is refused here by a typed error that names the argument, what was expected and
what came, and the next call works."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tensor.tables.refusals import REFUSALS
from tensor.tables.running import NAMES

from polygrad import Tensor
from polygrad.errors import PolygradError

pytestmark = pytest.mark.usefixtures("default_device")
OPERANDS: dict[str, Any] = {
    "x": np.ones((2, 3), np.float32), "v": np.ones(3, np.float32), "m": np.ones((3, 3), np.float32),
    "c": np.ones((1, 2, 5, 5), np.float32), "w": np.ones((3, 2, 3, 3), np.float32),
    "i": np.ones((2, 3), np.int64), "j": np.ones(3, np.int64), "b": np.ones((2, 3), bool),
    "s": np.float32(1.0),
}  # fmt: skip


def computed(expression: str, make: Any) -> None:
    """Evaluates it to its elements: what is lazy is refused when it is called, or when it is computed."""
    found = eval(expression, {**NAMES, "numpy": np, **{name: make(x) for name, x in OPERANDS.items()}})
    for t in found if isinstance(found, (tuple, list)) else [found]:
        if hasattr(t, "numpy"):
            t.numpy()


def test_there_are_150_refusals_and_each_is_another() -> None:
    assert len({ours for ours, _ in REFUSALS}) == len(REFUSALS) >= 150


@pytest.mark.parametrize(("ours", "theirs"), REFUSALS, ids=[ours for ours, _ in REFUSALS])
def test_it_is_refused(ours: str, theirs: str) -> None:
    with pytest.raises(Exception):  # noqa: B017 - torch's and numpy's errors are of many types
        computed(theirs or ours, torch.tensor)
    with pytest.raises(PolygradError) as caught:
        computed(ours, Tensor)
    text = str(caught.value)
    subject, _, rest = text.partition(": ")
    assert subject and not text.startswith("internal:")
    assert "expected" in rest and "got" in rest, text
    assert (Tensor([1.0, 2.0, 3.0]) * 2).sum().item() == 12.0
