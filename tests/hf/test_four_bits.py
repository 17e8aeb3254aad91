"""Checkpoints of GPTQ and AWQ give the model of the numbers that their words stand for."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import hf_models
import numpy as np
import pytest
import safetensors.numpy

from polygrad import Tensor, hf, nn
from polygrad.errors import ModelError

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


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", ["llama", "phi3"])
def test_logits_within_1e_5_of_the_model_in_floats(tmp_path: Path, name: str, method: str) -> None:
    packed, plain = write(tmp_path, name, method)
    instance = hf.load_hf(packed, dtype="float32", activations="float32")
    reference = hf.load_hf(plain)
    ids = hf_models.token_ids(2, 21)
    with Tensor.no_grad():
        got, expected = (m.forward(input_ids=ids)["logits"].numpy() for m in (instance, reference))
    assert hf_models.worst(got, expected) < 1e-5
    weight = instance.module.model.layers[0].self_attn.q_proj.weight
    assert isinstance(weight, nn.PackedWeight) and weight.kind == "int4"
    assert instance.unused == []


def test_what_is_saved_is_a_model_in_floats(tmp_path: Path) -> None:
    packed, plain = write(tmp_path, "llama", "gptq")
    hf.load_hf(packed, dtype="float32").save(tmp_path / "saved")
    assert "quantization_config" not in json.loads((tmp_path / "saved" / "config.json").read_text())
    saved = safetensors.numpy.load_file(tmp_path / "saved" / "model.safetensors")
    expected = safetensors.numpy.load_file(plain / "model.safetensors")
    assert saved.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(saved[key], value, rtol=1e-6)


NAME = "model.layers.1.mlp.up_proj"


def _reordered(parts: Parts) -> None:
    parts[f"{NAME}.g_idx"] = parts[f"{NAME}.g_idx"][::-1].copy()


def _without(part: str) -> Any:
    return lambda parts: parts.pop(f"{NAME}.{part}")


def _cut(parts: Parts) -> None:
    parts[f"{NAME}.scales"] = parts[f"{NAME}.scales"][:-1].copy()


def _floats(parts: Parts) -> None:
    parts[f"{NAME}.qweight"] = parts[f"{NAME}.qweight"].astype(np.float32)


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (_reordered, {}, rf"{NAME}.g_idx: columns are grouped by their importance"),
        (_without("qzeros"), {}, rf"{NAME}.qzeros: expected shape \(4, 6\), got None"),
        (_cut, {}, rf"{NAME}.scales: expected shape \(4, 48\), got \(3, 48\)"),
        (_floats, {}, rf"{NAME}.qweight: expected int32, got float32"),
        (None, {"bits": 3}, "bits: expected 4, got 3"),
        (None, {"group_size": 7}, "48 columns in groups of 7"),
        (None, {"checkpoint_format": "marlin"}, "checkpoint_format: expected one of gptq, gptq_v2"),
    ],
)
def test_what_is_damaged_is_named(tmp_path: Path, change: Any, settings: Any, message: str) -> None:
    packed, _ = write(tmp_path, "llama", "gptq", change, **settings)
    with pytest.raises(ModelError, match=message):
        hf.load_hf(packed)


def test_a_configuration_without_packed_tensors_is_refused(tmp_path: Path) -> None:
    packed, plain = write(tmp_path, "llama", "awq")
    shutil.copy(plain / "model.safetensors", packed / "model.safetensors")
    with pytest.raises(ModelError, match=r"quant_method: .* no qweight"):
        hf.load_hf(packed)
