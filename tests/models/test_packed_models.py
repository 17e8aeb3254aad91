"""Models that are no plain decoders, with their weights packed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from encoder_cases import CASES
from model_checkpoints import own_inputs, randomize, save

from polygrad import Tensor, hf, nn

_FAMILIES = (
    "bert-mlm",
    "bert-one-label",
    "roberta-labels",
    "distilbert-mlm",
    "modernbert-mlm",
    "t5-labels",
    "vit-labels",
    "clip",
    "whisper-labels",
)


def _unpack(model: Any) -> int:
    """Put floats in the places of packed weights; how many there were."""
    count = 0
    for _, owner in list(nn.state.named_objects(model)):
        for name, value in list(vars(owner).items()):
            if isinstance(value, nn.PackedWeight):
                setattr(owner, name, value.dense().contiguous())
                count += 1
    return count


@pytest.mark.parametrize("name", _FAMILIES)
def test_outputs_within_1e_5_of_the_same_numbers_as_floats(name: str, tmp_path: Path) -> None:
    save(randomize(CASES[name].model()), tmp_path)
    inputs = own_inputs(CASES[name].inputs())
    instance = hf.load_hf(tmp_path, quantize="int8", activations="float32")
    with Tensor.no_grad():
        got = {k: v.numpy() for k, v in instance.forward(inputs).items() if isinstance(v, Tensor)}
        assert _unpack(instance.module) > 4
        expected = {k: v.numpy() for k, v in instance.forward(inputs).items() if isinstance(v, Tensor)}
    assert got.keys() == expected.keys() and got
    for key, value in got.items():
        assert abs(value - expected[key]).max() <= 1e-5 * np.abs(expected[key]).max()


def test_weights_of_a_model_with_other_activations_are_set(tmp_path: Path) -> None:
    """Their layouts differ; what is set is the same numbers."""
    save(randomize(CASES["bert-mlm"].model()), tmp_path)
    source, target = hf.load_hf(tmp_path), hf.load_hf(tmp_path)
    source.quantize("q8_0", skip="down_proj", activations="int8")
    target.quantize("q8_0", skip="down_proj", activations="float32")
    packed = [
        [x for _, x in nn.state.named_objects(i.module) if isinstance(x, nn.PackedWeight)]
        for i in (source, target)
    ]
    assert any(x.activations == "int8" for x in packed[0])
    zeros = {name: np.zeros(t.shape, np.float32) for name, t in target.weights().items()}
    target.set_weights(zeros)
    target.set_weights({name: t.numpy() for name, t in source.weights().items()})
    for x, y in zip(*packed, strict=True):
        assert y.activations == "float32"
        np.testing.assert_array_equal(x.dense().numpy(), y.dense().numpy())
