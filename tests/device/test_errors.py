"""Errors are typed, say what was expected and what came, and leave the device as it was."""

from __future__ import annotations

import pytest

from polygrad import Tensor
from polygrad.engine.devices import Device
from polygrad.errors import (
    ArgumentError,
    AxisError,
    DeviceError,
    DTypeError,
    GradientError,
    OutOfMemoryError,
    OverflowError_,
    PolygradError,
    ShapeError,
)


@pytest.fixture(autouse=True)
def _usable_afterwards(device):
    yield
    assert (Tensor([1.0, 2.0, 3.0], device=device) * 2).sum().item() == 12.0


def t(device, *shape):
    return Tensor.ones(*shape, device=device)


CASES = [
    (lambda d: t(d, 2, 3) + t(d, 2, 4), ShapeError, r"\(2, 3\).*\(2, 4\)"),
    (lambda d: t(d, 2, 3) @ t(d, 4, 5), ShapeError, r"\(2, 3\).*\(4, 5\)"),
    (lambda d: t(d, 2, 3).reshape(7), ShapeError, "7"),
    (lambda d: t(d, 2, 3).expand(2, 5), ShapeError, "5"),
    (lambda d: t(d, 2, 3).permute(0, 0), PolygradError, "permute"),
    (lambda d: t(d, 2, 3).shrink(((0, 3), (0, 1))), PolygradError, "shrink"),
    (lambda d: t(d, 2, 3).sum(axis=2), AxisError, "2"),
    (lambda d: t(d, 2, 3).flip(-3), AxisError, "-3"),
    (lambda d: t(d, 3)[5], PolygradError, "5"),
    (lambda d: t(d, 3).cast("float31"), DTypeError, "float31"),
    (lambda d: t(d, 3) & 1, DTypeError, "float32"),
    (lambda d: Tensor([300], device=d, dtype="uint8"), OverflowError_, "300"),
    (lambda d: Tensor([0, 255, 256], device=d, dtype="uint8"), OverflowError_, "got 256"),
    (lambda d: Tensor([127, -128, -129], device=d, dtype="int8"), OverflowError_, "got -129"),
    (lambda d: Tensor([1], device=d, dtype="int8") + 128, OverflowError_, "128"),
    (lambda d: Tensor([[1, 2], [3]], device=d), ShapeError, "expected 2"),
    (lambda d: Tensor(["a"], device=d), DTypeError, "str"),
    (lambda d: t(d, 2).backward(), GradientError, "scalar"),
    (lambda d: t(d, 2).item(), ShapeError, "one element"),
    (lambda d: t(d, 2).to("QUANTUM"), DeviceError, "CPU, .*INTERP"),
    (lambda d: Tensor([1.0], device="quantum"), DeviceError, "expected one of"),
    (lambda d: Tensor.rand(3, device=d, dtype="int32"), DTypeError, "randint"),
    (lambda d: Tensor.randint(3, low=5, high=5, device=d), ArgumentError, "low < high"),
]


@pytest.mark.parametrize("case", range(len(CASES)))
def test_wrong_arguments(device, case):
    call, error, text = CASES[case]
    with pytest.raises(error, match=text) as caught:
        call(device)
    assert not str(caught.value).startswith("internal:")


def test_memory_that_is_not_there(device):
    keep = t(device, 1000).contiguous().realize()
    with pytest.raises(OutOfMemoryError) as caught:
        Device[device].allocate(1 << 62)
    assert str(1 << 62) in str(caught.value)
    with pytest.raises(OutOfMemoryError):
        Tensor.full((1 << 20, 1 << 20, 1 << 10), 1.0, device=device).contiguous().realize()
    assert keep.sum().item() == 1000.0


def test_an_error_while_running_leaves_lazy_values_computable(device):
    x = Tensor([1.0, 2.0], device=device)
    y = x + 1
    huge = (y.sum().reshape(1, 1).expand(1 << 30, 1 << 30) + 1).contiguous()
    with pytest.raises(OutOfMemoryError):
        y.realize(huge)
    assert y.tolist() == [2.0, 3.0]
