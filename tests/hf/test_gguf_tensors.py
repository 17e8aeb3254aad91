"""Tensors of GGUF files where they are stored: in mapped pages or copied, whole or some rows."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gguf", reason="gguf, which writes the files, is not installed")
import gguf_models
import hf_models

from polygrad import Tensor, hf, nn
from polygrad.errors import DeviceError
from polygrad.hf import gguf_tensors
from polygrad.hf.gguf_parts import map_parts
from polygrad.hf.gguf_tensors import StoredTensor
from polygrad.hf.inspection import inspect
from polygrad.nn.gguf import ENCODINGS, Blocks
from polygrad.runtime.buffer import Foreign
from polygrad.tensor.core.aliasing import memory_under
from polygrad.tensor.core.sources import map_to_memory

_IDS = hf_models.token_ids(2, 21)
ENCODING = {e.name: e for e in ENCODINGS.values()}


def logits(instance: Any) -> np.ndarray:
    with Tensor.no_grad():
        found: np.ndarray = instance.forward(input_ids=_IDS)["logits"].numpy()
    return found


def is_mapped(x: Tensor) -> bool:
    memory = memory_under(x.uop)
    return memory is not None and isinstance(memory.buffer.arg.allocation, Foreign)


def stored(name: str, values: np.ndarray, shift: int = 0, **options: Any) -> StoredTensor:
    """A tensor whose bytes are `shift` bytes behind a multiple of 64, with room on both sides."""
    raw = values.tobytes()
    memory = bytearray(len(raw) + 256)
    start = 64 - np.frombuffer(memory, np.uint8).ctypes.data % 64 + 64 + shift
    memory[start : start + len(raw)] = raw
    data = memoryview(memory)[start : start + len(raw)]
    columns = values.shape[-1] // ENCODING[name].nbytes * ENCODING[name].elements
    shape = values.shape if ENCODING[name].dtype is not None else (*values.shape[:-1], columns)
    return StoredTensor(Blocks(ENCODING[name], shape, data), "CPU", **options)


@pytest.fixture
def maps_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf_tensors, "_COPIED_BYTES", 0)


@pytest.mark.usefixtures("maps_all")
@pytest.mark.parametrize("name", ["gpt2", "llama", "gemma3", "phi3"])
def test_floats_stay_in_the_pages_of_the_file(tmp_path: Path, name: str) -> None:
    """Also the parts of joined matrices. Writes to them stay in this process, and the file may go."""
    file = Path(shutil.copy(gguf_models.files(name, "F32")[0], tmp_path))
    raw = file.read_bytes()
    instance, other = hf.load_hf(file), hf.load_hf_bytes(None, raw)
    mapped = {n for n, t in instance.weights().items() if is_mapped(t)}
    assert not any(is_mapped(t) for t in other.weights().values())
    permuted = {"q_proj", "k_proj"} if name == "llama" else set()
    apart = {
        n for n in instance.weights() if ("norm" in n and name == "gemma3") or set(n.split(".")) & permuted
    }
    assert mapped == set(instance.weights()) - apart
    expected = logits(other)
    np.testing.assert_array_equal(logits(instance), expected)
    zeros = {n: np.zeros(t.shape, np.float32) for n, t in instance.weights().items()}
    instance.set_weights(zeros)
    assert (logits(instance) == 0).all() and file.read_bytes() == raw
    again = hf.load_hf(file)
    file.unlink()
    np.testing.assert_array_equal(logits(again), expected)


def test_small_tensors_and_packed_ones_do_not_keep_the_file_mapped() -> None:
    for kind in ("F32", "Q8_0"):
        instance = hf.load_hf(gguf_models.files("llama", kind)[0])
        assert not any(is_mapped(t) for t in instance.weights().values())
    assert any(isinstance(x, nn.PackedWeight) for _, x in nn.state.named_objects(instance.module))


@pytest.mark.parametrize("device", ["CPU", "INTERP", "WASM"])
def test_devices_with_memory_of_their_own_get_a_copy(maps_all: None, device: str) -> None:
    file = Path(gguf_models.files("llama", "Q8_0")[0])
    parts = map_parts(file, device)
    assert parts.is_mapped == (device != "WASM")
    assert bytes(parts.data[file.name]) == file.read_bytes()
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    instance = hf.load_hf(file, device=device, activations="float32")
    weight = next(x for _, x in nn.state.named_objects(instance.module) if isinstance(x, nn.PackedWeight))
    reference = hf.load_hf_bytes(None, file.read_bytes(), activations="float32")
    expected = next(x for _, x in nn.state.named_objects(reference.module) if isinstance(x, nn.PackedWeight))
    np.testing.assert_array_equal(weight.dense().numpy(), expected.dense().numpy())
    assert weight.device == device and stored("F32", values).read().tolist() == values.tolist()


@pytest.mark.usefixtures("maps_all")
@pytest.mark.parametrize(("shift", "expected"), [(0, True), (4, True), (1, False), (2, False)])
def test_floats_that_are_not_aligned_are_copied(shift: int, expected: bool) -> None:
    values = np.arange(12, dtype=np.float32).reshape(3, 4)
    entry = stored("F32", values, shift, is_mapped=True)
    found = entry.read()
    assert is_mapped(found) == expected and found.tolist() == values.tolist()
    entry.blocks.data[:4] = b"\0\0\x80\x3f"
    assert found[0, 0].item() == (1.0 if expected else 0.0)


@pytest.mark.parametrize("is_mapped", [False, True])
@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_K"])
@pytest.mark.usefixtures("maps_all")
def test_rows_are_chosen_before_they_are_packed(kind: str, is_mapped: bool) -> None:
    encoding, rng = ENCODING[kind], np.random.default_rng(0)
    raw = rng.integers(0, 100, (40, 2 * encoding.nbytes), np.uint8)
    whole = stored(kind, raw, is_mapped=is_mapped)
    part = whole[5:37]
    assert part.shape == (32, 2 * encoding.elements) and part.is_packed
    expected = whole.pack("float32").dense().numpy()[5:37]
    for activations in ("float32", "int8"):
        packed = part.pack(activations)
        assert packed.activations == activations
        np.testing.assert_array_equal(packed.dense().numpy(), expected)
    np.testing.assert_array_equal(part.read().numpy(), expected)


def test_a_file_larger_than_the_memory_is_read_without_being_mapped_for_writes(tmp_path: Path) -> None:
    """The system refuses so many pages of which each could be written. The file has a hole at its end."""
    file = Path(shutil.copy(gguf_models.files("llama", "F32")[0], tmp_path))
    expected = logits(hf.load_hf(file))
    try:
        os.truncate(file, 1 << 43)
    except OSError:
        pytest.skip("the folder's file system has no files with holes of this size")
    parts = map_parts(file, "CPU")
    np.testing.assert_array_equal(logits(hf.load_hf(file)), expected)
    assert len(parts.data[file.name]) == 1 << 43
    assert inspect(file).architecture == "LlamaForCausalLM"


def test_a_refused_mapping_is_a_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path(shutil.copy(gguf_models.files("llama", "F32")[0], tmp_path))
    mmap_of_file = mmap.mmap

    def refuse(descriptor: int, *args: Any, **options: Any) -> mmap.mmap:
        if descriptor == -1:
            raise OSError(errno.ENOMEM, "Cannot allocate memory")
        return mmap_of_file(descriptor, *args, **options)

    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(DeviceError, match="device CPU: expected a file that can be mapped, got: Cannot"):
        map_to_memory(file, "CPU")
    parts = map_parts(file, "CPU")
    assert not parts.is_mapped and bytes(parts.data[file.name]) == file.read_bytes()
