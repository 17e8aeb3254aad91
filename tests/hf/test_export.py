"""Every family is exported, and the file computes the same."""

from __future__ import annotations

import tempfile

import encoder_cases
import hf_models
import numpy as np
import pytest

from polygrad import export, hf
from polygrad.hf.example_inputs import example_inputs


@pytest.mark.slow
@pytest.mark.parametrize("name", [*hf_models.DECODERS, *encoder_cases.CASES])
def test_an_exported_model_gives_the_same_bits(name, tmp_path):
    if name in hf_models.DECODERS:
        folder = hf_models.reference(name)[1]
    else:
        folder = tempfile.mkdtemp()
        encoder_cases.CASES[name].model().save_pretrained(folder)
    model = hf.load_hf(folder)
    inputs = example_inputs(model, 2, 6)
    model.export(tmp_path / "model.pgrd", inputs)
    expected, got = model.forward(inputs), export.load(tmp_path / "model.pgrd", native=True).run(inputs)
    assert got
    for key, value in got.items():
        assert np.array_equal(value.numpy(), expected[key].numpy())
