"""Labels of whole texts by a model that predicts tokens: its last token has seen all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from polygrad import nn
from polygrad.errors import ArgumentError
from polygrad.models.causal_lm import CausalLM
from polygrad.models.fields import Fields
from polygrad.models.labels import prediction, read_labels
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor


class CausalTextClassifier(Layer):
    """`trunk`: a model without a head of its own, with hidden states of size `hidden`."""

    def __init__(self, trunk: CausalLM, hidden: int, config: Fields) -> None:
        self.trunk = trunk
        self.padding = config.integer("pad_token_id", None, least=0)
        self.labels = read_labels(config)
        self.score = nn.Linear(hidden, self.labels.count, bias=False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """`logits` (batch, labels), by the last token that is no padding; with `labels` `loss`, see
        `Labels.loss`; `hidden_states`, if asked for.

        input_ids: (batch, length); attention_mask: the same, 0 for padding. Raises ArgumentError for several
        texts where the configuration has no padding.
        """
        batch, length = input_ids.shape
        states = self.trunk.all_hidden_states(input_ids, attention_mask, position_ids)
        at = Tensor.arange(length, dtype="int32", device=input_ids.device)
        if self.padding is not None:
            last = (at * (input_ids != self.padding)).argmax(1)
        elif batch == 1:
            last = Tensor([length - 1], dtype="int32", device=input_ids.device)
        else:
            raise ArgumentError(f"input_ids: expected one text, for there is no pad_token_id, got {batch}")
        rows = Tensor.arange(batch, dtype="int32", device=input_ids.device)
        logits = self.score(states[-1][rows, last])
        loss = None if labels is None else self.labels.loss(logits, labels)
        return prediction({"hidden_states": states} if output_hidden_states else {}, logits, loss)


def classifier(build: Callable[[Fields], CausalLM], hidden: str) -> Callable[[Fields], CausalTextClassifier]:
    """A function that makes the classifier of a configuration. `build`: makes its trunk; `hidden`: the entry
    that has its size."""

    def build_classifier(config: Fields) -> CausalTextClassifier:
        # a tied head has no weight, so the trunk makes none
        trunk = build(Fields({**config.values, "tie_word_embeddings": True}, config.where))
        return CausalTextClassifier(trunk, config.integer(hidden), config)

    return build_classifier
