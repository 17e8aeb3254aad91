"""BEAM on machines with workgroups: what the search finds on a device's own times computes the same."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from adapter import SLOW_WEBGPU

from polygrad import Tensor
from polygrad.engine import search
from polygrad.engine.cache import DiskCache
from polygrad.engine.programs import clear_caches

no_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
EMULATED_CUDA = pytest.param("EMULATED_CUDA", marks=[no_gxx, pytest.mark.slow])


@pytest.fixture
def timed(monkeypatch, tmp_path):
    """The kernels that are timed, by a search that keeps nothing."""
    monkeypatch.setenv("BEAM", "2")
    monkeypatch.setenv("POLYGRAD_CACHE", str(tmp_path))
    DiskCache.default.cache_clear()
    clear_caches()
    found, seconds = [], search._seconds
    monkeypatch.setattr(
        search, "_seconds", lambda kernel, *rest: found.append(kernel) or seconds(kernel, *rest)
    )
    yield found
    DiskCache.default.cache_clear()
    clear_caches()


@pytest.mark.parametrize("device", [EMULATED_CUDA, SLOW_WEBGPU])
def test_a_beam_of_two_finds_a_product_within_1e_2(device, timed):
    dtype = np.float16 if device == "EMULATED_CUDA" else np.float32  # on a tensor core, and not
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in ((16, 32), (32, 8)))
    got = (Tensor(x, device=device) @ Tensor(y, device=device)).numpy()
    want = x.astype(np.float64) @ y
    assert np.abs(got - want).max() <= 1e-2 * np.abs(want).max()
    assert len(set(timed)) > 20
