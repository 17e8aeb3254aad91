"""RoBERTa (Liu et al., 2019) and XLM-RoBERTa (Conneau et al., 2020): BERT's layers, other positions and
heads. Tokens are counted from behind the number of the padding on, and padding is not counted."""

from __future__ import annotations

from typing import Any

from polygrad import nn
from polygrad.models.activations import ACTIVATIONS
from polygrad.models.architecture import Architecture
from polygrad.models.bert import (
    LAYER_NAMES,
    OLD_NAMES,
    PARTS,
    BertEmbeddings,
    BertForMaskedLM,
    BertForTokenClassification,
    BertModel,
    classifier_dropout,
)
from polygrad.models.fields import Fields
from polygrad.models.heads import TypedTextHead
from polygrad.models.labels import read_labels
from polygrad.models.names import Names
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor


class RobertaEmbeddings(BertEmbeddings):
    """BERT's embeddings, with positions that count the tokens that are no padding."""

    def __init__(self, config: Fields, hidden: int, eps: float) -> None:
        super().__init__(config, hidden, eps)
        self.padding = config.integer("pad_token_id", 1, least=0)
        self.longest -= self.padding + 1
        if self.longest < 1:
            raise config.refuse("max_position_embeddings", f"more than pad_token_id + 1, {self.padding + 1}")

    def positions_of(self, input_ids: Tensor) -> Tensor:
        """padding + 1, padding + 2, … in each row for tokens, `padding` for padding.

        >>> table = RobertaEmbeddings(Fields({"vocab_size": 9, "max_position_embeddings": 8}), 4, 1e-5)
        >>> table.positions_of(Tensor([[0, 5, 6, 1, 1]])).tolist()
        [[2, 3, 4, 1, 1]]
        """
        is_token = (input_ids != self.padding).cast("int32")
        return is_token.cumsum(1) * is_token + self.padding


class RobertaModel(BertModel):
    """See `BertModel`."""

    embeddings_class = RobertaEmbeddings


class RobertaForMaskedLM(BertForMaskedLM):
    """See `BertForMaskedLM`."""

    trunk_class = RobertaModel

    @staticmethod
    def activation(config: Any) -> Any:
        """GELU, whatever the layers have."""
        return ACTIVATIONS["gelu"]


class ClassificationHead(Layer):
    """Scores of labels by the first token: (batch, length, hidden) to (batch, labels)."""

    def __init__(self, hidden: int, labels: int, dropout: float) -> None:
        self.dense, self.out_proj = nn.Linear(hidden, hidden), nn.Linear(hidden, labels)
        self.dropout = dropout

    def __call__(self, x: Tensor) -> Tensor:
        inner = self.dense(x[:, 0].dropout(self.dropout)).tanh()
        return self.out_proj(inner.dropout(self.dropout))


class RobertaForSequenceClassification(TypedTextHead):
    """Labels of whole texts."""

    def __init__(self, config: Fields) -> None:
        self.trunk = RobertaModel(config, has_pooler=False)
        self.labels = read_labels(config)
        hidden, dropped = config.integer("hidden_size"), classifier_dropout(config)
        self.classifier = ClassificationHead(hidden, self.labels.count, dropped)

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        return self.classifier(out["last_hidden_state"])


class RobertaForTokenClassification(BertForTokenClassification):
    """See `BertForTokenClassification`."""

    trunk_class = RobertaModel


_NAMES = Names(
    renames=(
        *LAYER_NAMES,
        ("trunk", "roberta"),
        ("head.norm", "lm_head.layer_norm"),
        ("head", "lm_head"),
    ),
    elsewhere=(*OLD_NAMES, ("lm_head.decoder.bias", "lm_head.bias")),
)

ARCHITECTURES = tuple(
    Architecture(prefix + name, task, build, names)
    for prefix in ("Roberta", "XLMRoberta")
    for name, task, build, names in (
        ("Model", "text-features", RobertaModel, _NAMES.within("roberta", *PARTS)),
        ("ForMaskedLM", "masked-lm", RobertaForMaskedLM, _NAMES),
        ("ForSequenceClassification", "text-classification", RobertaForSequenceClassification, _NAMES),
        ("ForTokenClassification", "token-classification", RobertaForTokenClassification, _NAMES),
    )
)
