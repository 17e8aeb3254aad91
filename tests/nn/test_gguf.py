"""GGUF files against ggml's own reader (recorded in data/), and damaged ones."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path

import numpy as np
import pytest
from damaged import check_refused

from polygrad import Tensor
from polygrad.errors import ArgumentError
from polygrad.nn.gguf import ENCODINGS
from polygrad.nn.quantization import dequantize
from polygrad.nn.state import gguf_load

pytestmark = pytest.mark.usefixtures("default_device")
DATA = Path(__file__).parent / "data"
# Random blocks, and what gguf 0.17.1 and 0.19.0 (the package of ggml's authors) make of them.
QUANTIZED = json.loads((DATA / "quantized.json").read_text())
# Written by gguf 0.17.1.
FILE = (DATA / "tensors.gguf").read_bytes()


@pytest.mark.parametrize("name", QUANTIZED)
def test_blocks_become_the_numbers_of_ggmls_reader_within_1e_6(device, name):
    encoding = next(e for e in ENCODINGS.values() if e.name == name)
    want = np.frombuffer(bytes.fromhex(QUANTIZED[name]["numbers"]), np.float32)
    blocks = Tensor(bytes.fromhex(QUANTIZED[name]["blocks"])).reshape(-1, encoding.nbytes)
    got = dequantize(name, blocks)
    assert got.shape == (4, encoding.elements) and got.dtype == "float32"
    np.testing.assert_allclose(got.numpy().reshape(-1), want, rtol=1e-6, atol=1e-6)


def test_every_kind_that_is_not_a_dtype_has_recorded_blocks():
    assert {e.name for e in ENCODINGS.values() if e.dtype is None} == set(QUANTIZED)
    with pytest.raises(ArgumentError, match="expected one of Q4_0"):
        dequantize("Q9_K", Tensor([0]))


@pytest.mark.parametrize("given", [FILE, DATA / "tensors.gguf", Tensor(FILE), memoryview(FILE)])
def test_a_file_of_ggmls_writer(given):
    metadata, tensors = gguf_load(given)
    assert metadata["answer"] == 42 and metadata["words"] == ["a", "bc"] and metadata["yes"] is True
    assert metadata["numbers"] == [1, -2, 3] and metadata["name.long"] == "täst"
    assert metadata["third"] == pytest.approx(1 / 3)
    assert {k: (str(t.dtype), t.shape) for k, t in tensors.items()} == {
        "f32": ("float32", (2, 3)),
        "f16": ("float16", (2, 3)),
        "i8": ("int8", (8,)),
        "i64": ("int64", (2,)),
        "f64": ("float64", (1, 1)),
        "q8": ("float32", (2, 64)),
    }
    assert tensors["f32"].tolist() == tensors["f16"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert tensors["i64"].tolist() == [1, -(2**40)] and tensors["f64"].tolist() == [[1 / 3]]
    assert 0.5 < tensors["q8"].numpy().std() < 1.5


def gguf(pairs=b"", n_pairs=0, infos=b"", n_infos=0, data=b"", version=3):
    head = b"GGUF" + struct.pack("<IQQ", version, n_infos, n_pairs) + pairs + infos
    return head + b"\0" * (-len(head) % 32) + data


def text(s: bytes) -> bytes:
    return struct.pack("<Q", len(s)) + s


def info(name=b"t", shape=(2,), kind=0, offset=0):
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


@pytest.mark.parametrize("kind", [k for k, e in ENCODINGS.items() if e.dtype is not None])
def test_numbers_of_every_dtype_are_read(kind):
    dtype = ENCODINGS[kind].dtype
    want = Tensor([[1, -2, 3], [4, 5, -60]]).cast(dtype).realize()
    data = bytes(want.bitcast("uint8").data()) if dtype.itemsize > 1 else bytes(want.data())
    _, tensors = gguf_load(gguf(infos=info(shape=(3, 2), kind=kind), n_infos=1, data=data))
    assert tensors["t"].dtype == dtype and tensors["t"].tolist() == want.tolist()


NESTED = struct.pack("<IQ", 9, 1) * 1000
DAMAGED = {
    "nothing": b"",
    "magic": b"GGML" + FILE[4:],
    "version_1": gguf(version=1),
    "big_endian": gguf(version=3 << 24),
    "counts": gguf(n_infos=1 << 62),
    "pairs": gguf(n_pairs=1 << 62),
    "long_key": gguf(struct.pack("<Q", 1 << 60), 1),
    "key_not_utf8": gguf(text(b"\xff\xfe") + struct.pack("<II", 4, 1), 1),
    "key_twice": gguf((text(b"a") + struct.pack("<II", 4, 1)) * 2, 2),
    "kind_of_value": gguf(text(b"a") + struct.pack("<II", 99, 1), 1),
    "long_array": gguf(text(b"a") + struct.pack("<IIQ", 9, 4, 1 << 61), 1),
    "deep_array": gguf(text(b"a") + struct.pack("<I", 9) + NESTED + struct.pack("<IQ", 4, 0), 1),
    "axes": gguf(infos=info(shape=(1,) * 9), n_infos=1, data=b"\0" * 32),
    "type": gguf(infos=info(kind=11), n_infos=1, data=b"\0" * 32),
    "huge": gguf(infos=info(shape=(1 << 60, 1 << 60)), n_infos=1, data=b"\0" * 32),
    "short": gguf(infos=info(shape=(9,)), n_infos=1, data=b"\0" * 32),
    "not_aligned": gguf(infos=info(offset=4), n_infos=1, data=b"\0" * 32),
    "outside": gguf(infos=info(offset=1 << 62), n_infos=1, data=b"\0" * 32),
    "overlap": gguf(infos=info(shape=(9,)) + info(b"u", offset=32), n_infos=2, data=b"\0" * 64),
    "twice": gguf(infos=info() + info(offset=32), n_infos=2, data=b"\0" * 64),
    "part_of_a_block": gguf(infos=info(shape=(33,), kind=8), n_infos=1, data=b"\0" * 128),
    "alignment": gguf(text(b"general.alignment") + struct.pack("<II", 4, 0), 1, info(), 1, data=b"\0" * 32),
    "cut": FILE[:-40],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_refused(name):
    check_refused("gguf", name, lambda: gguf_load(DAMAGED[name]))


def test_what_the_damage_is_done_to_is_read():
    _, found = gguf_load(gguf(infos=info(b"a") + info(b"b", (0, 3), 8 * 0, 32), n_infos=2, data=b"\0" * 64))
    assert found["a"].tolist() == [0, 0] and found["b"].shape == (3, 0)


@pytest.mark.parametrize("window", [1, 8, 9, 13, 64, 1 << 20])
def test_lists_of_texts_are_read_in_windows(monkeypatch, window):
    """Also texts that are longer than a window, empty, or end with one; and the damage in one is named."""
    monkeypatch.setattr("polygrad.nn.gguf._WINDOW", window)
    texts = ["", "a", "é" * 30, "four", "", "xyz" * 40]

    def file(parts):
        values = struct.pack("<IIQ", 9, 8, len(parts)) + b"".join(text(part) for part in parts)
        return gguf(text(b"words") + values, 1)

    parts = [x.encode() for x in texts]
    assert gguf_load(file(parts))[0]["words"] == texts
    with pytest.raises(ArgumentError, match="is not UTF-8"):
        gguf_load(file([*parts[:3], b"\xff\xfe", *parts[4:]]))
    with pytest.raises(ArgumentError, match="1000 bytes of text"):
        gguf_load(file(parts).replace(struct.pack("<Q", 4) + b"four", struct.pack("<Q", 1000) + b"four"))


def test_changed_bytes_are_read_or_refused():
    """Never another error, and never more memory than the file has."""
    rng, refused = random.Random(4), 0
    sizes = (0, 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1, len(FILE))
    for _ in range(600):
        bad = bytearray(FILE)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(bad) - 8)
            if rng.random() < 0.3:
                bad[at : at + 8] = struct.pack("<Q", rng.choice(sizes))
            else:
                bad[at] = rng.getrandbits(8)
        if rng.random() < 0.3:
            del bad[rng.randrange(len(bad)) :]
        try:
            _, tensors = gguf_load(bytes(bad))
            assert sum(t.numel() for t in tensors.values()) <= 2 * len(FILE)
        except ArgumentError:
            refused += 1
    assert refused > 100
