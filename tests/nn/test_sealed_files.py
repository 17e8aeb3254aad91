"""Safetensors files with a hash: read back, read by others, damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from polygrad import Tensor, dtypes, nn
from polygrad.errors import ArgumentError
from polygrad.nn.sealed_files import read_sealed, take_snapshot, write_snapshot

pytestmark = pytest.mark.usefixtures("default_device")


def test_a_file_has_what_was_copied_and_others_read_it(tmp_path: Path, device: str) -> None:
    t = Tensor([[1.5, -2.0]], device=device).contiguous().realize()
    kept = take_snapshot({"t": t, "none": Tensor.zeros(2, 0)}, {"note": "x"})
    t.assign(t * 0).realize()
    write_snapshot(tmp_path / "new" / "file", kept)
    tensors, metadata = read_sealed(tmp_path / "new" / "file", "it")
    assert tensors["t"].tolist() == [[1.5, -2.0]] and tensors["none"].shape == (2, 0)
    assert metadata["note"] == "x" and len(metadata["sha256"]) == 64
    theirs = safetensors.numpy.load_file(tmp_path / "new" / "file")
    np.testing.assert_array_equal(theirs["t"], [[1.5, -2.0]])
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["file"]


def test_a_bit_that_changes_anywhere_is_found() -> None:
    tensors = {"a": Tensor.full((5, 3), 1.0), "b": Tensor([1, 2], dtype=dtypes.int64)}
    whole = b"".join(take_snapshot(tensors, {"note": "x"}).parts())
    read_sealed(whole, "it")
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(ArgumentError, match="it: "):
            read_sealed(bytes(damaged), "it")
    for size in range(0, len(whole), 7):
        with pytest.raises(ArgumentError, match="it: "):
            read_sealed(whole[:size], "it")
    with pytest.raises(ArgumentError, match="it: "):
        read_sealed(whole + b" ", "it")


def test_other_files_have_no_hash(tmp_path: Path) -> None:
    nn.state.safe_save({"a": Tensor([1.0])}, tmp_path / "weights")
    with pytest.raises(ArgumentError, match="expected a file with its hash"):
        read_sealed(tmp_path / "weights", "it")
    with pytest.raises(ArgumentError, match=r"it: .*nowhere"):
        read_sealed(tmp_path / "nowhere", "it")
