"""torch_load: what torch.save writes, in both formats; pickles that are damaged, hostile or no state."""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
import torch
from damaged import check_refused

from polygrad import Tensor, nn
from polygrad.errors import ArgumentError
from polygrad.nn.pickles import Pickle
from polygrad.nn.state import get_state_dict, load_state_dict, torch_load

FORMATS = {"zip": True, "legacy": False}


def saved(x, new=True, **kwargs):
    out = io.BytesIO()
    torch.save(x, out, _use_new_zipfile_serialization=new, **kwargs)
    return out.getvalue()


BASE = torch.arange(24, dtype=torch.float32)
DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
TENSORS = {
    **{name: torch.tensor([0, 1, 1, 0]).to(getattr(torch, name)) for name in DTYPES},
    "uint16": torch.tensor([1, 65535], dtype=torch.uint16),
    "uint32": torch.tensor([1, 2**32 - 1], dtype=torch.uint32),
    "uint64": torch.tensor([1, 2**63], dtype=torch.uint64),
    "scalar": torch.tensor(2.5),
    "empty": torch.zeros(0, 3),
    "matrix": BASE.reshape(4, 6),
    "transposed": BASE.reshape(4, 6).T,
    "channels_last": BASE.reshape(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "slice": BASE.reshape(4, 6)[1:3],
    "columns": BASE.reshape(4, 6)[:, 1:4],
    "steps": BASE[3::5],
    "expanded": torch.tensor([[1.0], [2.0]]).expand(2, 3),
    "diagonal": BASE[:16].reshape(4, 4).diagonal(),
    "ones": torch.ones(1, 3, 1),
    "parameter": torch.nn.Parameter(torch.tensor([1.0, 2.0])),
    "half_transposed": torch.arange(6, dtype=torch.float16).reshape(2, 3).T,
    "windows": BASE.unfold(0, 4, 2),
}


def as_numpy(t):
    return (t.detach().float() if t.dtype == torch.bfloat16 else t.detach()).numpy()


@pytest.mark.parametrize("new", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("name", TENSORS)
def test_tensors_of_every_kind_and_layout(name, new):
    t = TENSORS[name]
    got = torch_load(saved(t, new))
    assert got.shape == tuple(t.shape) and got.dtype == str(t.dtype).removeprefix("torch.")
    np.testing.assert_array_equal(got.numpy(), as_numpy(t))


@pytest.mark.parametrize("new", FORMATS.values(), ids=FORMATS)
def test_objects_of_containers_text_and_numbers(new):
    x = {
        "list": [
            1,
            -2,
            2**40,
            -(2**70),
            1.5,
            True,
            False,
            None,
            "text",
            "täxt" * 100,
            b"bytes",
            (1, (2,), ()),
        ],
        "dict": OrderedDict([("b", torch.tensor([1.0])), ("a", {1: 2, (1, "x"): 3})]),
        "size": torch.Size([2, 3]),
        "set": {1, 2},
        "many": list(range(2500)),
        "device": torch.device("cpu"),
        "dtype": torch.float16,
    }
    got = torch_load(saved(x, new))
    assert got["list"] == x["list"] and got["many"] == x["many"] and got["set"] == {1, 2}
    assert list(got["dict"]) == ["b", "a"] and got["dict"]["b"].tolist() == [1.0]
    assert got["dict"]["a"] == {1: 2, (1, "x"): 3} and got["size"] == (2, 3)
    assert got["device"] == "cpu" and got["dtype"] == "float16"


@pytest.mark.parametrize("new", FORMATS.values(), ids=FORMATS)
def test_what_shares_memory_shares_it_still(new):
    shared = [1]
    t = torch.zeros(4)
    got = torch_load(saved({"a": t, "b": t[1:3], "c": t, "d": [shared, shared]}, new))
    got["a"].assign(Tensor([1.0, 2.0, 3.0, 4.0])).realize()
    assert got["b"].tolist() == [2, 3] and got["c"] is got["a"] and got["d"][0] is got["d"][1]


def network():
    return torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Linear(4, 2))


@pytest.mark.parametrize("new", FORMATS.values(), ids=FORMATS)
def test_checkpoints_of_torch_load_into_our_layers(new, tmp_path):
    theirs = network()
    opt = torch.optim.Adam(theirs.parameters(), 0.5)
    theirs[2](torch.ones(1, 4)).sum().backward()
    opt.step()
    path = tmp_path / "model.pt"
    path.write_bytes(saved({"model": theirs.state_dict(), "optimizer": opt.state_dict(), "epoch": 3}, new))
    got = torch_load(path)
    ours = [nn.Conv2d(1, 4, 3), nn.BatchNorm(4), nn.Linear(4, 2)]
    load_state_dict(ours, got["model"])
    for name, t in theirs.state_dict().items():
        np.testing.assert_array_equal(get_state_dict(ours)[name].numpy(), t.numpy())
    assert got["epoch"] == 3 and got["optimizer"]["param_groups"][0]["lr"] == 0.5
    moments = got["optimizer"]["state"]
    np.testing.assert_array_equal(moments[5]["exp_avg"].numpy(), opt.state_dict()["state"][5]["exp_avg"])
    assert torch_load(Tensor(path.read_bytes()))["epoch"] == 3


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_protocol_of_pickle(protocol):
    x = {"a": [1, "b", 2.5, None, b"c", (1, 2, 3, 4)], "t": torch.tensor([1.0])}
    got = torch_load(saved(x, pickle_protocol=protocol))
    assert got["a"] == x["a"] and got["t"].tolist() == [1]


@pytest.mark.parametrize("protocol", range(6))
def test_plain_pickles_are_read_as_python_reads_them(protocol):
    x = {"a": [1, -1, 10**30, 1.5, True, None, "x\ny", "é"], "b": (1,), "c": {}, "d": [[], ()], 3: "z" * 300}
    data = pickle.dumps(x, protocol)
    reader = Pickle(data, {}, lambda pid: pid, "p")
    if protocol == 0:  # which escapes text
        data = pickle.dumps({"a": [1, -1, 1.5, True, None, "x"]}, 0)
        assert Pickle(data, {}, lambda pid: pid, "p").load() == pickle.loads(data)
        return
    assert reader.load() == x and reader.end == len(data)


def test_byte_order_big():
    t = torch.arange(3, dtype=torch.int32)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(t))) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            if name.endswith("byteorder"):
                data = b"big"
            elif "/data/" in name:
                data = np.frombuffer(data, "<i4").astype(">i4").tobytes()
            new.writestr(name, data)
    assert torch_load(out.getvalue()).tolist() == [0, 1, 2]


