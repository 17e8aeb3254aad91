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

from bench import encoder_files, gguf_files, hosts, onnx_decoders, worker
from bench.contest import Figures
from bench.libraries import language, language_polygrad, language_torch, with_onnx
from bench.libraries.shapes import Program
from bench.suites import models as suite
from bench.suites import page_models
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


SMALL = {
    "gpt2": gguf_files.Shape("gpt2", 128, 2, 4, 4, 512, 1024, 512),
    "qwen2": gguf_files.Shape("qwen2", 128, 2, 4, 2, 192, 64, 512),
}


@pytest.mark.parametrize("shape", SMALL)
@pytest.mark.parametrize(("format_", "limit"), [("F32", 1e-4), ("Q8_0", 0.1), ("Q4_0", 0.05)])
def test_an_onnx_decoder_gives_the_scores_of_its_gguf_file(
    tmp_path: Path, shape: str, format_: str, limit: float
) -> None:
    """Within so much of the largest: onnxruntime rounds activations to 8 bits where weights have 8 or 4. Of a
    prompt, and of a token that comes after it."""
    import onnxruntime

    path = tmp_path / "model.gguf"
    gguf_files.write(path, SMALL[shape], format_)
    onnx_decoders.write(path, tmp_path / "model")
    tokens = language.tokens_of(20)
    want = language_torch.make(
        "decode", {"path": str(path), "tokens": 20, "dtype": "float32"}, whole=True
    ).check()
    session = onnxruntime.InferenceSession(
        tmp_path / "model" / "onnx" / "model.onnx", providers=["CPUExecutionProvider"]
    )
    names = [x.name for x in session.get_inputs()]
    kept = {name: np.zeros((1, SMALL[shape].kv_heads, 0, 32), np.float32) for name in names if "past" in name}
    scores = np.empty(0)
    for given in (tokens[:-1], tokens[-1:]):
        seen = kept[next(iter(kept))].shape[2]
        inputs = {"input_ids": np.array([given]), "attention_mask": np.ones((1, seen + len(given)), np.int64)}
        if shape == "gpt2":
            inputs["position_ids"] = np.arange(seen, seen + len(given))[None]
        scores, *present = session.run(None, inputs | kept)
        kept = dict(zip(kept, present, strict=True))
    np.testing.assert_allclose(scores[0, -1], want, atol=limit * max(map(abs, want)))
    config = json.loads((tmp_path / "model" / "config.json").read_text())
    assert config["model_type"] == shape and config["vocab_size"] == 512


