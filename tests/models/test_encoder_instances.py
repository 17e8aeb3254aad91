"""Checkpoints of models that are no plain decoders as Instances: loaded, trained, saved, exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoder_cases import CASES
from model_checkpoints import difference, own_inputs, randomize, save, torch_inputs

import polygrad.export
from polygrad import hf


def _instance(name: str, folder: Path) -> tuple[Any, Any, dict[str, np.ndarray]]:
    reference = randomize(CASES[name].model())
    return hf.load_hf(save(reference, folder)), reference, CASES[name].inputs()


@pytest.mark.parametrize(
    "name",
    [
        "bert-one-label",
        "vit-labels",
        *(
            pytest.param(n, marks=pytest.mark.slow)
            for n in ("t5-labels", "whisper-labels", "convnext-labels")
        ),
    ],
)
def test_training_steps_are_those_of_torch_within_1e_4(name: str, tmp_path: Path) -> None:
    reference, inputs = randomize(CASES[name].model()), CASES[name].inputs()
    for entry in reference.config.to_dict():
        if "dropout" in entry:  # what is dropped is random, and in tests/models/test_dropout.py
            setattr(reference.config, entry, 0.0)
    instance: Any = hf.load_hf(save(reference, tmp_path))
    trained = [p for p in reference.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=5e-5, weight_decay=0.0)
    for _ in range(4):
        loss = reference(**torch_inputs(inputs)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert abs(instance.train_step(**inputs).item() - loss.item()) < 1e-4 * loss.item()


@pytest.mark.parametrize("name", ["roberta-labels", "vit", "t5", "resnet", "gpt2-labels"])
def test_transformers_reads_what_is_saved(name: str, tmp_path: Path) -> None:
    instance, reference, inputs = _instance(name, tmp_path / "first")
    assert instance.unused == []
    instance.save(tmp_path / "second")
    read = type(reference).from_pretrained(tmp_path / "second").eval()
    with torch.no_grad():
        ours, theirs = read(**torch_inputs(inputs)), reference(**torch_inputs(inputs))
    for key in ("logits", "last_hidden_state"):
        if key in theirs:
            assert torch.equal(ours[key], theirs[key])


@pytest.mark.parametrize("name", ["bert-left", "clip", "convnextv2", "whisper"])
def test_an_exported_model_gives_the_same(name: str, tmp_path: Path) -> None:
    instance, _, inputs = _instance(name, tmp_path)
    expected = instance.forward(**own_inputs(inputs))
    path = tmp_path / "model.pgrd"
    instance.export(path, own_inputs(inputs))
    found = polygrad.export.load(path, native=True).run(own_inputs(inputs))
    assert set(found) == set(expected)
    for key, value in expected.items():
        assert difference(found[key], torch.tensor(value.numpy())) < 1e-6
