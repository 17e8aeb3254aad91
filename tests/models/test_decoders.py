"""Decoders compute what transformers' do: to 1e-5 of the largest value, with padding on the left."""

from __future__ import annotations

from typing import Any

import hf_models
import numpy as np
import pytest
import torch
from hf_models import DECODERS

from polygrad import Tensor

_TOLERANCE = 1e-5
# What runs on each device quickly: one family of each kind of layer.
_QUICK = ("llama", "gpt2", "gemma2", "qwen3 experts")


def _cases() -> list[Any]:
    out = []
    for device in ("CPU", "WASM"):
        for name in DECODERS:
            is_slow = device != "CPU" and name not in _QUICK
            marks = [pytest.mark.slow] if is_slow else []
            out.append(pytest.param(name, device, marks=marks, id=f"{name}-{device}"))
    return out


@pytest.mark.parametrize(("name", "device"), _cases())
def test_hidden_states_and_logits_within_1e_5(name: str, device: str) -> None:
    model, _ = hf_models.reference(name)
    ids, mask = hf_models.token_ids(2, 21), np.ones((2, 21), int)
    mask[0, :5] = 0
    positions = np.maximum(mask.cumsum(1) - 1, 0)
    with torch.no_grad():
        expected = model(
            torch.tensor(ids),
            attention_mask=torch.tensor(mask),
            position_ids=torch.tensor(positions),
            output_hidden_states=True,
        )
    instance = hf_models.ours(name, device=device)
    with Tensor.no_grad():
        out = instance.forward(
            input_ids=ids, attention_mask=mask, position_ids=positions, output_hidden_states=True
        )
    is_token = mask.astype(bool)
    assert instance.unused == []
    assert len(out["hidden_states"]) == len(expected.hidden_states)
    for state, reference in zip(out["hidden_states"], expected.hidden_states, strict=True):
        assert hf_models.worst(state.numpy()[is_token], reference.numpy()[is_token]) < _TOLERANCE
    logits = out["logits"].numpy()[is_token]
    assert hf_models.worst(logits, expected.logits.numpy()[is_token]) < _TOLERANCE


@pytest.mark.parametrize("name", ["llama", "gemma3", "qwen3"])
def test_bfloat16_within_2e_2(name: str) -> None:
    model, _ = hf_models.reference(name)
    ids = hf_models.token_ids(2, 21)
    with torch.no_grad():
        expected = model(torch.tensor(ids)).logits.numpy()
    instance = hf_models.ours(name, dtype="bfloat16")
    assert {t.dtype.name for t in instance.weights().values()} == {"bfloat16"}
    assert hf_models.worst(instance.forward(input_ids=ids)["logits"].float().numpy(), expected) < 2e-2


@pytest.mark.parametrize("name", ["llama", "phi3", "mixtral", "qwen2"])
def test_steps_of_training_are_torchs(name: str) -> None:
    model, folder = hf_models.reference(name)
    model = type(model).from_pretrained(folder).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.0)
    instance, ids = hf_models.ours(name), hf_models.token_ids(2, 12)
    for _ in range(3):
        expected = model(torch.tensor(ids), labels=torch.tensor(ids)).loss
        expected.backward()
        optimizer.step()
        optimizer.zero_grad()
        assert instance.train_step(input_ids=ids, labels=ids).item() == pytest.approx(
            expected.item(), abs=1e-4
        )
    theirs = dict(model.named_parameters())
    names = instance.architecture.names.to_file(instance.weights())
    for key, value in names.items():
        if key in theirs:
            assert hf_models.worst(value.detach().numpy(), theirs[key].detach().numpy()) < 1e-3, key


@pytest.mark.parametrize("name", ["llama", "gpt2", "phi3", "mixtral", "qwen2 experts"])
def test_a_saved_model_is_read_by_transformers(name: str, tmp_path: Any) -> None:
    model, _ = hf_models.reference(name)
    hf_models.ours(name).save(tmp_path)
    again = type(model).from_pretrained(tmp_path).eval()
    ids = torch.tensor(hf_models.token_ids(1, 9))
    with torch.no_grad():
        assert torch.equal(again(ids).logits, model(ids).logits)
