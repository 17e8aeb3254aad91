"""BEAM: the search finds Opts that compute the same, keeps them, and leaves alone what it cannot time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from polygrad import Context, Device, Tensor, Variable
from polygrad.engine import compile, timing
from polygrad.engine import search as module
from polygrad.engine.cache import DiskCache
from polygrad.engine.compile import _kernels
from polygrad.engine.programs import clear_caches
from polygrad.engine.stats import stats
from polygrad.errors import OutOfMemoryError
from polygrad.runtime.interface import Runtime
from polygrad.runtime.program import Program

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
        if caller.co_filename == timing.__file__ and len(refused) < 3:
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


# --- KernelOpts of graphs


def searched_graph(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The Programs that a search for KernelOpts times from now on."""
    monkeypatch.setattr(compile, "search", lambda *args: None)  # not for Opts
    seen: list[object] = []
    real = module.time_program

    def spy(program: Program, runtime: Runtime) -> float:
        seen.append(program)
        return real(program, runtime)

    monkeypatch.setattr(module, "time_program", spy)
    return seen


@pytest.mark.parametrize("name", ["CPU", "WASM"])
def test_a_graphs_decisions_are_searched_once_within_1e_4(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = searched_graph(monkeypatch)
    monkeypatch.setenv("DEBUG", "1")
    a, b = RNG.standard_normal((2, 96, 80)).astype(np.float32)
    for _ in range(2):
        got = ((Tensor(a, device=name).T @ Tensor(b, device=name)).relu()).numpy()
        np.testing.assert_allclose(got, np.maximum(a.T @ b, 0), atol=1e-4)
        tried = len(seen)
        _kernels.clear()
        clear_caches()
    report = capsys.readouterr().err
    assert len(seen) == tried > 1 and report.count("KERNEL_OPTS=") == 1


@pytest.mark.parametrize(("size", "sign", "expected"), [(512, 1, 1), (96, -1, 3)], ids=["slow", "fast"])
def test_a_slow_decision_is_left_out_and_a_fast_one_is_taken(
    size: int, sign: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock says that more kernels take longer, or less long. The heuristics copy the large matrix."""
    searched_graph(monkeypatch)
    monkeypatch.setattr(module, "time_program", lambda program, _: 10.0 + sign * len(program.launches))
    x = Tensor(RNG.standard_normal((size, size)).astype(np.float32), device="CPU").realize()
    y = (x + 1).realize()
    before = stats.launches
    (x.T @ y).realize()
    assert sign * (stats.launches - before) <= sign * expected


def test_what_is_given_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = searched_graph(monkeypatch)
    a = RNG.standard_normal((64, 48)).astype(np.float32)
    with Context(KERNEL_OPTS="SPLIT_REDUCE k0 r2 4"):
        got = (Tensor(a, device="CPU") @ Tensor(a.T.copy(), device="CPU")).numpy()
    np.testing.assert_allclose(got, a @ a.T, atol=1e-4)
    assert not seen


def test_a_size_that_does_not_fit_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of rows of attention: doubled, they do not divide 48 at some point."""
    seen = searched_graph(monkeypatch)
    q = RNG.standard_normal((1, 2, 48, 16)).astype(np.float32)
    t = Tensor(q, device="CPU").realize()
    got = t.scaled_dot_product_attention(t, t).numpy()
    weights = np.exp(q @ q.swapaxes(-1, -2) / 4)
    np.testing.assert_allclose(got, weights / weights.sum(-1, keepdims=True) @ q, atol=1e-4)
    assert len(seen) > 1


@pytest.mark.parametrize(("limit", "all_pairs"), [(64, False), (1 << 40, True)])
def test_kernels_with_far_more_rounds_are_not_timed(
    limit: int, all_pairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a histogram without the pass `scatter`, which has a round for each pair of an element and a bin."""
    timed = []
    monkeypatch.setattr(module, "_MAX_ROUNDS", limit)
    monkeypatch.setattr(module, "time_program", lambda program, _: timed.append(program) or 1.0)
    elements, bins = RNG.integers(0, 2000, 5000).astype(np.int32), 2000
    hit = Tensor(elements, device="CPU").unsqueeze(0) == Tensor.arange(bins, device="CPU").unsqueeze(1)
    np.testing.assert_array_equal(hit.sum(1).numpy(), np.bincount(elements, minlength=bins))
    assert (len(timed) > 1) is all_pairs
