"""BERT (Devlin et al., 2019): learned positions, and layers that normalise their sums. MiniLM is one.

`BertModel` gives hidden states and a pooled one; the other classes put a head on top.
"""

from __future__ import annotations

from typing import Any, ClassVar

from polygrad import nn
from polygrad.models.architecture import Architecture
from polygrad.models.blocks import run_layers
from polygrad.models.encoder import (
    PostNormLayer,
    check_length,
    features,
    read_encoder,
    whole_sequence,
)
from polygrad.models.fields import Fields
from polygrad.models.labels import MaskedLMHead, prediction, read_labels, token_loss
from polygrad.models.names import Names
from polygrad.models.positions import PositionTable
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor


class BertEmbeddings(Layer):
    """Sums of the embeddings of tokens, of positions and of types of tokens, normalised: integers (batch,
    length) to (batch, length, hidden)."""

    def __init__(self, config: Fields, hidden: int, eps: float) -> None:
        self.longest = config.integer("max_position_embeddings")
        self.words = nn.Embedding(config.integer("vocab_size"), hidden)
        self.positions = PositionTable(self.longest, hidden)
        self.types = nn.Embedding(config.integer("type_vocab_size", 2), hidden)
        self.norm = nn.LayerNorm(hidden, eps)

    def __call__(
        self, input_ids: Tensor, token_type_ids: Tensor | None, position_ids: Tensor | None
    ) -> Tensor:
        """Types are 0, and positions those of `positions_of`, unless given. Raises ArgumentError."""
        check_length("input_ids", input_ids, self.longest)
        positions = self.positions_of(input_ids) if position_ids is None else position_ids
        types = self.types.weight[0] if token_type_ids is None else self.types(token_type_ids)
        return self.norm(self.words(input_ids).float() + types + self.positions(positions))

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
        c = read_encoder(config)
        self.embeddings = self.embeddings_class(config, c.hidden, c.eps)
        self.layers = [PostNormLayer(c) for _ in range(c.layers)]
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


class BertForMaskedLM(Layer):
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
        """That of the head: the layers'."""
        return config.act

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """`logits` (batch, length, vocabulary); with `labels` (batch, length), -100 where none counts,
        `loss`. The other arguments are those of `BertModel.forward`."""
        out = self.trunk.forward(
            input_ids, attention_mask, token_type_ids, position_ids, output_hidden_states
        )
        logits = self.head(out["last_hidden_state"], self.trunk.embeddings.words.weight)
        return prediction(out, logits, None if labels is None else token_loss(logits, labels))


class BertForSequenceClassification(Layer):
    """Labels of whole texts."""

    def __init__(self, config: Fields) -> None:
        self.trunk = BertModel(config)
        self.labels = read_labels(config)
        self.classifier: Any = nn.Linear(config.integer("hidden_size"), self.labels.count)

    def scores(self, trunk: dict[str, Any]) -> Tensor:
        """Of each label, (batch, labels), by the outputs of the trunk."""
        return self.classifier(trunk["pooler_output"])

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """`logits` (batch, labels); with `labels` `loss`, see `Labels.loss`. The other arguments are those of
        `BertModel.forward`."""
        out = self.trunk.forward(
            input_ids, attention_mask, token_type_ids, position_ids, output_hidden_states
        )
        logits = self.scores(out)
        return prediction(out, logits, None if labels is None else self.labels.loss(logits, labels))


class BertForTokenClassification(Layer):
    """Labels of tokens."""

    trunk_class: ClassVar[type[BertModel]] = BertModel

    def __init__(self, config: Fields) -> None:
        self.trunk = self.trunk_class(config, has_pooler=False)
        self.classifier = nn.Linear(config.integer("hidden_size"), read_labels(config).count)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """`logits` (batch, length, labels); with `labels` (batch, length), -100 where none counts, `loss`.
        The other arguments are those of `BertModel.forward`."""
        out = self.trunk.forward(
            input_ids, attention_mask, token_type_ids, position_ids, output_hidden_states
        )
        logits = self.classifier(out["last_hidden_state"])
        return prediction(out, logits, None if labels is None else token_loss(logits, labels))


# Those of layers and embeddings, which RoBERTa shares.
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
