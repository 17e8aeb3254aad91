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
from four_bit_checkpoints import METHODS, Parts, write

from polygrad import Tensor, hf, nn
from polygrad.errors import ModelError


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
