"""Models in Node and in a page: real ones by `load`, and converted ones without Python, within 1e-3 of
onnxruntime."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import model_packages
import numpy as np
import onnxruntime
import pytest
from javascript_hosts import ROOT, built
from model_packages import MAGIKA, RAPIDOCR, SILERO
from onnx import helper
from onnx_models import attention, ints, model
from real_inputs import FILES, chunks, features, strokes

from polygrad.cli.main import main

pytestmark = [pytest.mark.e2e, built]
HERE = Path(__file__).parent
Inputs = dict[str, np.ndarray]
HOSTS = [*(pytest.param(host, marks=pytest.mark.slow) for host in ("node", "node-worker")), "chromium"]


def judge(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs)))


def encoded(x: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(x).tobytes()).decode()
    return {"dtype": x.dtype.name, "shape": list(x.shape), "data": data}


def decoded(x: dict[str, Any]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(x["data"]), np.dtype(x["dtype"])).reshape(x["shape"])


def compare(
    host: str, folder: Path, jobs: dict[Path, list[Inputs]], run: dict[Path, Path] | None = None
) -> None:
    """Run each model on its rounds; `run`: the converted files that stand for them."""
    told = [
        {
            "model": str((run or {}).get(path, path)),
            "rounds": [{n: encoded(x) for n, x in r.items()} for r in rounds],
        }
        for path, rounds in jobs.items()
    ]
    (folder / "jobs.json").write_text(json.dumps(told))
    command = ["node", str(HERE / "run_models.mjs"), host, str(folder / "jobs.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=580, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-3000:]
    results = json.loads(done.stdout.splitlines()[-1])
    for (path, rounds), found in zip(jobs.items(), results, strict=True):
        wanted = judge(path)
        for inputs, outputs in zip(rounds, found, strict=True):
            for name, want in wanted(inputs).items():
                got = decoded(outputs[name])
                assert got.shape == want.shape and got.dtype == want.dtype, (path.name, name)
                message = f"{path.name}: {name}"
                np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4, err_msg=message)


def files_of_several_types() -> list[Inputs]:
    return [{"bytes": features((ROOT / name).read_bytes())} for name in FILES.values()]


@pytest.mark.parametrize("host", HOSTS)
def test_magika_and_the_direction_of_text_within_1e_3(host: str, tmp_path: Path) -> None:
    jobs = {
        model_packages.place(MAGIKA) / "model.onnx": files_of_several_types(),
        model_packages.place(RAPIDOCR) / "ch_ppocr_mobile_v2.0_cls_infer.onnx": [
            {"x": strokes((1, 3, 48, 192), 0)},
            {"x": strokes((2, 3, 48, 192), 1)},
        ],
    }
    compare(host, tmp_path, jobs)


@pytest.mark.slow
def test_models_on_the_gpu_of_a_page_within_1e_3(tmp_path: Path) -> None:
    """Also one that reads a tensor's numbers on the way, for which Python waits for the GPU."""
    (tmp_path / "reads.onnx").write_bytes(reads())
    rng = np.random.default_rng(0)
    jobs = {
        ROOT / "examples" / "data" / "digits.onnx": [
            {"image": rng.uniform(0, 16, (3, 1, 8, 8)).astype(np.float32)}
        ],
        model_packages.place(RAPIDOCR) / "ch_ppocr_mobile_v2.0_cls_infer.onnx": [
            {"x": strokes((1, 3, 48, 192), 4)}
        ],
        tmp_path / "reads.onnx": [{"x": rng.normal(size=(2, 6)).astype(np.float32)}],
    }
    compare("chromium-gpu", tmp_path, jobs)


def reads() -> bytes:
    """x without the columns behind the one with the largest sum, which decides the output's shape."""
    node = helper.make_node
    nodes = [
        node("ReduceSum", ["x", "first"], ["sums"], keepdims=0),
        node("ArgMax", ["sums"], ["best"], axis=0, keepdims=1),
        node("Add", ["best", "one"], ["end"]),
        node("Slice", ["x", "zero", "end", "axis"], ["y"]),
    ]
    numbers = [ints("first", [0]), ints("one", [1]), ints("zero", [0]), ints("axis", [1])]
    return model(nodes, ["x"], ["y"], numbers)


@pytest.mark.slow
@pytest.mark.parametrize("host", ["node", "chromium"])
def test_silero_vad_and_reading_text_within_1e_3(host: str, tmp_path: Path) -> None:
    folder = model_packages.place(SILERO)
    jobs: dict[Path, list[Inputs]] = {}
    for name, rate in (("silero_vad.onnx", 16000), ("silero_vad_op18_ifless.onnx", 8000)):
        state, rounds = np.zeros((2, 1, 128), np.float32), []
        for x in chunks(rate):
            rounds.append({"input": x, "state": state, "sr": np.array(rate)})
            state = judge(folder / name)(rounds[-1])["stateN"]
        jobs[folder / name] = rounds
    jobs[model_packages.place(RAPIDOCR) / "ch_PP-OCRv4_rec_infer.onnx"] = [{"x": strokes((1, 3, 48, 160), 2)}]
    compare(host, tmp_path, jobs)


# --- polygrad convert, and polygrad/runtime without Python


def convert(path: Path, target: Path, *sizes: str) -> Path:
    options = [word for size in sizes for word in ("--size", size)]
    assert main("1.2.3", ["convert", str(path), str(target), "--device", "WASM", *options]) == 0
    return target


def test_one_converted_file_serves_all_sizes_within_1e_3(tmp_path: Path) -> None:
    path = ROOT / "examples" / "data" / "digits.onnx"
    rng = np.random.default_rng(0)
    rounds = [{"image": rng.uniform(0, 16, (n, 1, 8, 8)).astype(np.float32)} for n in (1, 5, 8, 2)]
    made = convert(path, tmp_path / "digits.pgrd", "batch=1:8")
    compare("runtime", tmp_path, {path: rounds}, {path: made})


def test_a_converted_model_of_two_symbolic_sizes_within_1e_3(tmp_path: Path) -> None:
    (tmp_path / "attention.onnx").write_bytes(attention())
    rng = np.random.default_rng(0)
    rounds = [
        {"x": rng.normal(size=(n, m, 4)).astype(np.float32), "ids": rng.integers(0, 7, (n, m))}
        for n, m in [(1, 3), (8, 16), (3, 1), (4, 7)]
    ]
    path = tmp_path / "attention.onnx"
    made = convert(path, tmp_path / "attention.pgrd", "batch=1:8", "length.1=1:16")
    compare("runtime", tmp_path, {path: rounds}, {path: made})


def test_real_models_converted_within_1e_3(tmp_path: Path) -> None:
    magika = model_packages.place(MAGIKA) / "model.onnx"
    direction = model_packages.place(RAPIDOCR) / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
    (batch,) = [
        n for n in onnxruntime.InferenceSession(str(magika)).get_inputs()[0].shape if isinstance(n, str)
    ]
    made = {
        magika: convert(magika, tmp_path / "magika.pgrd", f"{batch}=1:4"),
        direction: convert(direction, tmp_path / "direction.pgrd", "x.0=1", "x.2=48", "x.3=192"),
    }
    jobs = {magika: files_of_several_types(), direction: [{"x": strokes((1, 3, 48, 192), 3)}]}
    compare("runtime", tmp_path, jobs, made)
