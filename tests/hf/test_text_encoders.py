"""Vectors and labels of texts, against transformers; what files say of pooling."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import tiny_text_models
import torch
import transformers

from polygrad import hf
from polygrad.errors import ArgumentError, ModelError
from polygrad.hf.pooling import Pooling, read_pooling
from polygrad.tensor.tensor import Tensor

TEXTS = ["the cat sat", "a dog ran on the red mat .", "cat", "a mat . " * 9, "the dog"]


def hidden(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """transformers' hidden states, and which tokens there are."""
    _, tokenizer, model = tiny_text_models.embedder()
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        states = model(batch["input_ids"], batch["attention_mask"]).last_hidden_state
    return states.numpy(), batch["attention_mask"].numpy()


def mean(texts: list[str]) -> np.ndarray:
    states, mask = hidden(texts)
    return (states * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)


@pytest.mark.parametrize("repeats", [1, 9])
def test_vectors_are_the_means_of_tokens_within_1e_5(repeats):
    model = hf.load_hf(tiny_text_models.embedder()[0])
    expected = mean(TEXTS * repeats)
    for _ in range(3):  # the first call computes, the second captures, the third replays
        got = model.embed(TEXTS * repeats).numpy()
        assert abs(got - expected).max() < 1e-5


def test_vectors_of_one_call_stay_when_another_is_made():
    model = hf.load_hf(tiny_text_models.embedder()[0])
    calls = [model.embed([text]) for text in ("cat", "dog", "mat", "red")]
    expected = mean(["cat", "dog", "mat", "red"])
    assert abs(np.concatenate([c.numpy() for c in calls]) - expected).max() < 1e-5


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)])
def test_vectors_are_in_the_order_of_the_texts(order):
    texts = [("cat", "the cat", "the cat sat")[i] for i in order]
    got = hf.load_hf(tiny_text_models.embedder()[0]).embed(texts).numpy()
    assert abs(got - mean(texts)).max() < 1e-5


def test_tokens_are_taken_like_texts_and_long_ones_are_cut():
    folder, tokenizer, _ = tiny_text_models.embedder()
    model = hf.load_hf(folder)
    assert (model.embed([tokenizer(TEXTS[0])["input_ids"]]).numpy() == model.embed(TEXTS[:1]).numpy()).all()
    assert model.max_tokens == 64
    cut = model.embed(["cat " * 200]).numpy()
    assert abs(cut - mean(["cat " * 62])).max() < 1e-5


@pytest.mark.parametrize("texts", ["one text", [], [[]], [[15]], [[-1]], [[True]], [3], ["a\ud800"]])
def test_what_is_no_list_of_texts_is_refused(texts):
    model = hf.load_hf(tiny_text_models.embedder()[0])
    with pytest.raises((ArgumentError, TypeError)):
        model.embed(texts)


@pytest.mark.parametrize("problem", [None, "multi_label_classification"])
def test_labels_have_the_probabilities_of_transformers_within_1e_5(problem):
    folder, tokenizer, reference = tiny_text_models.classifier(problem)
    found = hf.load_hf(folder).classify(TEXTS)
    batch = tokenizer(TEXTS, return_tensors="pt", padding=True)
    with torch.no_grad():
        logits = reference(batch["input_ids"], batch["attention_mask"]).logits
    expected = (logits.softmax(-1) if problem is None else logits.sigmoid()).numpy()
    assert [list(row) for row in found] == [["bad", "so so", "good"]] * len(TEXTS)
    assert abs(np.array([list(row.values()) for row in found]) - expected).max() < 1e-5


def files(pooling: dict[str, object], *kinds: str) -> dict[str, bytes]:
    modules = [
        {
            "idx": i,
            "name": str(i),
            "path": "1_Pooling" if kind == "Pooling" else "",
            "type": f"x.models.{kind}",
        }
        for i, kind in enumerate(kinds)
    ]
    return {
        "modules.json": json.dumps(modules).encode(),
        "1_Pooling/config.json": json.dumps(pooling).encode(),
    }


def pooled(mode: str, row: np.ndarray) -> np.ndarray:
    """The definition, for the tokens of one text."""
    weights = np.arange(1, len(row) + 1)[:, None]
    return {
        "cls": row[0],
        "max": row.max(0),
        "mean": row.mean(0),
        "mean_sqrt_len_tokens": row.sum(0) / np.sqrt(len(row)),
        "weightedmean": (row * weights).sum(0) / weights.sum(),
        "lasttoken": row[-1],
    }[mode]


