"""T5 and Whisper write what transformers writes, side by side and one after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from encoder_cases import CASES
from model_checkpoints import randomize, save

from polygrad import Tensor, hf
from polygrad.errors import ArgumentError

_COUNT = 12


def _pair(name: str, folder: Path, batch: int) -> tuple[Any, Any]:
    model = randomize(CASES[name].model())
    return model, hf.load_hf(save(model, folder), max_batch=batch, max_seq_len=40)


def _reference(model: Any, **inputs: torch.Tensor) -> list[int]:
    """The likeliest tokens one after the other, without a cache."""
    tokens = [model.config.decoder_start_token_id]
    for _ in range(_COUNT):
        with torch.no_grad():
            scores = model(**inputs, decoder_input_ids=torch.tensor([tokens])).logits
        tokens.append(int(scores[0, -1].argmax()))
    return tokens[1:]


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("name", ["t5", "t5-gated"])
def test_t5_writes_what_transformers_writes(name: str, batch: int, tmp_path: Path) -> None:
    model, ours = _pair(name, tmp_path, batch)
    texts = [np.random.default_rng(i).integers(3, 99, n).tolist() for i, n in enumerate((4, 9, 6))]
    expected = [_reference(model, input_ids=torch.tensor([t])) for t in texts]
    answers = ours.generate(texts, max_new_tokens=_COUNT, stop_tokens=())
    assert [list(a.tokens) for a in answers] == expected
    assert list(ours.generate(texts[1], max_new_tokens=_COUNT, stop_tokens=()).tokens) == expected[1]


def test_whisper_writes_what_transformers_writes(tmp_path: Path) -> None:
    model, ours = _pair("whisper", tmp_path, 2)
    encoder = ours.module.encoder
    sounds = np.random.default_rng(0).standard_normal((3, encoder.bands, 2 * encoder.length))
    sounds = sounds.astype(np.float32)
    expected = [_reference(model, input_features=torch.tensor(s)[None]) for s in sounds]
    answers = ours.generate([Tensor(s) for s in sounds], max_new_tokens=_COUNT, stop_tokens=())
    assert [list(a.tokens) for a in answers] == expected


def test_sound_from_another_device_is_read(tmp_path: Path) -> None:
    _, ours = _pair("whisper", tmp_path, 1)
    encoder = ours.module.encoder
    sound = np.random.default_rng(1).standard_normal((encoder.bands, 2 * encoder.length)).astype(np.float32)
    other = "WASM" if Tensor.zeros(1).device == "CPU" else "CPU"
    there = hf.load_hf(tmp_path, device=other)
    expected = ours.generate(Tensor(sound), max_new_tokens=_COUNT, stop_tokens=())
    assert there.generate(Tensor(sound), max_new_tokens=_COUNT, stop_tokens=()).tokens == expected.tokens


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    _, ours = _pair("t5", tmp_path, 1)
    with pytest.raises(ArgumentError, match="text needs a tokenizer"):
        ours.generate("a text")
    with pytest.raises(ArgumentError, match="empty list"):
        ours.generate([])
