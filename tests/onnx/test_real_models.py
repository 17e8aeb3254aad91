"""Real models, from the packages that ship them: outputs within 1e-3 of onnxruntime's on real inputs.

The inputs are files of this repository, a sound that rises and falls as a voice does, and a picture of text.
"""

from __future__ import annotations

import json
from pathlib import Path

import model_packages
import numpy as np
import onnx
import onnxruntime
import pytest
from real_inputs import FILES, chunks, features, strokes

import polygrad.onnx
from polygrad import Tensor, export

ROOT = Path(__file__).resolve().parents[2]


def by_onnxruntime(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs)))


def compare(model, path, *rounds, feed=None):
    """Outputs for each round of inputs; `feed` says which output is which input of the next round."""
    judge = by_onnxruntime(str(path))
    state = {}
    for inputs in rounds:
        inputs = {**inputs, **state}
        found, wanted = model({n: Tensor(x) for n, x in inputs.items()}), judge(inputs)
        for name, want in wanted.items():
            got = found[name].numpy()
            assert got.shape == want.shape and got.dtype == want.dtype, name
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4, err_msg=name)
        state = {target: wanted[source] for target, source in (feed or {}).items()}


# --- magika: which type a file is of


def test_magika_within_1e_3_and_types_of_files():
    folder = model_packages.place(model_packages.MAGIKA)
    labels = json.loads((folder / "config.min.json").read_text())["target_labels_space"]
    path = folder / "model.onnx"
    m = polygrad.onnx.load(path)
    rounds = {label: {"bytes": features((ROOT / name).read_bytes())} for label, name in FILES.items()}
    compare(m, path, *rounds.values())
    for label, inputs in rounds.items():
        assert labels[m(inputs)["target_label"].argmax(-1).item()] == label


def test_magika_captured_for_all_batches_and_exported_within_1e_3(tmp_path):
    path = model_packages.place(model_packages.MAGIKA) / "model.onnx"
    m = polygrad.onnx.load(path)
    (batch,) = [n for n in m.inputs[0].shape if isinstance(n, str)]
    step = m.capture(**{batch: (1, 5)})
    rows = np.concatenate([features((ROOT / name).read_bytes()) for name in FILES.values()])
    judge = by_onnxruntime(str(path))
    for n in (1, 3, 5, 2):
        want = judge({"bytes": rows[:n]})["target_label"]
        np.testing.assert_allclose(step(bytes=rows[:n])["target_label"].numpy(), want, rtol=1e-3, atol=1e-4)
    m.export(tmp_path / "m.pgrd", **{batch: 2})
    found = export.load(tmp_path / "m.pgrd", native=True).run(bytes=rows[:2])["target_label"]
    np.testing.assert_allclose(
        found.tolist(), judge({"bytes": rows[:2]})["target_label"], rtol=1e-3, atol=1e-4
    )


# --- silero-vad: whether somebody speaks


EXPORTS = {
    "silero_vad.onnx": (16000, 8000),
    "silero_vad_16k_op15.onnx": (16000,),
    "silero_vad_op18_ifless.onnx": (16000, 8000),
    "silero_vad_half.onnx": (16000,),
    "silero_vad_openvino_16k.onnx": (16000,),
}


@pytest.mark.parametrize(("name", "rate"), [(n, r) for n, rates in EXPORTS.items() for r in rates])
def test_silero_vad_within_1e_3(name, rate):
    path = model_packages.place(model_packages.SILERO) / name
    m = polygrad.onnx.load(path)
    start = {"state": np.zeros((2, 1, 128), np.float32)}
    if "sr" in [p.name for p in m.inputs]:
        start["sr"] = np.array(rate)
    rounds = [{"input": x, **start} for x in chunks(rate)]
    compare(m, path, *rounds, feed={"state": "stateN"})


def test_silero_vad_of_whole_sequences_within_1e_3():
    path = model_packages.place(model_packages.SILERO) / "silero_vad_16k_sequence.onnx"
    zeros = {name: np.zeros((1, 1, 128), np.float32) for name in "hc"}
    x = np.concatenate(chunks(16000, 6))
    compare(polygrad.onnx.load(path), path, {"input": x, **zeros}, {"input": x[:3], **zeros})


def test_silero_vad_captured_within_1e_3():
    path = model_packages.place(model_packages.SILERO) / "silero_vad_openvino_16k.onnx"
    m = polygrad.onnx.load(path)
    step, judge, state = m.capture(), by_onnxruntime(str(path)), np.zeros((2, 1, 128), np.float32)
    for x in chunks(16000):
        want = judge({"input": x, "state": state})
        got = step(input=x, state=state)
        np.testing.assert_allclose(got["output"].numpy(), want["output"], rtol=1e-3, atol=1e-4)
        state = want["stateN"]


# --- PP-OCRv4: where text is, which way up it is, and what it says

OCR = {
    "ch_PP-OCRv4_det_infer.onnx": [(1, 3, 160, 320), (1, 3, 96, 128)],
    "ch_ppocr_mobile_v2.0_cls_infer.onnx": [(2, 3, 48, 192)],
    "ch_PP-OCRv4_rec_infer.onnx": [(1, 3, 48, 160), (2, 3, 48, 320)],
}


@pytest.mark.parametrize("name", OCR)
def test_pp_ocr_within_1e_3(name):
    path = model_packages.place(model_packages.RAPIDOCR) / name
    rounds = [{"x": strokes(shape, seed)} for seed, shape in enumerate(OCR[name])]
    compare(polygrad.onnx.load(path), path, *rounds)


def test_all_ops_of_the_packages_models_are_here():
    for package in (model_packages.SILERO, model_packages.MAGIKA, model_packages.RAPIDOCR):
        files = list(model_packages.place(package).rglob("*.onnx"))
        assert files
        for path in files:
            assert polygrad.onnx.inspect(path).runs, path
            onnx.checker.check_model(str(path))
