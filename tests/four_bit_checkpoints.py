"""Checkpoints of GPTQ and AWQ, and the same numbers as floats."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import hf_models
import numpy as np
import safetensors.numpy

GROUP = 8
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # the columns in a word, from its low bits on
Parts = dict[str, np.ndarray]


def words(x: np.ndarray) -> np.ndarray:
    """(..., 8) numbers below 16 to (...) int32, the first in the low bits."""
    return (
        (x.astype(np.uint32) << (4 * np.arange(8, dtype=np.uint32))).sum(-1, dtype=np.uint32).view(np.int32)
    )


def along_columns(x: np.ndarray, order: tuple[int, ...] = tuple(range(8))) -> np.ndarray:
    return words(x.reshape(len(x), -1, 8)[:, :, list(order)])


def gptq(q: np.ndarray, zeros: np.ndarray, scales: np.ndarray) -> Parts:
    """q (in, out), zeros and scales (groups, out)."""
    return {
        "qweight": words(q.reshape(-1, 8, q.shape[1]).swapaxes(1, 2)),
        "qzeros": along_columns(zeros - 1),
        "scales": scales,
        "g_idx": np.arange(len(q), dtype=np.int32) // (len(q) // len(scales)),
    }


def awq(q: np.ndarray, zeros: np.ndarray, scales: np.ndarray) -> Parts:
    return {
        "qweight": along_columns(q, AWQ_ORDER),
        "qzeros": along_columns(zeros, AWQ_ORDER),
        "scales": scales,
    }


METHODS = {"gptq": gptq, "awq": awq}


def write(folder: Path, name: str, method: str, change: Any = None, **settings: Any) -> tuple[Path, Path]:
    """A checkpoint whose projections are in 4 bits, and one in float32 of the same numbers."""
    _, source = hf_models.reference(name)
    packed, plain = folder / "packed", folder / "plain"
    for target in (packed, plain):
        shutil.copytree(source, target)
    state = safetensors.numpy.load_file(packed / "model.safetensors")
    rng = np.random.default_rng(0)
    parts, floats = dict(state), dict(state)
    for key, weight in state.items():
        if "proj" not in key or not key.endswith(".weight"):
            continue
        out, columns = weight.shape
        q = rng.integers(0, 16, (columns, out))
        zeros = rng.integers(1, 16, (columns // GROUP, out))
        scales = (rng.random((columns // GROUP, out)) * 0.02).astype(np.float16)
        wide = [x.repeat(GROUP, 0).astype(np.float32) for x in (zeros, scales)]
        floats[key] = np.ascontiguousarray(((q - wide[0]) * wide[1]).T)
        del parts[key]
        stem = key.removesuffix("weight")
        parts |= {
            stem + part: np.ascontiguousarray(x) for part, x in METHODS[method](q, zeros, scales).items()
        }
    if change is not None:
        change(parts)
    safetensors.numpy.save_file(parts, packed / "model.safetensors", metadata={"format": "pt"})
    safetensors.numpy.save_file(floats, plain / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((packed / "config.json").read_text())
    config["quantization_config"] = {"quant_method": method, "bits": 4, "group_size": GROUP} | settings
    (packed / "config.json").write_text(json.dumps(config))
    return packed, plain
