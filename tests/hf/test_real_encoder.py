"""all-MiniLM-L6-v2, a sentence encoder with real weights, judged by transformers."""

from __future__ import annotations

import functools
from typing import Any

import model_packages
import numpy as np
import pytest

from polygrad import hf

SENTENCES = [
    "A man is eating food.",
    "Somebody has a meal.",
    "How do I renew my passport?",
    "Where can I get a new travel document?",
    "The sky above the port was the colour of television, tuned to a dead channel.",
    "The cat sat on the mat; it was raining, and the neighbour's dog barked all night long. " * 12,
    "Straße, café, 東京 — 🙂!",
    "a",
]


@functools.cache
def expected() -> np.ndarray[Any, Any]:
    """The unit vectors that the model's card describes: means over tokens of the last hidden states."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    folder = str(model_packages.place(model_packages.MINILM))
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    texts = tokenizer(SENTENCES, padding=True, truncation=True, max_length=256, return_tensors="pt")
    with torch.no_grad():
        states = model(**texts).last_hidden_state
    mask = texts["attention_mask"][:, :, None].float()
    means = (states * mask).sum(1) / mask.sum(1)
    found: np.ndarray[Any, Any] = torch.nn.functional.normalize(means).numpy()
    return found


@pytest.mark.parametrize("device", ["CPU", "WASM"])
def test_vectors_of_sentences_are_those_of_transformers_within_1e_5(device: str) -> None:
    model = hf.load_hf(model_packages.place(model_packages.MINILM), device=device)
    vectors = model.embed(SENTENCES).numpy()
    assert np.abs(vectors - expected()).max() < 1e-5


def test_sentences_that_mean_the_same_are_near() -> None:
    model = hf.load_hf(model_packages.place(model_packages.MINILM))
    vectors = model.embed(SENTENCES[:5]).numpy()
    likeness = vectors @ vectors.T
    assert likeness[0].argsort()[-2] == 1 and likeness[2].argsort()[-2] == 3


def test_weights_in_few_bits_find_the_same_neighbours() -> None:
    folder = model_packages.place(model_packages.MINILM)
    packed = hf.load_hf(folder, quantize="q8_0").embed(SENTENCES).numpy()
    assert (packed * expected()).sum(-1).min() > 0.999
