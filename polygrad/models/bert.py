"""BERT (Devlin et al., 2019): learned positions, and layers that normalise their sums. MiniLM is one.

`BertModel` gives hidden states and a pooled one; the other classes put a head on top.
"""

from __future__ import annotations

from typing import Any, ClassVar

from polygrad import nn
from polygrad.models.architecture import Architecture
from polygrad.models.blocks import run_layers
from polygrad.models.dropout import dropout, hidden_dropout
from polygrad.models.encoder import (
    PostNormLayer,
    check_length,
    features,
    read_encoder,
    whole_sequence,
)
from polygrad.models.fields import Fields
from polygrad.models.heads import TypedTextHead
from polygrad.models.labels import MaskedLMHead, read_labels
from polygrad.models.names import Names
from polygrad.models.positions import PositionTable
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor

DROPOUT = 0.1  # unless a configuration says another


class BertEmbeddings(Layer):
    """Sums of the embeddings of tokens, of positions and of types of tokens, normalised: integers (batch,
    length) to (batch, length, hidden)."""

    def __init__(self, config: Fields, hidden: int, eps: float) -> None:
        self.longest = config.integer("max_position_embeddings")
        self.words = nn.Embedding(config.integer("vocab_size"), hidden)
        self.positions = PositionTable(self.longest, hidden)
        self.types = nn.Embedding(config.integer("type_vocab_size", 2), hidden)
        self.norm = nn.LayerNorm(hidden, eps)
        self.dropout = dropout(config, "hidden_dropout_prob", DROPOUT)

    def __call__(
        self, input_ids: Tensor, token_type_ids: Tensor | None, position_ids: Tensor | None
    ) -> Tensor:
        """Types are 0, and positions those of `positions_of`, unless given. Raises ArgumentError."""
        check_length("input_ids", input_ids, self.longest)
        positions = self.positions_of(input_ids) if position_ids is None else position_ids
        types = self.types.weight[0] if token_type_ids is None else self.types(token_type_ids)
        x = self.norm(self.words(input_ids).float() + types + self.positions(positions))
        return x.dropout(self.dropout)

    def positions_of(self, input_ids: Tensor) -> Tensor:
        """0, 1, … in each row."""
        return Tensor.arange(input_ids.shape[1], dtype="int32", device=input_ids.device).unsqueeze(0)


class BertModel(Layer):
    """Hidden states of tokens, and one that stands for the whole text, if `has_pooler`.

    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    >>> model = BertModel(Fields({**sizes, "vocab_size": 50, "max_position_embeddings": 16}))
    >>> model.forward(Tensor([[2, 7, 3]]))["pooler_output"].shape
    (1, 8)
    """

    embeddings_class: ClassVar[type[BertEmbeddings]] = BertEmbeddings

    def __init__(self, config: Fields, has_pooler: bool = True) -> None:
        if config.flag("is_decoder", False):
            raise config.refuse("is_decoder", "false: this is an encoder")
        config.choice("position_embedding_type", {"absolute"}, "absolute")
        c = read_encoder(config, dropout=hidden_dropout(config, DROPOUT))
        self.embeddings = self.embeddings_class(config, c.hidden, c.eps)
        self.layers = [PostNormLayer(c) for _ in range(c.layers)]
        has_pooler = has_pooler and config.flag("add_pooling_layer", True)
        self.pooler = nn.Linear(c.hidden, c.hidden) if has_pooler else None

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """`last_hidden_state` (batch, length, hidden), `pooler_output` (batch, hidden), if there is a pooler,
        and `hidden_states`, if asked for.

        input_ids: (batch, length); attention_mask: the same, 0 for padding. Raises ArgumentError, ShapeError.
        """
        x = self.embeddings(input_ids, token_type_ids, position_ids)
        states = run_layers(self.layers, x, whole_sequence(input_ids, attention_mask))
        pooled = None if self.pooler is None else self.pooler(states[-1][:, 0]).tanh()
        return features(states, output_hidden_states, pooled=pooled)


