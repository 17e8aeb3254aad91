"""Configurations of models that are no plain decoders: what cannot be is refused by name, and building
computes nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest
from encoder_cases import CASES

from polygrad import Tensor, nn
from polygrad.engine.counters import GlobalCounters
from polygrad.errors import ArgumentError, ModelError, ShapeError
from polygrad.models.fields import Fields
from polygrad.models.registry import architecture_of
from polygrad.models.t5 import buckets_of_distances


def _config(name: str) -> dict[str, Any]:
    """The configuration that transformers writes for a case."""
    model = CASES[name].model()
    return model.config.to_dict() | {"architectures": [type(model).__name__]}


def _build(config: dict[str, Any]) -> Any:
    fields = Fields(config)
    return architecture_of(fields).build(fields)


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("bert", {"num_attention_heads": 5}, "num_attention_heads: expected a divisor of hidden_size, 32"),
        ("bert", {"hidden_size": None}, "hidden_size: missing"),
        ("bert", {"hidden_size": "32"}, "hidden_size: expected an integer"),
        ("bert", {"hidden_size": True}, "hidden_size: expected an integer"),
        ("bert", {"num_hidden_layers": 0}, "num_hidden_layers: expected an integer from 1"),
        ("bert", {"num_hidden_layers": 1 << 31}, "num_hidden_layers: expected an integer from 1 to 4096"),
        ("bert", {"vocab_size": 1 << 40}, "vocab_size: expected an integer from 1"),
        ("bert", {"layer_norm_eps": float("nan")}, "layer_norm_eps: expected a finite number"),
        ("bert", {"hidden_act": "gelu_of_mine"}, "hidden_act: expected one of"),
        ("bert", {"is_decoder": True}, "is_decoder: expected false"),
        ("bert", {"position_embedding_type": "relative_key"}, "position_embedding_type: expected one of"),
        ("bert-one-label", {"id2label": {}}, "id2label: expected at least one label"),
        ("bert-one-label", {"id2label": 3}, "id2label: expected a JSON object"),
        ("bert-one-label", {"problem_type": "guessing"}, "problem_type: expected one of"),
        ("bert-mlm", {"tie_word_embeddings": "yes"}, "tie_word_embeddings: expected true or false"),
        ("roberta", {"pad_token_id": -1}, "pad_token_id: expected an integer from 0"),
        (
            "roberta",
            {"max_position_embeddings": 2},
            "max_position_embeddings: expected more than pad_token_id",
        ),
        ("distilbert", {"dim": 33}, "n_heads: expected a divisor of dim, 33"),
        ("distilbert", {"activation": 3}, "activation: expected one of"),
        ("modernbert", {"layer_types": ["full_attention"]}, "layer_types: expected 4 of"),
        ("modernbert", {"layer_types": ["full_attention"] * 3 + ["odd"]}, "layer_types: expected 4 of"),
        ("modernbert", {"local_attention": 1}, "local_attention: expected an integer from 2"),
        ("modernbert-labels", {"classifier_pooling": "max"}, "classifier_pooling: expected one of"),
        ("t5", {"feed_forward_proj": "gated-odd"}, "feed_forward_proj: expected one of"),
        ("t5", {"feed_forward_proj": "twice-gelu"}, "feed_forward_proj: expected one of"),
        (
            "t5",
            {"relative_attention_num_buckets": 6},
            "relative_attention_num_buckets: expected a multiple of 4",
        ),
        ("t5", {"relative_attention_max_distance": 4}, "relative_attention_max_distance: expected more than"),
        ("t5", {"relative_attention_max_distance": 1 << 31}, "relative_attention_max_distance: expected"),
        ("t5", {"d_ff": -1}, "d_ff: expected an integer from 1"),
        ("vit", {"patch_size": 7}, "patch_size: expected a divisor of image_size, 24"),
        ("vit", {"image_size": [24, 24]}, "image_size: expected an integer"),
        ("clip", {"vision_config": None}, "vision_config: missing"),
        ("clip", {"text_config": []}, "text_config: expected a JSON object"),
        ("clip", {"text_config": {"hidden_size": 32}}, "text_config: num_attention_heads: missing"),
        ("whisper", {"decoder_attention_heads": 3}, "decoder_attention_heads: expected a divisor of d_model"),
        ("whisper", {"scale_embedding": True}, "scale_embedding: expected false"),
        ("whisper", {"decoder_start_token_id": "3"}, "decoder_start_token_id: expected an integer"),
        ("resnet", {"depths": [1, 1]}, "depths: expected 3 integers"),
        ("resnet", {"depths": []}, "depths: expected integers from 1"),
        ("resnet", {"hidden_sizes": [8, 0, 8]}, "hidden_sizes: expected integers from 1"),
        ("resnet", {"hidden_sizes": [2, 8, 8]}, "hidden_sizes: expected at least 4 channels"),
        ("resnet", {"layer_type": "wide"}, "layer_type: expected one of"),
        ("convnext", {"hidden_sizes": "8"}, "hidden_sizes: expected a list"),
        ("convnext", {"layer_scale_init_value": []}, "layer_scale_init_value: expected a finite number"),
    ],
)
def test_what_cannot_be_is_refused_by_name(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=f"config.json: {message}"):
        _build(_config(name) | changes)


_WRONG = (None, -1, 0, 1.5, "x", [], {}, [1, "x"], True, float("inf"), 1 << 31, 1 << 60)


@pytest.mark.parametrize(
    "name", sorted({"bert-one-label", "llama-labels", "modernbert-mlm", "t5", "vit", "whisper", "resnet"})
)
def test_any_value_of_any_entry_builds_or_is_refused(name: str) -> None:
    """No entry has another error than ModelError, whatever stands in it."""
    config = _config(name)
    generator = random.Random(name)
    for entry in sorted(config):
        for value in generator.sample(_WRONG, 6):
            try:
                _build(config | {entry: value})
            except ModelError as e:
                assert str(e).startswith(("config.json", "architecture")), entry


@pytest.mark.parametrize("name", CASES)
def test_building_computes_nothing(name: str) -> None:
    config = _config(name)
    before = GlobalCounters.kernel_count
    model = _build(config)
    assert nn.state.get_parameters(model)
    assert GlobalCounters.kernel_count == before


def test_inputs_that_do_not_fit_are_named() -> None:
    ids = Tensor.ones(2, 41, dtype="int32")
    bert, roberta = _build(_config("bert")), _build(_config("roberta"))
    with pytest.raises(ArgumentError, match="input_ids: the model takes up to 40 in a row, got 41"):
        bert.forward(ids)
    with pytest.raises(ArgumentError, match="input_ids: the model takes up to 38 in a row, got 39"):
        roberta.forward(ids[:, :39])
    with pytest.raises(ShapeError, match=r"input_ids: expected shape \(batch, length\), got \(41,\)"):
        bert.forward(ids[0])
    with pytest.raises(ShapeError, match=r"attention_mask: expected shape \(2, 9\), got \(2, 8\)"):
        bert.forward(ids[:, :9], ids[:, :8])
    with pytest.raises(ShapeError, match=r"pixel_values: expected shape \(batch, 3, 24, 24\)"):
        _build(_config("vit")).forward(Tensor.zeros(1, 3, 16, 24))
    with pytest.raises(ShapeError, match=r"pixel_values: expected shape \(batch, 3, height, width\)"):
        _build(_config("resnet")).forward(Tensor.zeros(1, 4, 24, 24))
    with pytest.raises(ShapeError, match=r"input_features: expected shape \(batch, 8, 30\)"):
        _build(_config("whisper")).forward(Tensor.zeros(1, 8, 31), ids[:1, :3])
    labels = _build(_config("bert-one-label"))
    with pytest.raises(ShapeError, match=r"labels: expected shape \(2,\), got \(2, 1\)"):
        labels.forward(ids[:, :5], labels=Tensor.ones(2, 1, dtype="int32"))
    with pytest.raises(ShapeError, match=r"labels: expected shape \(2, 3\), got \(2,\)"):
        labels.forward(ids[:, :5], labels=Tensor.ones(2))
    decoder = _build(_config("llama-labels") | {"pad_token_id": None})
    with pytest.raises(
        ArgumentError, match="input_ids: expected one text, for there is no pad_token_id, got 2"
    ):
        decoder.forward(ids[:, :5])


def test_buckets_of_distances_are_those_of_t5() -> None:
    """By its own figures: 32 buckets, half of them for each side, up to a distance of 128."""
    buckets = buckets_of_distances(16, 128)
    assert buckets[:9] == list(range(9))
    assert [buckets[d] for d in (11, 12, 15, 16, 22, 23, 31, 32, 45, 46, 63, 64, 90, 91, 127, 128)] == [
        8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 15,
    ]  # fmt: skip
