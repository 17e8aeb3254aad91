"""The base of language models that predict the next token."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from polygrad.errors import ArgumentError
from polygrad.models.attention import ForwardContext, Visibility
from polygrad.models.blocks import run_layers
from polygrad.models.cache import KeyValueCache, NextTokens, TokenSpan, device_of
from polygrad.models.rotary import Rotary
from polygrad.nn.layer import Layer
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor

IGNORED_LABEL = -100  # excluded from the loss


class CausalLM(Layer):
    """A model that predicts the next token.

    A family gives the attributes below, `hidden_states` and `logits`. `rotaries`: tables by name.
    `recomputes`: in training, the gradient recomputes the values within a layer instead of storing them (Chen
    et al., 2016): less memory, a third more work.
    """

    vocabulary: int
    max_length: int
    cache_shape: tuple[int, int, int]  # layers, heads, size of a head
    rotaries: dict[str, Rotary]
    recomputes: bool = False

    def hidden_states(self, tokens: Tensor, positions: Tensor, step: ForwardContext) -> list[Tensor]:
        """The input of the first layer and the output of each layer, the last one normalised; each (batch,
        length, hidden). `tokens`, `positions`: integers (batch, length)."""
        raise NotImplementedError(type(self).__name__)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token, (..., hidden) to float32 (..., vocabulary)."""
        raise NotImplementedError(type(self).__name__)

    def new_cache(self, slots: int, capacity: int, dtype: DTypeLike = "float32") -> KeyValueCache:
        """An empty cache for `slots` sequences of up to `capacity` tokens."""
        layers, heads, size = self.cache_shape
        return KeyValueCache(layers, slots, heads, capacity, size, dtype, device_of(self))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool = False,
        text_ids: Tensor | None = None,
    ) -> dict[str, Any]:
        """`logits`; with `labels` `loss`; `hidden_states`, a list, if asked for. See `__call__`.

        `text_ids`: (batch, length), if a row has several texts: the text of each token. A token sees only
        tokens of its own text; pass `position_ids`, too, which restart with each text.
        """
        states = self.all_hidden_states(input_ids, attention_mask, position_ids, text_ids)
        out: dict[str, Any] = {"logits": self.logits(states[-1])}
        if labels is not None:
            out = {"loss": next_token_loss(out["logits"], labels), **out}
        if output_hidden_states:
            out["hidden_states"] = states
        return out

    def __call__(
        self, tokens: Tensor, attention_mask: Tensor | None = None, positions: Tensor | None = None
    ) -> Tensor:
        """The logits of the token after each token: (batch, length) to (batch, length, vocabulary).

        `attention_mask`: (batch, length), 0 for padding, which may stand on either side. `positions`: 0, 1, …
        in each row unless given.
        """
        return self.logits(self.all_hidden_states(tokens, attention_mask, positions)[-1])

    def all_hidden_states(
        self,
        tokens: Tensor,
        attention_mask: Tensor | None = None,
        positions: Tensor | None = None,
        texts: Tensor | None = None,
    ) -> list[Tensor]:
        """As `__call__`, but the hidden states. `texts`: see `forward`."""
        length = tokens.shape[1]
        at = Tensor.arange(length, dtype="int32", device=tokens.device)
        positions = at.unsqueeze(0) if positions is None else positions
        padding = None if attention_mask is None else attention_mask.cast("bool")
        step = self._step(Visibility(at, at, padding, texts), positions, length, None)
        return self.hidden_states(tokens, positions, step)

    def run_layers(self, layers: Sequence[Any], x: Tensor, step: ForwardContext) -> list[Tensor]:
        """`x`, and the output of each layer."""
        return run_layers(layers, x, step, self.recomputes)

    def next_logits(self, tokens: Tensor, view: TokenSpan | NextTokens, last: Any = None) -> Tensor:
        """Scores of the token that follows the tokens of a view of a cache, which then also holds these.

        `tokens`: (1, length) or (slots, 1), by the view. `last`: the index of the token in a span after which
        scores are wanted, an int or a Variable; None: the last. (batch, vocabulary).
        """
        hidden = self._extend_cache(tokens, view)
        return self.logits(hidden[:, -1] if last is None else hidden[:, last])

    def run_logits(self, tokens: Tensor, view: TokenSpan) -> Tensor:
        """As `next_logits`, for all tokens of a span: (1, length, vocabulary)."""
        return self.logits(self._extend_cache(tokens, view))

    def fill(self, tokens: Tensor, view: TokenSpan | NextTokens) -> None:
        """As `next_logits`, without computing scores."""
        self._extend_cache(tokens, view)

    def _extend_cache(self, tokens: Tensor, view: TokenSpan | NextTokens) -> Tensor:
        step = self._step(view.visibility, view.positions, view.cache.capacity, view)
        return self.hidden_states(tokens, view.positions, step)[-1]

    def _step(self, visibility: Visibility, positions: Tensor, length: Any, view: Any) -> ForwardContext:
        longest = length if isinstance(length, int) else length.vmax
        if longest > self.max_length:
            raise ArgumentError(f"tokens: the model takes up to {self.max_length} in a row, got {longest}")
        rotations = {name: table.at(positions, longest) for name, table in self.rotaries.items()}
        return ForwardContext(visibility, rotations, view)


def next_token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of each token but the first, as the ones before it predict it.

    logits (batch, length, vocabulary), labels (batch, length): the tokens, -100 where none counts.
    """
    vocabulary = logits.shape[-1]
    scores = logits[:, :-1].reshape(-1, vocabulary)
    return scores.sparse_categorical_crossentropy(labels[:, 1:].flatten(), ignore_index=IGNORED_LABEL)
