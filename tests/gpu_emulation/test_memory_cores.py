"""Products on tensor cores that read workgroup memory, filled by copies that go on meanwhile (device.py)."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from polygrad import Device
from polygrad.codegen.opts import cost
from polygrad.engine.programs import clear_caches
from polygrad.renderer.cstyle.cuda import CUDABuilder
from polygrad.renderer.emit import emit
from polygrad.uop.tensor_cores import BY_NAME
from tests.gpu_emulation.device import checked
from tests.gpu_emulation.test_tensor_cores import ULP, Launched, close, exact, filled

DEVICE = "EMULATED_CUDA"
CORES = ("wgmma_m64n128k64_half", "wgmma_m64n64k64_half", "wgmma_m64n128k64_bfloat", "wgmma_m64n64k64_bfloat")

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


@pytest.fixture(autouse=True)
def hopper(monkeypatch):
    """A machine of compute capability 9.0, every access checked."""
    backend = Device.backend(DEVICE)
    limits = replace(backend.target.workgroups, copies=True, shared_bytes=227 << 10)
    cores = tuple(BY_NAME[name] for name in CORES) + backend.target.tensor_cores
    target = replace(backend.target, workgroups=limits, tensor_cores=cores)

    def compile_(name, linear):
        return str(emit(name, linear, CUDABuilder(target, aligned=True))).encode

    monkeypatch.setitem(Device._backends, DEVICE, replace(backend, target=target, compile=compile_))
    clear_caches()
    with checked(Device[DEVICE]):
        yield
    clear_caches()


@pytest.fixture
def launched(monkeypatch):
    return Launched(monkeypatch, DEVICE)


def reads_memory(launched):
    return any("wgmma_m64" in text for text in launched.texts)


@pytest.mark.parametrize("transposed", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize(
    ("dtype", "m", "k", "n"),
    [
        ("float16", 64, 64, 64),  # a block, and no loop
        ("bfloat16", 128, 256, 128),  # two groups of lanes; copies of later rounds
        ("float16", 192, 128, 192),  # the last workgroup overlaps
        ("bfloat16", 100, 160, 120),  # edges in rows, terms and columns
    ],
)
def test_products_round_once(launched, transposed, dtype, m, k, n):
    x = filled(DEVICE, dtype, *((k, m) if transposed[0] == "T" else (m, k)))
    y = filled(DEVICE, dtype, *((n, k) if transposed[1] == "T" else (k, n)))
    a, b = (v.transpose(0, 1) if t == "T" else v for v, t in zip((x, y), transposed, strict=True))
    close(a @ b, exact(a) @ exact(b), ULP[dtype])
    assert reads_memory(launched)


def test_operands_that_are_computed_and_an_epilogue(launched):
    x, y, z = (
        filled(DEVICE, "float32", 128, 192),
        filled(DEVICE, "float16", 192, 64),
        filled(DEVICE, "float16", 64),
    )
    got = ((x * 2).cast("float16") @ y + z).relu()
    want = np.maximum((2 * exact(x)).astype(np.float16).astype(np.float64) @ exact(y) + exact(z), 0)
    close(got, want, 3 * ULP["float16"])
    assert reads_memory(launched)
    assert not any("copy_async<16>(shared0" in text for text in launched.texts)  # of x: it is computed


def test_rows_that_are_no_multiple_of_a_copy(launched):
    """Rows of 2 * 67 bytes begin at any byte but an odd one."""
    x, y = filled(DEVICE, "float16", 64, 131)[:, :128], filled(DEVICE, "float16", 128, 67)[:, :64]
    close(x @ y, exact(x) @ exact(y), ULP["float16"])
    assert reads_memory(launched)


@pytest.mark.parametrize("transposed", ["NN", "NT", "TN"])
@pytest.mark.parametrize(("m", "k", "n"), [(64, 64, 64), (70, 100, 90), (33, 37, 35), (16, 1024, 16)])
def test_float32_products_with_copies_within_1e_5(launched, transposed, m, k, n):
    x = filled(DEVICE, "float32", *((k, m) if transposed[0] == "T" else (m, k)))
    y = filled(DEVICE, "float32", *((n, k) if transposed[1] == "T" else (k, n)))
    a, b = (v.transpose(0, 1) if t == "T" else v for v, t in zip((x, y), transposed, strict=True))
    close(a @ b, exact(a) @ exact(b), 1e-5)
    assert any("copy_async<" in text for text in launched.texts)


def test_a_round_for_each_buffer_fills_the_last_one(launched):
    """NVRTC before 13.4 takes `(k + 1) & 1` for 0 where it knows that k is 0."""
    x, y = filled(DEVICE, "float32", 32, 32), filled(DEVICE, "float32", 32, 32)
    close(x @ y, exact(x) @ exact(y), 1e-5)
    (text,) = [text for text in launched.texts if "copy_async<" in text]
    assert re.search(r"copy_async<16>\(shared1 \+ p\d+ \+ 512,", text)


def test_large_tiles_within_1e_5(launched, monkeypatch):
    monkeypatch.setattr(cost, "_COPIED_PRODUCT", cost._COPIED_PRODUCT._replace(workgroups=1))
    x, y = filled(DEVICE, "float32", 160, 64), filled(DEVICE, "float32", 64, 192)
    close(x @ y, exact(x) @ exact(y), 1e-5)
    assert any("extern __shared__" in text for text in launched.texts)


def test_batches(launched):
    x, y = filled(DEVICE, "bfloat16", 3, 64, 128), filled(DEVICE, "bfloat16", 3, 128, 64)
    close(x @ y, exact(x) @ exact(y), ULP["bfloat16"])
    assert reads_memory(launched)


SHARED_OPERAND = "GLOBAL r0, GLOBAL r1, LOCAL r0 16, LOCAL r1 16, SPLIT r3 4, STAGE r3.1 LOAD 0 2"


@pytest.mark.parametrize(
    ("dtype", "first", "second", "k", "l", "opts"),
    [
        ("float32", "il", "klj", 2, 64, None),
        ("float32", "kil", "lj", 2, 64, None),
        ("float32", "kil", "lj", 64, 2, None),  # memory for two rounds at most
        ("float32", "il", "klj", 3, 12, SHARED_OPERAND),  # three rounds of l end in the first of two buffers
        ("float32", "il", "klj", 3, 12, SHARED_OPERAND + ", STAGE r3.1 LOAD 2 2"),
        ("float16", "il", "klj", 2, 128, None),
        ("float16", "kil", "lj", 3, 192, None),
    ],
)
def test_an_operand_that_depends_on_one_of_two_loops(launched, dtype, first, second, k, l, opts):
    sizes = {"i": 128, "k": k, "l": l, "j": 128}
    x, y = (filled(DEVICE, dtype, *(sizes[axis] for axis in axes)) for axes in (first, second))

    def of_all_axes(operand, axes):
        ordered = operand.float().permute(*(axes.index(axis) for axis in sizes if axis in axes))
        return ordered.reshape(*(n if axis in axes else 1 for axis, n in sizes.items()))

    got = (of_all_axes(x, first) * of_all_axes(y, second)).sum((1, 2)).cast(dtype)
    got = (got if opts is None else got.contiguous(opts=opts)).realize()
    want = np.einsum(f"{first},{second}->ij", exact(x), exact(y))
    close(got, want, 1e-5 if dtype == "float32" else ULP[dtype])
    assert any("copy_async<" in text for text in launched.texts)
    assert reads_memory(launched) == (dtype == "float16")
