"""DistilBERT (Sanh et al., 2019): half of BERT's layers, no types of tokens, no pooler."""

from __future__ import annotations

from typing import Any

from polygrad import nn
from polygrad.models.architecture import Architecture
from polygrad.models.blocks import run_layers
from polygrad.models.dropout import LayerDropout, dropout
from polygrad.models.encoder import (
    EncoderConfig,
    EntryNames,
    PostNormLayer,
    check_length,
    features,
    read_encoder,
    whole_sequence,
)
from polygrad.models.fields import Fields
from polygrad.models.heads import TextHead
from polygrad.models.labels import MaskedLMHead, read_labels
from polygrad.models.names import Names
from polygrad.models.positions import PositionTable
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor

_EPS = 1e-12
_ENTRIES = EntryNames(hidden="dim", heads="n_heads", layers="n_layers", inner="hidden_dim", act="activation")


def _read(config: Fields) -> EncoderConfig:
    weights = dropout(config, "attention_dropout", 0.1)
    dropped = LayerDropout(weights, feed_forward=_dropout(config))
    return read_encoder(config, _ENTRIES, eps=_EPS, dropout=dropped)


def _dropout(config: Fields) -> float:
    return dropout(config, "dropout", 0.1)


class DistilBertEmbeddings(Layer):
    """Sums of the embeddings of tokens and of positions, normalised."""

    def __init__(self, config: Fields, hidden: int) -> None:
        self.longest = config.integer("max_position_embeddings")
        self.words = nn.Embedding(config.integer("vocab_size"), hidden)
        self.positions = PositionTable(self.longest, hidden)
        self.norm = nn.LayerNorm(hidden, _EPS)
        self.dropout = _dropout(config)

    def __call__(self, input_ids: Tensor, position_ids: Tensor | None) -> Tensor:
        """Integers (batch, length) to (batch, length, hidden). Raises ArgumentError."""
        check_length("input_ids", input_ids, self.longest)
        positions = self.positions.weight[: input_ids.shape[1]]
        if position_ids is not None:
            positions = self.positions(position_ids)
        return self.norm(self.words(input_ids).float() + positions).dropout(self.dropout)


class DistilBertModel(Layer):
    """Hidden states of tokens.

    >>> sizes = {"dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 16}
    >>> model = DistilBertModel(Fields({**sizes, "vocab_size": 50, "max_position_embeddings": 16}))
    >>> model.forward(Tensor([[2, 7, 3]]))["last_hidden_state"].shape
    (1, 3, 8)
    """

    def __init__(self, config: Fields) -> None:
        c = _read(config)
        self.embeddings = DistilBertEmbeddings(config, c.hidden)
        self.layers = [PostNormLayer(c) for _ in range(c.layers)]

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """`last_hidden_state` (batch, length, hidden), and `hidden_states`, if asked for.

        input_ids: (batch, length); attention_mask: the same, 0 for padding. Raises ArgumentError, ShapeError.
        """
        x = self.embeddings(input_ids, position_ids)
        states = run_layers(self.layers, x, whole_sequence(input_ids, attention_mask))
        return features(states, output_hidden_states)


class DistilBertForMaskedLM(TextHead):
    """Scores of the tokens that stand where the input has masks."""

    def __init__(self, config: Fields) -> None:
        c = _read(config)
        self.trunk = DistilBertModel(config)
        is_tied = config.flag("tie_word_embeddings", True)
        norm = nn.LayerNorm(c.hidden, _EPS)
        self.head = MaskedLMHead(c.hidden, config.integer("vocab_size"), c.act, norm, is_tied)

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        return self.head(out["last_hidden_state"], self.trunk.embeddings.words.weight)


class DistilBertForSequenceClassification(TextHead):
    """Labels of whole texts, by the first token."""

    def __init__(self, config: Fields) -> None:
        hidden = config.integer("dim")
        self.trunk = DistilBertModel(config)
        self.labels = read_labels(config)
        self.pre_classifier = nn.Linear(hidden, hidden)
        self.classifier = nn.Linear(hidden, self.labels.count)
        self.dropout = dropout(config, "seq_classif_dropout", 0.2)

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        inner = self.pre_classifier(out["last_hidden_state"][:, 0]).relu()
        return self.classifier(inner.dropout(self.dropout))


class DistilBertForTokenClassification(TextHead):
    """Labels of tokens."""

    def __init__(self, config: Fields) -> None:
        self.trunk = DistilBertModel(config)
        self.classifier = nn.Linear(config.integer("dim"), read_labels(config).count)
        self.dropout = _dropout(config)

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        return self.classifier(out["last_hidden_state"].dropout(self.dropout))


_NAMES = Names(
    renames=(
        ("attention.q_proj", "attention.q_lin"),
        ("attention.k_proj", "attention.k_lin"),
        ("attention.v_proj", "attention.v_lin"),
        ("attention.o_proj", "attention.out_lin"),
        ("feed_forward.up_proj", "ffn.lin1"),
        ("feed_forward.down_proj", "ffn.lin2"),
        ("attention_norm", "sa_layer_norm"),
        ("layers.{}.norm", "layers.{}.output_layer_norm"),
        ("layers.{}", "transformer.layer.{}"),
        ("embeddings.words", "embeddings.word_embeddings"),
        ("embeddings.positions", "embeddings.position_embeddings"),
        ("embeddings.norm", "embeddings.LayerNorm"),
        ("trunk", "distilbert"),
        ("head.dense", "vocab_transform"),
        ("head.norm", "vocab_layer_norm"),
        ("head.decoder", "vocab_projector"),
        ("head", "vocab_projector"),
    ),
)

ARCHITECTURES = (
    Architecture(
        "DistilBertModel",
        "text-features",
        DistilBertModel,
        _NAMES.within("distilbert", "embeddings", "transformer"),
    ),
    Architecture("DistilBertForMaskedLM", "masked-lm", DistilBertForMaskedLM, _NAMES),
    Architecture(
        "DistilBertForSequenceClassification",
        "text-classification",
        DistilBertForSequenceClassification,
        _NAMES,
    ),
    Architecture(
        "DistilBertForTokenClassification", "token-classification", DistilBertForTokenClassification, _NAMES
    ),
)
