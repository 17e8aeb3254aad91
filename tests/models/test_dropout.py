"""In training mode each model drops what transformers' does, and in evaluation nothing.

Dropout is random, so both libraries' are replaced by a function of the numbers and of the rate: then outputs
are equal only if the same numbers go through it, at the same place, with the same rate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoder_cases import CASES
from model_checkpoints import difference, load, own_inputs, randomize, save, torch_inputs

from polygrad import Tensor, hf, nn
from polygrad.errors import ModelError

_BERT = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.2}
_WHISPER = {"dropout": 0.1, "attention_dropout": 0.2, "activation_dropout": 0.3}
_MODERNBERT = {
    "embedding_dropout": 0.1,
    "attention_dropout": 0.2,
    "mlp_dropout": 0.3,
    "classifier_dropout": 0.4,
}
_DISTILBERT = {"dropout": 0.1, "attention_dropout": 0.2, "seq_classif_dropout": 0.3}
RATES: dict[str, dict[str, float]] = {
    "bert": _BERT,
    "bert-mlm": _BERT,
    "bert-one-label": {**_BERT, "classifier_dropout": 0.4},
    "bert-tokens": _BERT,
    "roberta-labels": _BERT,
    "distilbert-mlm": _DISTILBERT,
    "distilbert-labels": _DISTILBERT,
    "distilbert-tokens": _DISTILBERT,
    "modernbert-mlm": _MODERNBERT,
    "modernbert-labels": _MODERNBERT,
    "modernbert-tokens": _MODERNBERT,
    "vit-labels": _BERT,
    "clip-text": {"attention_dropout": 0.2},
    "clip-images": {"attention_dropout": 0.2},
    "t5-labels": {"dropout_rate": 0.1},
    "t5-gated": {"dropout_rate": 0.1},
    "whisper-labels": _WHISPER,
}
QUICK = {"bert-one-label", "distilbert-labels", "modernbert-labels", "vit-labels", "t5-gated"}


def _changed(x: Any, p: float) -> Any:
    """In the place of dropout: the same of each number, and no multiple of it."""
    return x * (1 + p) + p


def _models(name: str, folder: Path) -> tuple[Any, Any, dict[str, np.ndarray]]:
    like = CASES[name].model()
    config = type(like.config)(**{**like.config.to_dict(), **RATES[name]})
    config._attn_implementation = "eager"
    reference = randomize(type(like)(config))
    model, _ = load(save(reference, folder))
    return model, reference, CASES[name].inputs()


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in QUICK else [pytest.mark.slow]) for n in RATES]
)
def test_what_is_dropped_is_what_transformers_drops_within_1e_5(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, reference, inputs = _models(name, tmp_path)
    mask = inputs.get("attention_mask")
    rows = None if mask is None else mask.astype(bool)
    rates: list[float] = []

    def theirs(x: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        rates.extend([p] if training and p else [])
        return _changed(x, p) if training and p else x

    monkeypatch.setattr(torch.nn.functional, "dropout", theirs)
    monkeypatch.setattr(
        Tensor, "dropout", lambda self, p=0.5: _changed(self, p) if self.training and p else self
    )
    with torch.no_grad():
        expected = reference.train()(**torch_inputs(inputs))
    assert rates
    key = next(k for k in ("logits", "text_embeds", "image_embeds", "last_hidden_state") if k in expected)
    with Tensor.no_grad(), Tensor.train():
        found = model.forward(**own_inputs(inputs))
    assert difference(found[key], expected[key], rows) < 1e-5
    if "loss" in found:
        assert found["loss"].item() == pytest.approx(expected["loss"].item(), rel=1e-5)
    with torch.no_grad():
        plain = reference.eval()(**torch_inputs(inputs))
    with Tensor.no_grad():
        found = model.forward(**own_inputs(inputs))
    assert difference(found[key], plain[key], rows) < 1e-5
    assert difference(found[key], expected[key], rows) > 1e-3


def test_a_step_of_training_drops_and_a_prediction_does_not(tmp_path: Path) -> None:
    model = CASES["bert-one-label"].model()
    model.config.hidden_dropout_prob = 0.5
    instance: Any = hf.load_hf(save(randomize(model), tmp_path))
    instance.optimizer = nn.optim.SGD(nn.state.get_parameters(instance.module), lr=0.0)  # changes nothing
    inputs = CASES["bert-one-label"].inputs()
    Tensor.manual_seed(0)
    losses = [instance.train_step(**inputs).item() for _ in range(4)]
    assert len(set(losses)) == 4
    outputs = [instance.forward(**inputs)["loss"].item() for _ in range(2)]
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("value", [-0.1, 1.0, "0.1"])
def test_a_rate_out_of_range(value: Any) -> None:
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    config = {"architectures": ["BertModel"], **sizes, "vocab_size": 9, "max_position_embeddings": 8}
    with pytest.raises(ModelError, match="hidden_dropout_prob: expected a "):
        hf.from_config({**config, "hidden_dropout_prob": value})