@pytest.mark.parametrize(("format_", "limit"), [("F32", 1e-4), ("Q8_0", 0.1), ("Q4_0", 0.05)])
def test_onnxruntime_decodes_in_bound_buffers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: str, limit: float
) -> None:
    """Its scores are the file's within so much of the largest, also after steps that wrote the same place."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    path, folder = tmp_path / "model.gguf", tmp_path / "model"
    gguf_files.write(path, SMALL["gpt2"], format_)
    onnx_decoders.write(path, folder, signed=True)
    sizes = {"path": str(path), "tokens": 20, "dtype": "float32", "onnx": str(folder)}
    want = language_torch.make("decode", sizes, whole=True).check()
    program = with_onnx.in_onnxruntime("decode", sizes)
    got = program.check()
    np.testing.assert_allclose(got, want, atol=limit * max(map(abs, want)))
    assert program.step() == program.step()
    assert program.check() == got


def test_a_row_without_onnxruntime_s_folder_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    case, path = suite.decoding("gpt2", "F32", 1), Path("gpt2-F32.gguf")
    monkeypatch.setattr(suite, "onnx_folder", lambda path: path.with_suffix(""))
    assert suite.with_onnx_folder(case, path).sizes["onnx"] == "gpt2-F32"

    def fail(path: Path) -> Path:
        raise suite.Unavailable("no room")

    monkeypatch.setattr(suite, "onnx_folder", fail)
    without = suite.with_onnx_folder(case, path)
    assert without.peers == ("llama.cpp", "torch") and without.cannot == {"onnxruntime": "no room"}
    other = suite.decoding("qwen2", "F32", 1)
    assert "onnxruntime" not in other.peers and suite.with_onnx_folder(other, path) is other


def test_a_format_that_the_onnx_decoder_has_not_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    gguf_files.write(path, SMALL["qwen2"], "Q5_0")
    with pytest.raises(ValueError, match="expected one of F32, Q8_0, Q4_0, got Q5_0"):
        onnx_decoders.write(path, tmp_path / "model")


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
    assert blocks.peers == ("llama.cpp", "onnxruntime") and blocks.cannot == {"torch": suite.NO_BLOCKS}
    assert whole.peers == ("llama.cpp", "torch", "onnxruntime") and not whole.cannot
    assert whole.tolerance < blocks.tolerance == blocks.peer_tolerance  # both round activations


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


class Pages:
    """Answers as a page of each library does: a time, and the first token. Notes what it was asked."""

    def __init__(self, **answers: tuple[float, Any]) -> None:
        self.answers = {name.replace("_", "."): answer for name, answer in answers.items()}
        self.asked: list[Any] = []

    def in_fresh_page(self, library: str, threads: int, kind: str, sizes: dict[str, Any]) -> list[Any]:
        self.asked.append((library, threads, kind, sizes))
        if library not in self.answers:
            raise suite.Unavailable(f"no {library}")
        return list(self.answers[library])


def first_token(monkeypatch: pytest.MonkeyPatch, format_: str, **answers: tuple[float, int]) -> Any:
    monkeypatch.setattr(page_models, "model_file", lambda *_: Path("file"))
    pages = Pages(**answers)
    result = page_models.first_token(pages, "small-gpt2", format_, 1)  # type: ignore[arg-type]
    assert {asked[1:3] for asked in pages.asked} == {(1, "first-token")}
    return result


def test_a_first_token_in_the_page_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    result = first_token(monkeypatch, "F32", polygrad=(1.0, 7), transformers_js=(2.0, 7))
    assert (result.value, result.peers, result.met) == (1e3, {"transformers.js": 2e3}, True)
    result = first_token(monkeypatch, "F32", polygrad=(3.0, 7), transformers_js=(2.0, 7))
    assert not result.met
    result = first_token(monkeypatch, "F32", polygrad=(3.0, 7))
    assert result.met and result.skipped == {"transformers.js": "no transformers.js"}


def test_a_first_token_of_two_kinds_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """But where onnxruntime rounds activations, it may be another one."""
    result = first_token(monkeypatch, "F32", polygrad=(1.0, 7), transformers_js=(2.0, 8))
    assert result.value is None and not result.met and set(result.skipped) == {"polygrad", "transformers.js"}
    assert first_token(monkeypatch, "Q4_0", polygrad=(1.0, 7), transformers_js=(2.0, 8)).met


def test_writing_in_the_page_is_compared_by_the_least_of_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_models, "model_file", lambda *_: Path("file"))
    pages = Pages(polygrad=(2.0, "t7"), transformers_js=(3.0, "t7"), wllama=(4.0, "t7"))
    result = page_models.writing(pages, "F32", 512, 2, 2)  # type: ignore[arg-type]
    assert (result.value, result.peers) == (2.0, {"transformers.js": 3.0, "wllama": 4.0})
    assert (result.case, result.threads, result.met) == ("Qwen2 6×512 F32: writing after 512", 2, True)
    libraries = ["polygrad", "transformers.js", "wllama"] * 2
    sizes = {"path": "file", "context": 512, "count": 32}
    assert pages.asked == [(library, 2, "write", sizes) for library in libraries]
    pages.answers["wllama"] = (2.5, "t8")
    assert not page_models.writing(pages, "Q8_0", 512, 2, 1).met  # type: ignore[arg-type]
    result = page_models.writing(pages, "F32", 512, 2, 1)  # type: ignore[arg-type]
    assert result.value is None and set(result.skipped) == {"polygrad", "transformers.js", "wllama"}
