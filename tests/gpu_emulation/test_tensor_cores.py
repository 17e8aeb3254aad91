"""Products on tensor cores, as both languages have them, every access checked (device.py)."""

from __future__ import annotations

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch

from polygrad import Device, Tensor
from polygrad.engine.programs import clear_caches
from polygrad.uop.tensor_cores import BY_NAME
from tests.gpu_emulation.device import checked

both = pytest.mark.parametrize("device", ["EMULATED_CUDA", "EMULATED_MSL"])
rng = np.random.default_rng(0)
ULP = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 1e-6}  # of results, relative


@pytest.fixture(autouse=True)
def check(device):
    with checked(Device[device]):
        yield


pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


def filled(device, dtype, *shape):
    return Tensor(rng.standard_normal(shape).astype(np.float32), device=device).cast(dtype).realize()


def exact(x):
    return x.cast("float32").numpy().astype(np.float64)


def close(got, want, tolerance):
    """Within a tolerance that is relative to the greatest element."""
    assert np.abs(exact(got) - want).max() <= tolerance * np.abs(want).max()


class Launched:
    """The text of the kernels that were launched."""

    def __init__(self, monkeypatch, device):
        self.texts = []
        run = type(Device[device]).load

        def load(runtime, program):
            self.texts += [k.code.decode() for k in program.kernels]
            return run(runtime, program)

        monkeypatch.setattr(type(Device[device]), "load", load)

    @property
    def on_cores(self):
        return [any(name + "(" in text for name in BY_NAME) for text in self.texts]


@pytest.fixture
def launched(monkeypatch, device):
    clear_caches()  # all that is launched is loaded first
    return Launched(monkeypatch, device)


@both
@pytest.mark.parametrize(
    ("dtype", "m", "k", "n"),
    [
        ("float16", 16, 32, 8),  # a block
        ("float16", 128, 256, 64),  # chunks, and all of a workgroup
        ("bfloat16", 48, 80, 40),  # the last workgroup overlaps
        ("bfloat16", 160, 96, 72),
        ("float16", 17, 30, 9),  # edges in all of rows, terms and columns: blocks overlap
        ("bfloat16", 100, 100, 100),
        ("float16", 9, 20, 8),  # fewer rows than a block has
        ("float16", 8, 12, 64),  # which is one of few columns, of few terms
        ("bfloat16", 33, 200, 50),
    ],
)
def test_products_round_once(device, launched, dtype, m, k, n):
    x, y = filled(device, dtype, m, k), filled(device, dtype, k, n)
    close(x @ y, exact(x) @ exact(y), ULP[dtype])
    assert any(launched.on_cores)


@pytest.mark.parametrize("device", ["EMULATED_MSL"])
@pytest.mark.parametrize(("m", "k", "n"), [(64, 64, 64), (24, 40, 72)])
def test_products_of_float32_within_1e_6(device, launched, m, k, n):
    x, y = filled(device, "float32", m, k), filled(device, "float32", k, n)
    close(x @ y, exact(x) @ exact(y), ULP["float32"])
    assert any(launched.on_cores)


@both
def test_a_batch_with_an_epilogue_and_transposed_operands(device, launched):
    x, y, z = (filled(device, "float16", *shape) for shape in ((2, 32, 48), (2, 24, 48), (24,)))
    got = (x @ y.transpose(1, 2) + z).relu()
    want = exact(x) @ exact(y).transpose(0, 2, 1) + exact(z)
    close(got, np.maximum(want, 0), 2 * ULP["float16"])
    assert any(launched.on_cores)


@both
def test_a_product_and_its_gradients_within_1e_2(device, launched):
    x, y = filled(device, "float16", 32, 48), filled(device, "float16", 48, 16)
    x.requires_grad = y.requires_grad = True
    (x @ y).float().tanh().sum().backward()
    a, b = (torch.tensor(exact(v), requires_grad=True) for v in (x, y))
    (a @ b).tanh().sum().backward()
    close(x.grad, a.grad.numpy(), 1e-2)
    close(y.grad, b.grad.numpy(), 1e-2)
    assert sum(launched.on_cores) >= 2


@both
def test_a_convolution_within_1e_2(device):
    x, w = filled(device, "float16", 1, 16, 10, 10), filled(device, "float16", 32, 16, 3, 3)
    got = x.conv2d(w, padding=1)
    want = torch.nn.functional.conv2d(torch.tensor(exact(x)), torch.tensor(exact(w)), padding=1)
    close(got, want.numpy(), 1e-2)


@pytest.mark.parametrize("device", ["EMULATED_CUDA"])
def test_float32_on_request_within_2e_3(device, launched, monkeypatch):
    backend = Device.backend(device)
    target = replace(backend.target, tensor_cores=(BY_NAME["mma_m16n8k8_tf32"],))
    monkeypatch.setitem(Device._backends, device, replace(backend, target=target))
    x, y = filled(device, "float32", 48, 64), filled(device, "float32", 64, 40)
    error = np.abs(exact(x @ y) - exact(x) @ exact(y)).max() / np.abs(exact(x) @ exact(y)).max()
    assert 1e-5 < error < 2e-3  # 10 bits of a fraction
    assert any(launched.on_cores)


@both
def test_terms_that_were_counted_before_are_none(device, launched):
    """Of 24 terms the second block has 8 that the first had: an infinity among them counts once."""
    x, y = np.ones((16, 24), np.float16), np.ones((24, 16), np.float16)
    x[3, 10], y[12, 5], x[7, 20] = np.inf, -np.inf, 0
    y[20, 9] = np.inf
    got = (Tensor(x, device=device) @ Tensor(y, device=device)).numpy()
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(got, x @ y)
    assert any(launched.on_cores)


@both
def test_a_product_of_hardly_a_block_is_not_on_cores(device, launched):
    x, y = filled(device, "float16", 9, 8), filled(device, "float16", 8, 8)
    close(x @ y, exact(x) @ exact(y), ULP["float16"])
    assert any(launched.on_cores) == (device == "EMULATED_MSL")  # blocks of 8 x 8 x 8
