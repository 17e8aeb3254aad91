"""BEAM: the search finds Opts that compute the same, keeps them, and leaves alone what it cannot time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from polygrad import Device, Tensor, Variable
from polygrad.engine import search as module
from polygrad.engine.cache import DiskCache
from polygrad.engine.compile import _kernels
from polygrad.engine.programs import clear_caches
from polygrad.errors import OutOfMemoryError

RNG = np.random.default_rng(13)


@pytest.fixture(autouse=True)
def searching(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setenv("BEAM", "1")
    monkeypatch.setenv("POLYGRAD_CACHE", str(tmp_path))
    DiskCache.default.cache_clear()
    _kernels.clear()
    clear_caches()
    yield
    DiskCache.default.cache_clear()


def timings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The kernels that are timed from now on."""
    seen: list[object] = []
    real = module._seconds

    def spy(*args: object) -> float:
        seen.append(args[0])
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_seconds", spy)
    return seen


@pytest.mark.parametrize("name", ["CPU", "WASM"])
def test_searched_kernels_within_1e_4(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = timings(monkeypatch)
    a = RNG.standard_normal((37, 45)).astype(np.float32)
    b = RNG.standard_normal((45, 29)).astype(np.float32)
    got = (Tensor(a, device=name) @ Tensor(b, device=name)).numpy()
    np.testing.assert_allclose(got, a @ b, atol=1e-4)
    assert len(set(seen)) > 1


def test_a_kernel_that_finds_no_memory_is_no_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = type(Device["CPU"])
    real, refused = runtime.allocate, []

    def allocate(self: object, nbytes: int) -> int:
        caller = sys._getframe(1).f_code
        if caller.co_filename == module.__file__ and len(refused) < 3:
            refused.append(nbytes)
            raise OutOfMemoryError("no room")
        return real(self, nbytes)  # type: ignore[arg-type]

    monkeypatch.setattr(runtime, "allocate", allocate)
    a = RNG.standard_normal((33, 41)).astype(np.float32)
    np.testing.assert_allclose((Tensor(a, device="CPU") * 3).sum(1).numpy(), a.sum(1) * 3, atol=1e-4)
    assert len(refused) == 3


def test_a_kernel_is_searched_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = timings(monkeypatch)
    data = RNG.standard_normal((31, 53)).astype(np.float32)
    first = Tensor(data, device="CPU").sum(1).numpy()
    searched = len(seen)
    _kernels.clear()
    clear_caches()
    second = Tensor(data, device="CPU").sum(1).numpy()
    assert searched and len(seen) == searched
    np.testing.assert_array_equal(first, second)


def test_symbolic_kernels_and_interp_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = timings(monkeypatch)
    n = Variable("n", 1, 10).bind(4)
    data = RNG.standard_normal((10,)).astype(np.float32)
    total = Tensor(data, device="CPU").realize().shrink(((0, n),)).sum().item()
    assert abs(total - data[:4].sum()) < 1e-5
    assert Tensor([1.0, 2.0], device="INTERP").sum().item() == 3.0
    assert not seen


def test_the_search_reports_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DEBUG", "1")
    Tensor(RNG.standard_normal((19, 41)).astype(np.float32), device="CPU").sum(1).realize()
    out = capsys.readouterr()
    assert "search: " in out.err and not out.out


def test_a_search_starts_from_one_kernel(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = timings(monkeypatch)
    monkeypatch.setenv("DEBUG", "4")
    Tensor(RNG.standard_normal((23, 43)).astype(np.float32), device="CPU").sum(1).realize()
    text = capsys.readouterr().err
    # for the search and for the kernel that is made in the end
    assert text.count("# after flatten-reductions\n") == 2
    assert text.count("# after lower-stages\n") == len(seen) + 2 > 3  # and the unoptimised one, its name
