"""State dictionaries and safetensors files."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import safetensors.numpy

from polygrad import Tensor, dtypes, nn
from polygrad.errors import ArgumentError, ShapeError
from polygrad.nn.state import (
    get_parameters,
    get_state_dict,
    load_state_dict,
    safe_load,
    safe_load_metadata,
    safe_save,
)


class Net:
    def __init__(self):
        self.first = nn.Linear(3, 2)
        self.rest = [nn.Linear(2, 2, bias=False), {"norm": nn.LayerNorm(2)}]
        self.itself = self
        self.name = "net"


def test_names_and_order():
    net = Net()
    assert list(get_state_dict(net)) == [
        "first.weight", "first.bias", "rest.0.weight", "rest.1.norm.weight", "rest.1.norm.bias",
    ]  # fmt: skip
    assert get_parameters(net)[1] is net.first.bias
    assert list(get_state_dict(net.first, "model")) == ["model.weight", "model.bias"]


@pytest.mark.parametrize("dtype", dtypes.all)
def test_safetensors_round_trip(dtype, tmp_path):
    path = tmp_path / "t.safetensors"
    t = {
        "a": Tensor([[0, 1], [1, 0]], dtype=dtype),
        "scalar": Tensor(1, dtype=dtype),
        "none": Tensor.zeros(0, 2, dtype=dtype),
    }
    safe_save(t, path, {"made": "here"})
    back = safe_load(path)
    assert {k: (v.dtype, v.shape) for k, v in back.items()} == {k: (v.dtype, v.shape) for k, v in t.items()}
    assert back["a"].tolist() == t["a"].tolist() and back["scalar"].item() == 1
    assert safe_load_metadata(path)[1]["__metadata__"] == {"made": "here"}
    if dtype != "bfloat16":
        np.testing.assert_array_equal(safetensors.numpy.load_file(path)["a"], t["a"].numpy())


def test_reads_what_safetensors_writes():
    arrays = {"x": np.arange(6, dtype=np.float16).reshape(2, 3), "y": np.array([True, False])}
    back = safe_load(safetensors.numpy.save(arrays))
    for k, v in arrays.items():
        np.testing.assert_array_equal(back[k].numpy(), v)


def test_damaged_files_are_refused():
    good = safe_save({"a": Tensor([1.0, 2.0])})
    for bad in (
        b"",
        good[:6],
        good[:20],
        good[:-1],
        struct.pack("<Q", 2) + b"[]",
        struct.pack("<Q", 4) + b"{{{{",
    ):
        with pytest.raises(ArgumentError):
            safe_load(bad)


def test_load_state_dict_copies_converts_and_checks():
    net, other = Net(), Net()
    state = {k: v.half() for k, v in get_state_dict(other).items()}
    loaded = load_state_dict(net, state)
    assert len(loaded) == 5 and net.first.weight.dtype == "float32"
    np.testing.assert_allclose(net.first.weight.numpy(), other.first.weight.numpy(), rtol=1e-3)
    net.first.weight.assign(net.first.weight * 0).realize()
    assert state["first.weight"].numpy().any()
    with pytest.raises(ArgumentError, match="missing"):
        load_state_dict(net, {})
    with pytest.raises(ArgumentError, match="unknown"):
        load_state_dict(net, {**state, "more": Tensor([1.0])})
    with pytest.raises(ShapeError, match=r"first\.bias"):
        load_state_dict(net, {"first.bias": Tensor([1.0])}, strict=False)
    assert load_state_dict(net, {}, strict=False) == []
