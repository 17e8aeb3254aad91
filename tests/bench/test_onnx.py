"""The suite of ONNX models: both runtimes compute the same from one file, the rows, and first results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bench_package  # noqa: F401
import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_models import FLOAT, model

import polygrad
from bench import onnx_first, onnx_quantized
from bench.contest import Contest, Unavailable
from bench.libraries import inputs, onnx_polygrad, with_onnx, with_tensor
from bench.libraries.onnx_polygrad import KIND
from bench.suites import onnx as suite
from bench.suites import onnx_rows


@pytest.fixture
def sizes(tmp_path):
    """A convolution and a product, which read a number that says a shape."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(4, 3, 3, 3)), "p": rng.normal(size=(4, 5))}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("ReduceMean", ["r", "axes"], ["m"], keepdims=0),
        helper.make_node("MatMul", ["m", "p"], ["z"]),
        helper.make_node("Tile", ["z", "times"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", FLOAT, ["batch", 3, 8, 8])
    times = helper.make_tensor_value_info("times", 7, [2])
    values = [numpy_helper.from_array(a.astype(np.float32), n) for n, a in weights.items()]
    values.append(numpy_helper.from_array(np.int64([2, 3]), "axes"))
    path = tmp_path / "m.onnx"
    path.write_bytes(model(nodes, [x, times], ["y"], values, opset=18))
    return {"path": str(path), "inputs": {"x": onnx_rows.floats(2, 3, 8, 8), "times": [1, 2]}}


def in_polygrad(sizes: dict[str, Any]) -> list[float]:
    was = polygrad.Tensor.training
    try:
        maker = with_tensor.Maker(polygrad, inputs.uniform)
        return onnx_polygrad.make(sizes, maker.operand, maker.finish).check()
    finally:
        polygrad.Tensor.training = was


def test_both_runtimes_compute_the_same_within_1e_5(sizes, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    theirs = with_onnx.in_onnxruntime(KIND, sizes)
    want = theirs.check()
    assert len(want) == 20 and theirs.threads == 1
    np.testing.assert_allclose(in_polygrad(sizes), want, rtol=1e-5, atol=1e-5)


def test_an_int8_model_is_made_and_both_agree_on_it(sizes, tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    target = str(tmp_path / "int8.onnx")
    onnx_quantized.main(sizes["path"], target, json.dumps(sizes["inputs"]))
    whole = with_onnx.in_onnxruntime(KIND, sizes).check()
    sizes = {**sizes, "path": target}
    theirs = with_onnx.in_onnxruntime(KIND, sizes, optimized=False).check()
    scale = max(map(abs, whole))
    assert 0 < max(abs(a - b) for a, b in zip(whole, theirs)) < 0.2 * scale
    assert max(abs(a - b) for a, b in zip(in_polygrad(sizes), theirs)) < 1e-3 * scale


def test_the_rows_have_all_batches_and_threads():
    cases = [case for _, _, case in onnx_rows.cases(onnx_rows.NATIVE)]
    assert len(cases) == len({(case.name, case.threads) for case in cases}) == 100
    assert {case.host for case in cases} == {"cpython"}
    assert len(list(onnx_rows.cases(onnx_rows.NATIVE, quick=True))) == 25
    silero = next(m for m in onnx_rows.TABLE if m.name == "silero-vad")
    shapes = {name: spec["shape"] for name, spec in silero.batched(8).items() if isinstance(spec, dict)}
    assert shapes == {"input": [8, 576], "state": [2, 8, 128]}


def test_rows_in_the_page_are_of_models_that_fit_in_batches_of_1():
    cases = [case for _, _, case in onnx_rows.cases(onnx_rows.PAGE)]
    assert {case.host for case in cases} == {"chromium"} and {case.threads for case in cases} == {1, 2}
    assert {case.peers for case in cases} == {("onnxruntime-web",)}
    names = {model.name for model, _, _ in onnx_rows.cases(onnx_rows.PAGE)}
    assert names == {m.name for m in onnx_rows.TABLE} - {"ViT", "BERT", "GPT-2 with past"}
    assert all(case.name.endswith("batch 1") for case in cases) and len(cases) == 44
    assert {case.threads for _, _, case in onnx_rows.cases(onnx_rows.PAGE, quick=True)} == {1}


def test_the_mean_is_geometric_and_a_goal_of_each_host():
    native, page = onnx_rows.NATIVE, onnx_rows.PAGE
    assert suite.mean_of([2.0, 0.5], native).value == pytest.approx(1.0)
    assert suite.mean_of([2.0, 0.5], native).met and not suite.mean_of([2.0, 0.5], page).met
    assert suite.mean_of([1.5], page).met and suite.mean_of([1.5], page).host == "chromium"
    assert not suite.mean_of([0.9], native).met and suite.mean_of([], native).value is None


def test_a_host_and_a_name_choose_rows(monkeypatch: pytest.MonkeyPatch):
    class Measured(Contest):
        def measure(self, case: Any) -> Any:
            return onnx_rows.unavailable(case, "not measured")

    monkeypatch.setattr(suite, "Contest", Measured)
    monkeypatch.setattr(suite, "with_file", lambda case, *_: case)
    found = list(suite.run(True, "magika", "chromium"))
    assert [(r.case, r.host) for r in found] == [
        ("magika float32, batch 1", "chromium"),
        ("magika int8, batch 1", "chromium"),
    ]
    whole = list(suite.run(True, "", "chromium"))
    assert {r.host for r in whole} == {"chromium"} and whole[-1].case.startswith("geometric mean")


# --- first results

MAGIKA = onnx_rows.TABLE[0]


def first_rows(monkeypatch: pytest.MonkeyPatch, first: Callable[..., Any], rounds: int = 3) -> list[Any]:
    """The rows of a model whose processes answer what `first` gives."""

    class Judged(Contest):
        def reference(self, *_: Any) -> list[float]:
            return [1.0, 2.0]

    monkeypatch.setattr(suite, "first", first)
    monkeypatch.setattr(suite, "with_file", lambda case, *_: case)
    with Judged("onnx", True) as contest:
        return list(suite.of_model(contest, MAGIKA, [suite.COLD, suite.CACHED], rounds))


def test_a_first_result_is_the_least_of_several_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    caches: list[str] = []
    times = {"polygrad": iter([3.0, 2.0, 4.0, 9.0, 0.5, 0.25, 1.0]), "onnxruntime": iter([1.0, 2.0, 2.0] * 2)}

    def first(library: str, case: Any, cache: str) -> dict[str, Any]:
        if library == "polygrad":
            caches.append(cache)
        return {"value": next(times[library]), "check": [1.0, 2.0]}

    cold, cached = first_rows(monkeypatch, first)
    assert (cold.value, cold.peers, cold.met) == (2e3, {"onnxruntime": 1e3}, False)
    assert (cached.value, cached.peers, cached.met) == (250.0, {"onnxruntime": 1e3}, True)
    # Cold runs have a cache each; of the others the first fills it and does not count.
    assert len(set(caches[:3])) == 3 and len(set(caches[3:])) == 1 and caches[3] not in caches[:3]


def test_a_first_result_that_is_wrong_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(library: str, case: Any, cache: str) -> dict[str, Any]:
        return {"value": 1.0, "check": [1.0, 2.1 if library == "polygrad" else 2.0]}

    for row in first_rows(monkeypatch, first):
        assert row.value is None and not row.met and row.peers == {"onnxruntime": 1e3}
        assert "wrong result" in row.skipped["polygrad"]


def test_a_first_result_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(library: str, case: Any, cache: str) -> dict[str, Any]:
        raise Unavailable(f"no {library}")

    cold, cached = first_rows(monkeypatch, first)
    assert cold.skipped == {"polygrad": "no polygrad", "onnxruntime": "no onnxruntime"}
    assert cached.value is None and "no polygrad" in cached.skipped["polygrad"]


def test_first_results_of_both_runtimes_agree_within_1e_5(sizes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    given = with_onnx.arrays(sizes["inputs"])
    times, found = zip(*[first(sizes["path"], given) for first in onnx_first.FIRST.values()])
    assert len(times) == 2 and min(times) > 0
    ours, theirs = map(with_onnx.numbers_of, found)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_a_packages_file_is_copied_and_copied_anew_where_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Package:
        def locate_file(self, path: str) -> Path:
            return tmp_path / "package" / path

    source = tmp_path / "package" / MAGIKA.path
    source.parent.mkdir(parents=True)
    source.write_bytes(b"first")
    monkeypatch.setattr(onnx_rows, "MODELS", tmp_path / "models")
    monkeypatch.setattr(onnx_rows.importlib.metadata, "distribution", lambda name: Package())
    path = onnx_rows.model_file(MAGIKA)
    assert path == tmp_path / "models" / "magika.onnx" and path.read_bytes() == b"first"
    source.write_bytes(b"second")
    assert onnx_rows.model_file(MAGIKA).read_bytes() == b"second"
