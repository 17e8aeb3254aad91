"""State dictionaries and safetensors files."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from damaged import check_refused

from polygrad import Tensor, dtypes, nn
from polygrad.errors import ArgumentError, ShapeError
from polygrad.nn.state import (
    get_parameters,
    get_state_dict,
    load_state_dict,
    safe_load,
    safe_load_metadata,
    safe_save,
    safe_save_sharded,
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


def shards(tmp_path, size=64):
    tensors = {f"t{i}": Tensor.arange(i * 10, i * 10 + 10) for i in range(5)}
    return tensors, safe_save_sharded(tensors, tmp_path / "model", size)


@pytest.mark.parametrize(("size", "files"), [(1, 5), (40, 5), (80, 3), (1000, 1)])
def test_shards_and_their_index(tmp_path, size, files):
    tensors, path = shards(tmp_path, size)
    names = sorted(p.name for p in (tmp_path / "model").glob("*.safetensors"))
    assert len(names) == files and names[0] == f"model-00001-of-{files:05}.safetensors"
    index = json.loads(Path(path).read_text())
    assert index["metadata"] == {"total_size": 200} and list(index["weight_map"]) == list(tensors)
    assert {k: v.tolist() for k, v in safe_load(path).items()} == {k: v.tolist() for k, v in tensors.items()}
    for name, file in index["weight_map"].items():  # as the format's own library reads them
        found = safetensors.numpy.load_file(tmp_path / "model" / file)
        np.testing.assert_array_equal(found[name], tensors[name].numpy())


def test_damaged_indexes_are_refused(tmp_path):
    _, path = shards(tmp_path)
    index = json.loads(Path(path).read_text())
    for bad in (
        {"weight_map": {"t0": "../model/model-00001-of-00005.safetensors"}},
        {"weight_map": {"t0": "/etc/passwd"}},
        {"weight_map": {"t0": "nowhere.safetensors"}},
        {"weight_map": {"t9": index["weight_map"]["t0"]}},
        {"weight_map": {"t0": 3}},
        {"weight_map": []},
        {},
        [],
    ):
        Path(path).write_text(json.dumps(bad))
        with pytest.raises(
            ArgumentError, match=r"expected|has no weight_map|leads out of|instead of a JSON object"
        ):
            safe_load(path)
    with pytest.raises(ArgumentError, match="max_shard_size"):
        safe_save_sharded({}, tmp_path, 0)


def safetensors_file(header, data=b"\0" * 8):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def entry(dtype="F32", shape=(2,), lo=0, hi=8, **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": [lo, hi], **more}


HEADERS = {
    "deep": b"[" * 100_000,
    "deep_object": b'{"a":' * 100_000,
    "twice": b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"a":{}}',
    "overlap": {"a": entry(), "b": entry()},
    "hole": {"a": entry(shape=(1,), lo=4)},
    "tail": {"a": entry(shape=(1,), hi=4)},
    "negative": {"a": entry(shape=(-2, -1))},
    "negative_offset": {"a": entry(lo=-8, hi=0)},
    "backwards": {"a": entry(lo=8, hi=0)},
    "floats": {"a": entry(shape=(2.0,))},
    "bools": {"a": entry(shape=(True, 2))},
    "text": {"a": entry(shape="2")},
    "offsets_of_text": {"a": entry(lo="0")},
    "huge": {"a": entry(shape=(1 << 61, 1 << 61))},
    "huge_number": {"a": entry(shape=(10**400,))},
    "axes": {"a": entry(shape=(1,) * 99 + (2,))},
    "dtype": {"a": entry("F4")},
    "dtype_of_a_list": {"a": entry([])},
    "no_offsets": {"a": {"dtype": "F32", "shape": [2]}},
    "three_offsets": {"a": {**entry(), "data_offsets": [0, 4, 8]}},
    "entry_of_text": {"a": "F32"},
}


@pytest.mark.parametrize("name", HEADERS)
def test_malformed_headers_are_refused(name):
    check_refused("safetensors", name, lambda: safe_load(safetensors_file(HEADERS[name])))


def test_changed_bytes_are_read_or_refused():
    whole = safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([[1], [2]])}, metadata={"k": "v"})
    rng, refused = random.Random(0), 0
    for _ in range(1000):
        bad = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            bad[rng.randrange(len(bad))] = rng.getrandbits(8)
        if rng.random() < 0.2:
            del bad[rng.randrange(len(bad)) :]
        try:
            safe_load(bytes(bad))
        except ArgumentError:
            refused += 1
    assert refused > 300


def test_files_that_are_not_there_are_refused(tmp_path):
    for bad in (tmp_path / "nowhere", tmp_path, 3):
        with pytest.raises(ArgumentError, match="safe_load: expected"):
            safe_load(bad)
