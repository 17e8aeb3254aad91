"""The suite of language models: files that all read alike, what its rows are, processes that forget."""

from __future__ import annotations

import dataclasses
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import bench_package  # noqa: F401
import numpy as np
import pytest

pytest.importorskip("gguf", reason="gguf, which writes the files, is not installed")

from bench import encoder_files, gguf_files, hosts, worker
from bench.contest import Figures
from bench.libraries import language, language_polygrad, language_torch, with_onnx
from bench.libraries.shapes import Program
from bench.suites import models as suite
from polygrad import Tensor


@pytest.fixture
def tiny(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "tiny.gguf"
    gguf_files.write(path, gguf_files.SHAPES["tiny"])
    return {"path": str(path), "tokens": 20, "dtype": "float32"}


@pytest.mark.parametrize("kind", ["decode", "prefill"])
def test_both_libraries_give_the_same_scores_within_1e_4(tiny: dict[str, Any], kind: str) -> None:
    was = Tensor.training
    try:
        ours = language_polygrad.make(kind, tiny, lambda: None)
        got = ours.check()
        ours.step()
        again = language_polygrad.make(kind, tiny, lambda: None).check()
    finally:
        Tensor.training = was
    want = language_torch.make(kind, tiny, whole=True).check()
    assert len(want) == len(got) > 100
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4 * max(map(abs, want)))
    np.testing.assert_array_equal(got, again)


def test_vectors_of_sentences_are_those_of_onnxruntime_and_torch_within_1e_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(encoder_files, "LAYERS", 1)
    monkeypatch.setitem(encoder_files.CONFIG, "num_hidden_layers", 1)
    encoder_files.write(tmp_path, 3, 16)
    sizes = {"path": str(tmp_path), "sentences": 3, "tokens": 16}
    was = Tensor.training
    try:
        got = language_polygrad.make("embed", sizes, lambda: None).check()
    finally:
        Tensor.training = was
    for theirs in (language_torch.make("embed", sizes, False), with_onnx.in_onnxruntime("embed", sizes)):
        np.testing.assert_allclose(got, theirs.check(), atol=1e-4)


def test_a_file_that_was_not_finished_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError("no space")

    monkeypatch.setattr(gguf_files, "values", fail)
    with pytest.raises(OSError, match="no space"):
        gguf_files.write(tmp_path / "tiny.gguf", gguf_files.SHAPES["tiny"])
    assert not (tmp_path / "tiny.gguf").exists()


def test_tokens_and_sentences_are_of_any_vocabulary() -> None:
    assert max(language.tokens_of(4096)) < 512 and len(language.tokens_of(4096)) == 4096
    rows = language.sentences_of(32, 64)
    assert len({tuple(row) for row in rows}) == 32 and max(map(max, rows)) < 512


def test_the_share_of_a_read_is_one_of_time() -> None:
    goal = suite.reads(0.85)
    assert goal.met(Figures(10.0, {}, {suite.READ: 8.5}))
    assert not goal.met(Figures(10.1, {}, {suite.READ: 8.5}))
    assert not goal.met(Figures(1.0, {}, {}))


def test_rows_name_who_cannot_and_how_far_off_peers_may_be() -> None:
    blocks, whole = (suite.decoding("gpt2", format_, 1) for format_ in ("Q4_0", "F32"))
    assert blocks.peers == ("llama.cpp",) and blocks.cannot == {"torch": suite.NO_BLOCKS}
    assert whole.peers == ("llama.cpp", "torch") and not whole.cannot
    assert blocks.tolerance == whole.tolerance < blocks.peer_tolerance


def test_llama_cpp_s_python_may_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BENCH_LLAMA_PYTHON", "/some/python")
    assert hosts.llama_python() == Path("/some/python")
    monkeypatch.delenv("BENCH_LLAMA_PYTHON")
    monkeypatch.setattr(hosts, "LLAMA", tmp_path / "llama")
    monkeypatch.setattr(hosts.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess("pip", 1))
    with pytest.raises(hosts.Unavailable, match="BENCH_LLAMA_PYTHON"):
        hosts.llama_python()


def test_a_worker_forgets_what_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [
        {"op": "prepare", "slot": "case", "kind": "x", "sizes": {}},
        {"op": "drop", "slot": "case"},
        {"op": "drop", "slot": "case"},
        {"op": "sample", "slot": "case", "seconds": 0.01},
    ]
    monkeypatch.setattr(worker, "maker", lambda library: lambda kind, sizes: Program(lambda: None, list))
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(json.dumps(r) + "\n" for r in requests)))
    answers = io.StringIO()
    monkeypatch.setattr(sys, "stdout", answers)
    worker.main("any")
    prepared, dropped, again, sampled = map(json.loads, answers.getvalue().splitlines())
    assert prepared["check"] == [] and dropped == again == {} and sampled == {"error": "KeyError: 'case'"}


def test_contexts_are_drawn_if_all_were_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bench" / "pictures").mkdir(parents=True)
    monkeypatch.setattr(suite, "ROOT", tmp_path)
    rows = [
        dataclasses.replace(
            suite.unavailable(case, suite.Unavailable("no")), value=float(i), peers={"llama.cpp": 2.0}
        )
        for i, case in enumerate(suite.context_cases(), 1)
    ]
    suite.draw(rows[1:])
    assert not list((tmp_path / "bench" / "pictures").iterdir())
    suite.draw(rows)
    text = (tmp_path / "bench" / "pictures" / "models-contexts.svg").read_text()
    assert "polygrad" in text and "llama.cpp" in text