def classifier_dropout(config: Fields) -> float:
    """The dropout before a classifier: that of the layers, unless there is an entry for it. Raises
    ModelError."""
    name = "classifier_dropout" if "classifier_dropout" in config else "hidden_dropout_prob"
    return dropout(config, name, DROPOUT)


class BertForMaskedLM(TypedTextHead):
    """Scores of the tokens that stand where the input has masks."""

    trunk_class: ClassVar[type[BertModel]] = BertModel

    def __init__(self, config: Fields) -> None:
        self.trunk = self.trunk_class(config, has_pooler=False)
        c = read_encoder(config)
        is_tied = config.flag("tie_word_embeddings", True)
        norm = nn.LayerNorm(c.hidden, c.eps)
        self.head = MaskedLMHead(c.hidden, config.integer("vocab_size"), self.activation(c), norm, is_tied)

    @staticmethod
    def activation(config: Any) -> Any:
        """The activation of the head: that of the layers."""
        return config.act

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        return self.head(out["last_hidden_state"], self.trunk.embeddings.words.weight)


class BertForSequenceClassification(TypedTextHead):
    """Labels of whole texts."""

    def __init__(self, config: Fields) -> None:
        self.trunk = BertModel(config)
        self.labels = read_labels(config)
        self.classifier = nn.Linear(config.integer("hidden_size"), self.labels.count)
        self.dropout = classifier_dropout(config)

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        return self.classifier(out["pooler_output"].dropout(self.dropout))


class BertForTokenClassification(TypedTextHead):
    """Labels of tokens."""

    trunk_class: ClassVar[type[BertModel]] = BertModel

    def __init__(self, config: Fields) -> None:
        self.trunk = self.trunk_class(config, has_pooler=False)
        self.classifier = nn.Linear(config.integer("hidden_size"), read_labels(config).count)
        self.dropout = classifier_dropout(config)

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        return self.classifier(out["last_hidden_state"].dropout(self.dropout))


# The names of layers and embeddings, which RoBERTa shares.
LAYER_NAMES = (
    ("attention.q_proj", "attention.self.query"),
    ("attention.k_proj", "attention.self.key"),
    ("attention.v_proj", "attention.self.value"),
    ("attention.o_proj", "attention.output.dense"),
    ("feed_forward.up_proj", "intermediate.dense"),
    ("feed_forward.down_proj", "output.dense"),
    ("attention_norm", "attention.output.LayerNorm"),
    ("layers.{}.norm", "layers.{}.output.LayerNorm"),
    ("layers.{}", "encoder.layer.{}"),
    ("embeddings.words", "embeddings.word_embeddings"),
    ("embeddings.positions", "embeddings.position_embeddings"),
    ("embeddings.types", "embeddings.token_type_embeddings"),
    ("embeddings.norm", "embeddings.LayerNorm"),
    ("pooler", "pooler.dense"),
)
PARTS = ("embeddings", "encoder", "pooler")
# Files from before PyTorch had normalisations of its own.
OLD_NAMES = (("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta"))

_NAMES = Names(
    renames=(
        *LAYER_NAMES,
        ("trunk", "bert"),
        ("head.dense", "cls.predictions.transform.dense"),
        ("head.norm", "cls.predictions.transform.LayerNorm"),
        ("head.decoder", "cls.predictions.decoder"),
        ("head.bias", "cls.predictions.bias"),
    ),
    elsewhere=(*OLD_NAMES, ("cls.predictions.decoder.bias", "cls.predictions.bias")),
)

ARCHITECTURES = (
    Architecture("BertModel", "text-features", BertModel, _NAMES.within("bert", *PARTS)),
    Architecture("BertForMaskedLM", "masked-lm", BertForMaskedLM, _NAMES),
    Architecture(
        "BertForSequenceClassification", "text-classification", BertForSequenceClassification, _NAMES
    ),
    Architecture("BertForTokenClassification", "token-classification", BertForTokenClassification, _NAMES),
)