@pytest.mark.parametrize("mode", ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
def test_each_mode_of_pooling_takes_the_tokens_of_the_text_alone_within_1e_5(mode):
    states = np.random.default_rng(0).standard_normal((3, 5, 4)).astype(np.float32)
    lengths = [5, 1, 3]
    mask = np.array([[1] * n + [0] * (5 - n) for n in lengths], dtype=np.int32)
    got = Pooling((mode,))(Tensor(states), Tensor(mask)).numpy()
    expected = np.stack([pooled(mode, row[:n]) for row, n in zip(states, lengths, strict=True)])
    assert abs(got - expected).max() < 1e-5


def test_files_name_modes_and_normalisation():
    flags = {
        "pooling_mode_cls_token": True,
        "pooling_mode_mean_tokens": True,
        "pooling_mode_max_tokens": False,
    }
    assert read_pooling({}) == Pooling(("mean",), False)
    assert read_pooling(files(flags, "Transformer", "Pooling")) == Pooling(("cls", "mean"), False)
    assert read_pooling(
        files({"pooling_mode": "lasttoken"}, "Transformer", "Pooling", "Normalize")
    ) == Pooling(("lasttoken",), True)


def test_a_folder_of_sentence_transformers_is_read(tmp_path):
    folder = tmp_path / "model"
    shutil.copytree(tiny_text_models.embedder()[0], folder)
    (folder / "1_Pooling").mkdir()
    for name, data in files({"pooling_mode": "cls"}, "Transformer", "Pooling", "Normalize").items():
        (folder / name).write_bytes(data)
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 8}')
    model = hf.load_hf(folder)
    states, _ = hidden(["the cat"])
    expected = states[0, 0] / np.linalg.norm(states[0, 0])
    assert model.max_tokens == 8
    assert abs(model.embed(["the cat"]).numpy()[0] - expected).max() < 1e-5


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (
            files({}, "Transformer", "Dense"),
            "modules.json: 1: type: expected Transformer, Pooling or Normalize",
        ),
        (files({"pooling_mode_cls_token": False}, "Pooling"), "expected a mode of pooling, got none"),
        (files({"pooling_mode": "median"}, "Pooling"), "pooling_mode: expected one of"),
        ({"modules.json": b"[}"}, "no JSON"),
        ({"modules.json": b"3"}, "expected a list"),
    ],
)
def test_steps_that_do_not_exist_are_refused(bad, words):
    with pytest.raises(ModelError, match=words.replace("[", r"\[")):
        read_pooling(bad)


@pytest.mark.parametrize("text", ["the [MASK] sat on the mat .", "[MASK] [MASK] ran", "a red [MASK]"])
def test_masked_words_are_those_of_transformers_within_1e_5(text: str) -> None:
    folder, tokenizer, reference = tiny_text_models.masked()
    model: Any = hf.load_hf(folder)
    judge = transformers.pipeline("fill-mask", model=reference, tokenizer=tokenizer)
    found = judge(text, top_k=4)
    expected = found if isinstance(found[0], list) else [found]
    answers = model.fill_mask(text, count=4)
    assert len(answers) == len(expected) == text.count("[MASK]")
    for ours, theirs in zip(answers, expected, strict=True):
        assert [a.token for a in ours] == [t["token"] for t in theirs]
        assert [a.text for a in ours] == [t["token_str"] for t in theirs]
        np.testing.assert_allclose(
            [a.probability for a in ours], [t["score"] for t in theirs], rtol=1e-4, atol=1e-5
        )
    ids = tokenizer(text)["input_ids"]
    assert model.fill_mask(ids, count=4) == answers


def test_masks_that_cannot_be_filled(tmp_path: Path) -> None:
    folder, _, _ = tiny_text_models.masked()
    model: Any = hf.load_hf(folder)
    with pytest.raises(ArgumentError, match=r"text: expected at least one \[MASK\]"):
        model.fill_mask("the cat")
    for count in (0, 100, 1.5):
        with pytest.raises(ArgumentError, match="count: expected 1 up to"):
            model.fill_mask("the [MASK]", count)
    settings = json.loads(Path(folder, "tokenizer_config.json").read_text())
    settings.pop("mask_token")
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    (tmp_path / "special_tokens_map.json").unlink(missing_ok=True)
    with pytest.raises(ModelError, match="fill_mask: expected a tokenizer with a mask_token"):
        cast(Any, hf.load_hf(tmp_path)).fill_mask("the [MASK]")
