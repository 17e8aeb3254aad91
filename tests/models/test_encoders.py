"""Models that are no plain decoders, judged by `transformers`: outputs, losses and gradients within 1e-4 of
the largest value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoder_cases import CASES, Case
from model_checkpoints import (
    difference,
    load,
    own_inputs,
    randomize,
    save,
    store_in,
    torch_inputs,
    unused,
)

from polygrad import Tensor, nn
from polygrad.models.registry import architecture

# One of each family; the others differ in heads and options, and take as long again.
QUICK = {
    "bert-mlm",
    "bert-one-label",
    "roberta-labels",
    "distilbert-mlm",
    "modernbert-mlm",
    "t5-labels",
    "vit-labels",
    "clip",
    "whisper-labels",
    "resnet-labels",
    "convnext-labels",
    "convnextv2-labels",
    "llama-labels",
}
# Those whose gradients are looked at in each run of the tests.
TRAINED = {"bert-one-label", "vit-labels", "llama-labels"}
# A head that is not tied, with a bias in two places of the file.
UNUSED = {
    "bert-mlm-untied": {"cls.predictions.bias"},
    "roberta-mlm-untied": {"lm_head.bias"},
}


def _checkpoint(case: Case, folder: Path) -> tuple[Any, dict[str, np.ndarray]]:
    model = randomize(case.model())
    save(model, folder)
    return model, case.inputs()


def _compare(ours: dict[str, Any], theirs: Any, inputs: dict[str, np.ndarray], tolerance: float) -> None:
    """All outputs, where tokens are no padding."""
    mask = inputs.get("attention_mask")
    rows = None if mask is None else mask.astype(bool)
    for name, value in ours.items():
        expected = theirs[name]
        pairs = zip(value, expected, strict=True) if isinstance(value, list) else [(value, expected)]
        for index, (a, b) in enumerate(pairs):
            assert a.dtype.name == "float32", f"{name}: {a.dtype}"
            error = difference(a, b, rows)
            assert error < tolerance, f"{name} {index}: {error}"


_ON_DEVICES = [
    *((name, "CPU") for name in CASES),
    *((name, "WASM") for name in sorted(QUICK)),
    *(pytest.param(name, "WASM", marks=pytest.mark.slow) for name in CASES if name not in QUICK),
]


@pytest.mark.parametrize(("name", "device"), _ON_DEVICES)
@pytest.mark.usefixtures("default_device")
def test_outputs_are_those_of_transformers_within_1e_4(name: str, device: str, tmp_path: Path) -> None:
    reference, inputs = _checkpoint(CASES[name], tmp_path)
    model, places = load(tmp_path)
    assert unused(tmp_path, places) == UNUSED.get(name, set())
    with torch.no_grad():
        theirs = reference(**torch_inputs(inputs), **CASES[name].options, return_dict=True)
    with Tensor.no_grad():
        ours = model.forward(**own_inputs(inputs), **CASES[name].options)
    expected = {k for k, v in theirs.items() if v is not None}
    assert expected - set(ours) <= {"past_key_values", "text_model_output", "vision_model_output"}
    _compare(ours, theirs, inputs, 1e-4)


@pytest.mark.parametrize("name", CASES)
def test_a_checkpoint_is_written_as_it_was_read(name: str, tmp_path: Path) -> None:
    reference, _ = _checkpoint(CASES[name], tmp_path)
    model, _ = load(tmp_path)
    file = nn.state.safe_load(str(tmp_path / "model.safetensors"))
    names = architecture(type(reference).__name__).names
    written = names.to_file(nn.state.get_state_dict(model))
    assert set(file) - set(written) == UNUSED.get(name, set())
    assert set(written) - set(file) <= {"lm_head.weight"}  # a T5 1.1 that is tied nevertheless
    for key in set(written) & set(file):
        assert np.array_equal(written[key].numpy(), file[key].numpy()), key


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in TRAINED else [pytest.mark.slow]) for n in sorted(QUICK)]
)
def test_gradients_are_those_of_torch_within_1e_4(name: str, tmp_path: Path) -> None:
    """Of every weight: torch's are written as a checkpoint, and read as one."""
    case = CASES[name]
    reference, inputs = _checkpoint(case, tmp_path)
    model, _ = load(tmp_path)
    options = {k: v for k, v in case.options.items() if k != "output_hidden_states"}
    reference(**torch_inputs(inputs), **options).loss.backward()
    for parameter in reference.parameters():
        parameter.data = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
    save(reference, tmp_path)
    gradients, _ = load(tmp_path)
    model.forward(**own_inputs(inputs), **options)["loss"].backward()
    expected = nn.state.get_state_dict(gradients)
    weights = {n: w for n, w in nn.state.get_state_dict(model).items() if w.requires_grad}
    largest = max(float(np.abs(expected[n].numpy()).max()) for n in weights)
    for own_name, weight in weights.items():
        theirs = expected[own_name].numpy()
        ours = np.zeros_like(theirs) if weight.grad is None else weight.grad.numpy()
        # the gradients of the biases of keys are 0, but for rounding
        scale = max(float(np.abs(theirs).max()), 1e-2 * largest)
        assert np.abs(ours - theirs).max() < 1e-4 * scale, own_name


@pytest.mark.parametrize("name", sorted(QUICK))
def test_weights_in_bfloat16_give_float32_within_1e_4(name: str, tmp_path: Path) -> None:
    """Of what transformers computes in float32 with the same weights."""
    reference, inputs = _checkpoint(CASES[name], tmp_path)
    model, _ = load(tmp_path)
    store_in(model, "bfloat16")
    for parameter in reference.parameters():
        if parameter.requires_grad:
            parameter.data = parameter.data.bfloat16().float()
    with torch.no_grad():
        theirs = reference(**torch_inputs(inputs), **CASES[name].options, return_dict=True)
    with Tensor.no_grad():
        ours = model.forward(**own_inputs(inputs), **CASES[name].options)
    _compare(ours, theirs, inputs, 1e-4)