# --- hostile


class Call:
    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


MARK_FILE = "hostile"
HOSTILE = {
    "system": Call(os.system, f"touch {MARK_FILE}"),
    "eval": Call(eval, "1 + 1"),
    "exec": {"a": [Call(exec, "1")]},
    "getattr": Call(getattr, "", "join"),
    "import": Call(__import__, "os"),
    "open": Call(open, MARK_FILE, "w"),
    "range": Call(range, 10**9),
    "class": nn.Linear(2, 2),
    "module": torch.nn.ReLU(),
    "numpy": np.float64(1.0),
    "array": np.zeros(3),
}


@pytest.mark.parametrize("new", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("name", HOSTILE)
def test_globals_that_are_not_data_are_refused_and_not_called(name, new, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x = HOSTILE[name]
    if isinstance(x, nn.Linear):
        raw = zipped(pickle.dumps(Call(nn.Linear, 2, 2), 2))
    else:
        raw = saved(x, new)
    with pytest.raises(ArgumentError, match="the file calls"):
        torch_load(raw)
    assert not (tmp_path / MARK_FILE).exists()


def zipped(data, files=(), **more):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr("x/data.pkl", data)
        for name, content in dict(files).items():
            z.writestr(name, content)
    return out.getvalue()


def opcodes(*parts):
    return b"\x80\x02" + b"".join(parts) + b"."


def glob(name):
    module, _, attribute = name.rpartition(".")
    return b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"


def string(s):
    return b"X" + struct.pack("<I", len(s)) + s


def integer(n):
    return b"\x8a\x08" + struct.pack("<q", n)


def storage(count=4, kind="torch.FloatStorage", key=b"0"):
    return b"(" + string(b"storage") + glob(kind) + string(key) + string(b"cpu") + integer(count) + b"tQ"


def numbers(*ns):
    return b"(" + b"".join(map(integer, ns)) + b"t"


def tensor(shape, strides, offset=0, memory=None):
    arguments = [storage() if memory is None else memory, integer(offset), shape, strides, b"\x89N"]
    return glob("torch._utils._rebuild_tensor_v2") + b"(" + b"".join(arguments) + b"tR"


BYTES = {"x/data/0": b"\0" * 16}
GOOD = zipped(opcodes(tensor(numbers(2, 2), numbers(2, 1))), BYTES)
BAD_PICKLES = {
    "nothing": b"",
    "no_stop": b"\x80\x02N",
    "empty_stack": b"\x80\x02.",
    "two_objects": b"\x80\x02NN.",
    "unknown_operation": b"\x80\x02\xff.",
    "no_mark": opcodes(b"t"),
    "only_mark": opcodes(b"("),
    "long_text": b"\x80\x02X\xff\xff\xff\xff.",
    "longer_text": b"\x80\x04\x8d" + b"\xff" * 8 + b".",
    "negative_text": b"\x80\x02T\xff\xff\xff\xff.",
    "long_number": b"\x80\x02\x8b\xff\xff\xff\x7f.",
    "slow_number": opcodes(b"\x8b", struct.pack("<i", 5000), b"\1" * 5000),
    "not_utf8": opcodes(b"X", struct.pack("<I", 2), b"\xff\xfe"),
    "memo": opcodes(b"h\7"),
    "huge_memo_is_fine_but_not_data": opcodes(b"Nr\xff\xff\xff\xff", b"0", storage()),
    "memo_of_a_mark": opcodes(b"(q\0h\0"),
    "itself": opcodes(b"]q\0h\0a"),
    "cycle": opcodes(b"]q\0]q\1h\0ah\1h\0a0h\0"),
    "grows_later": opcodes(b"]q\0]q\1h\0a0h\0h\1a"),
    "deep_list": opcodes(b"]" * 5000, b"a" * 4999),
    "deep_tuple": opcodes(b")", b"\x85" * 100_000),
    "deep_dict": opcodes(b"}N" * 200, b"}", b"s" * 200),
    "key_of_a_list": opcodes(b"}]Ns"),
    "key_of_tuples": opcodes(b"}))\x86Ns"),
    "odd_items": opcodes(b"}(Nu"),
    "append_to_a_number": opcodes(b"K\1Na"),
    "items_of_a_list": opcodes(b"]NNs"),
    "call_of_data": opcodes(b"K\1)R"),
    "arguments_that_are_none": opcodes(glob("collections.OrderedDict"), b"NR"),
    "arguments_of_another_kind": opcodes(glob("collections.OrderedDict"), b"K\1\x85R"),
    "too_many_arguments": opcodes(glob("torch.Size"), b"))\x86R"),
    "build_of_nothing": opcodes(b"N", b"b"),
    "codec": opcodes(glob("_codecs.encode"), string(b"x"), string(b"rot13"), b"\x86R"),
    "persistent_of_another_kind": opcodes(b"K\1Q"),
    "storage_of_a_function": opcodes(storage(kind="collections.OrderedDict")),
    "negative_storage": opcodes(storage(count=-1)),
    "storage_alone": opcodes(storage()),
    "storage_that_is_missing": opcodes(tensor(numbers(1), numbers(1), memory=storage(key=b"7"))),
    "storage_path": opcodes(tensor(numbers(1), numbers(1), memory=storage(key=b"../../etc"))),
    "storage_size": opcodes(tensor(numbers(1), numbers(1), memory=storage(count=5))),
    "two_sizes": opcodes(
        b"(", tensor(numbers(1), numbers(1)), tensor(numbers(1), numbers(1), 0, storage(3)), b"t"
    ),
    "beyond": opcodes(tensor(numbers(2, 3), numbers(3, 1))),
    "beyond_by_offset": opcodes(tensor(numbers(4), numbers(1), 1)),
    "negative_offset": opcodes(tensor(numbers(1), numbers(1), -1)),
    "negative_stride": opcodes(tensor(numbers(2), numbers(-1), 3)),
    "negative_size": opcodes(tensor(numbers(-2), numbers(1))),
    "axes": opcodes(tensor(numbers(1), numbers(1, 1))),
    "many_axes": opcodes(tensor(numbers(*[1] * 99), numbers(*[1] * 99))),
    "absurd": opcodes(tensor(numbers(1 << 59, 1 << 59), numbers(0, 0))),
    "sizes_of_text": opcodes(tensor(b"(" + string(b"x") + b"t", numbers(1))),
    "sizes_of_bools": opcodes(tensor(b"(\x88t", numbers(1))),
    "no_storage": opcodes(tensor(numbers(1), numbers(1), memory=b"N")),
}  # fmt: skip


def test_what_the_damage_is_done_to_is_read():
    assert torch_load(GOOD).tolist() == [[0, 0], [0, 0]]
    assert torch_load(zipped(opcodes(b"]" * 50, b"a" * 49))) is not None
    assert torch_load(zipped(opcodes(b"Nr\xff\xff\xff\xff0j\xff\xff\xff\xff"))) is None


@pytest.mark.parametrize("name", BAD_PICKLES)
def test_damaged_and_hostile_pickles_are_refused(name):
    check_refused("pickle", name, lambda: torch_load(zipped(BAD_PICKLES[name], BYTES)))


def test_containers_that_many_others_share_take_no_longer():
    """A list of 2 of a list of 2 of ..., 60 deep: 2^60 places, 61 lists."""
    body = b"]q\0"
    for i in range(60):
        body += b"](h" + bytes((i,)) + b"h" + bytes((i,)) + b"eq" + bytes((i + 1,))
    program = b"\x80\x02" + b"(" + body + b"l."  # the lists, in a list
    assert len(torch_load(zipped(program))) == 61


LEGACY = saved({"a": torch.arange(4.0)}, False)
BAD_FILES = {
    "text": b"hello, this is no checkpoint",
    "zip_without_pickle": zipped(b"").replace(b"data.pkl", b"data.pkx"),
    "pickle_of_something_else": pickle.dumps([1, 2, 3]),
    "legacy_cut": LEGACY[:-3],
    "legacy_cut_in_the_pickle": LEGACY[:200],
    "legacy_count": LEGACY.replace(struct.pack("<Q", 4), struct.pack("<Q", 1 << 60)),
    "byte_order": zipped(opcodes(b"N"), {"x/byteorder": b"middle"}),
    "zip_storage_of_another_size": zipped(opcodes(tensor(numbers(1), numbers(1))), {"x/data/0": b"\0" * 15}),
    "zip_cut": GOOD[:-5],
    "two_pickles": zipped(opcodes(b"N"), {"y/data.pkl": opcodes(b"N")}),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_damaged_files_are_refused(name):
    check_refused("torch", name, lambda: torch_load(BAD_FILES[name]), r"\d{3,}")


@pytest.mark.parametrize("new", FORMATS.values(), ids=FORMATS)
def test_changed_bytes_are_read_or_refused(new):
    whole = saved({"a": torch.arange(4.0), "b": [1, {"c": torch.ones(2, 2).T}]}, new)
    rng, refused = random.Random(2), 0
    for _ in range(500):
        bad = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            bad[rng.randrange(len(bad))] = rng.getrandbits(8)
        if rng.random() < 0.3:
            del bad[rng.randrange(len(bad)) :]
        try:
            torch_load(bytes(bad))
        except ArgumentError:
            refused += 1
    assert refused > 100


def test_random_operations_are_read_or_refused():
    """Programs of valid operations in any order: more reach the end than of random bytes."""
    pieces = [b"(", b")", b"]", b"}", b"N", b"K\1", b"t", b"a", b"e", b"s", b"u", b"0", b"1", b"q\0", b"h\0",
              b"q\1", b"h\1", b"\x85", b"\x86", b"l", b"d", b"b", b"R", b"Q", b"\x8f", b"\x90", string(b"x"),
              glob("collections.OrderedDict"), glob("torch.Size"), storage()]  # fmt: skip
    rng, outcomes = random.Random(3), {"read": 0, "refused": 0}
    for _ in range(3000):
        program = opcodes(*rng.choices(pieces, k=rng.randint(1, 12)))
        try:
            torch_load(zipped(program, BYTES))
            outcomes["read"] += 1
        except ArgumentError:
            outcomes["refused"] += 1
    assert min(outcomes.values()) > 50, outcomes
