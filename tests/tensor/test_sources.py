"""Tensors of files and foreign memory; their values as text; Context and GlobalCounters."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

from polygrad import Context, Device, GlobalCounters, Tensor, getenv
from polygrad.errors import ArgumentError, DeviceError, ShapeError
from polygrad.runtime.buffer import Foreign

APART = ("WASM", "CUDA")  # devices whose memory is not that of this process
DATA = np.arange(3000, dtype=np.float32)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.bin"
    path.write_bytes(DATA.tobytes())
    return path


def test_a_file_is_its_bytes_or_elements(device: str, file: Path) -> None:
    t = Tensor(file, device=device, dtype="float32")
    assert isinstance(t.uop.base.arg.allocation, Foreign) is (device not in APART)
    assert t.tolist() == DATA.tolist()
    assert (t * 2).sum().item() == 2 * DATA.sum()
    raw = Tensor(f"file:{file}", device=device)
    assert (raw.dtype, raw.shape) == ("uint8", (12000,))
    assert raw.bitcast("float32").tolist() == DATA.tolist()


def test_writes_to_a_mapped_file_stay_in_the_process(device: str, file: Path) -> None:
    t = Tensor(file, device=device, dtype="float32")
    t += 1
    assert t.tolist() == (DATA + 1).tolist()
    assert file.read_bytes() == DATA.tobytes()


def test_files_that_do_not_fit(device: str, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert Tensor(tmp_path / "empty", device=device).shape == (0,)
    (tmp_path / "odd").write_bytes(b"12345")
    with pytest.raises(ArgumentError, match="expected a multiple of 4 bytes for float32, got 5"):
        Tensor(tmp_path / "odd", device=device, dtype="float32")
    with pytest.raises(FileNotFoundError):
        Tensor(tmp_path / "none", device=device)


def test_foreign_memory_is_shared(device: str) -> None:
    memory = np.zeros(64, np.float32)
    part = memory[16:28]
    if device in APART:
        with pytest.raises(DeviceError, match="its memory is not that of this process"):
            Tensor.from_blob(part.ctypes.data, (3, 4), device=device)
        return
    t = Tensor.from_blob(part.ctypes.data, (3, 4), device=device, owner=memory)
    memory[16] = 5
    assert t.tolist()[0][0] == 5
    t += 1
    t.realize()
    assert memory[16:28].tolist() == [6.0, *[1.0] * 11]
    with pytest.raises(ArgumentError, match="multiple of 4"):
        Tensor.from_blob(part.ctypes.data + 1, (3, 4), device=device)
    with pytest.raises(ShapeError):
        Tensor.from_blob(part.ctypes.data, (0,), device=device)


def test_values_as_text(device: str) -> None:
    on = f" on {device})"
    kept = [
        ([[1.0, 2.5], [3, -4.25]], "Tensor([[ 1.00,  2.50],\n        [ 3.00, -4.25]], float32" + on),
        ([True, False], "Tensor([ True, False], bool" + on),
        ([float("nan"), 1e10], "Tensor([       nan, 1.0000e+10], float32" + on),
        (7, "Tensor(7, int32" + on),
    ]
    for data, text in kept:
        assert repr(Tensor(data, device=device).contiguous().realize()) == text
    big = repr(Tensor.arange(3000, device=device).reshape(30, 100).contiguous().realize())
    assert big.splitlines()[0] == "Tensor([[   0,    1,    2, ...,   97,   98,   99],"
    assert len(big.splitlines()) == 7 and big.splitlines()[3].strip() == "...,"


def test_a_lazy_tensor_is_not_computed_for_its_text(device: str) -> None:
    t = Tensor([1.0, 2.0], device=device) + 1
    before = GlobalCounters.kernel_count
    assert repr(t) == f"<Tensor (2,) float32 on {device}, lazy: tolist() shows it>"
    assert GlobalCounters.kernel_count == before


def test_counters(device: str) -> None:
    x = Tensor([1.0, 2.0], device=device).realize()
    GlobalCounters.reset()
    (x + 3).realize()
    assert (GlobalCounters.kernel_count, GlobalCounters.program_count, GlobalCounters.global_mem) == (
        1,
        1,
        16,
    )
    assert GlobalCounters.mem_used >= 8


def test_contexts_nest_and_end() -> None:
    before = getenv("DEBUG")
    with Context(NOOPT=1):
        with Context(NOOPT=0, DEBUG=0):
            assert (getenv("NOOPT"), getenv("DEBUG")) == (0, 0)
        assert getenv("NOOPT") == 1
    assert getenv("DEBUG") == before
    with pytest.raises(ArgumentError, match="expected an int for one of DEBUG, NOOPT, BEAM, SPEC"):
        Context(FOO=1)


def test_devices_of_this_process_take_addresses() -> None:
    array = (ctypes.c_int32 * 40)(*range(40))
    t = Tensor.from_blob(ctypes.addressof(array) + 64, (4,), "int32", device="INTERP", owner=array)
    assert t.tolist() == [16, 17, 18, 19] and Device.DEFAULT
