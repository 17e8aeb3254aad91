"""Models with a prediction head: a `trunk`, which computes hidden states, and a head on top.

A family defines how its head computes logits from the trunk's outputs; inputs, losses and outputs are common.
"""

from __future__ import annotations

from typing import Any

from polygrad.models.labels import Labels, prediction, token_loss
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor


class Head(Layer):
    """`labels`: those of a whole text or image; None: a token, or a label, is predicted for each token."""

    trunk: Any
    labels: Labels | None = None

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        """The logits, by the outputs of the trunk: (batch, labels), or of each token (batch, length, ...)."""
        raise NotImplementedError(type(self).__name__)

    def predict(
        self, out: dict[str, Any], labels: Tensor | None, attention_mask: Tensor | None = None
    ) -> dict[str, Any]:
        """The outputs of `forward`."""
        logits = self.scores(out, attention_mask)
        if labels is None:
            return prediction(out, logits, None)
        return prediction(out, logits, (self.labels.loss if self.labels else token_loss)(logits, labels))


class TextHead(Head):
    """On a trunk that reads texts."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """`logits`, of each token (batch, length, vocabulary or labels) or of each text (batch, labels); with
        `labels` `loss`: those of tokens are (batch, length), -100 where none counts, those of texts are those
        of `Labels.loss`. The other arguments and errors are those of the trunk's `forward`."""
        out = self.trunk.forward(input_ids, attention_mask, position_ids, output_hidden_states)
        return self.predict(out, labels, attention_mask)


class TypedTextHead(Head):
    """On a trunk that reads texts of which each token has a type."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """See `TextHead.forward`."""
        out = self.trunk.forward(
            input_ids, attention_mask, token_type_ids, position_ids, output_hidden_states
        )
        return self.predict(out, labels, attention_mask)


class ImageHead(Head):
    """On a trunk that sees images."""

    def forward(
        self, pixel_values: Tensor, labels: Tensor | None = None, output_hidden_states: bool = False
    ) -> dict[str, Any]:
        """`logits` (batch, labels); with `labels` `loss`, see `Labels.loss`. The other arguments and errors
        are those of the trunk's `forward`."""
        return self.predict(self.trunk.forward(pixel_values, output_hidden_states), labels)
