"""The base of encoder-decoder models, which read one sequence at once and write another token by token.

    memory = model.new_memory(slots=1, length=512)
    model.remember(memory, 0, tokens)  # as often as there is something new to read
    cache = model.new_cache(slots=1, capacity=128)
    scores = model.next_logits(first, TokenSpan(cache, 0, 0, first.shape[1]), memory)

`memory` holds the keys and values of the encoder's output for the decoder's layers, computed once. It
consists of fixed buffers, so that a captured step reads their latest contents. `model.reading(memory)` has
the interface of a CausalLM, so `generation` can run it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polygrad import nn
from polygrad.errors import ArgumentError, ModelError
from polygrad.models.attention import ForwardContext, Visibility
from polygrad.models.cache import KeyValueCache, NextTokens, TokenSpan, device_of
from polygrad.models.causal_lm import IGNORED_LABEL
from polygrad.models.encoder import check_length, padding_mask
from polygrad.models.fields import Fields
from polygrad.models.labels import token_loss
from polygrad.nn.layer import Layer
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor


@dataclass(frozen=True)
class EncoderMemory:
    """Keys and values of the encoder's output for each layer of the decoder, each (slots, heads, length,
    size). `seen`: which positions exist, bool (slots, length); None: all."""

    keys: list[Tensor]
    values: list[Tensor]
    seen: Tensor | None = None

    def of(self, view: TokenSpan | NextTokens) -> EncoderMemory:
        """The memory that the sequences of a view read."""
        keys, values = ([view.rows(t) for t in part] for part in (self.keys, self.values))
        return EncoderMemory(keys, values, None if self.seen is None else view.rows(self.seen))

    @property
    def mask(self) -> Tensor | None:
        """True where a position exists, (slots, 1, 1, length); None: everywhere."""
        if self.seen is None:
            return None
        slots, length = self.seen.shape
        return self.seen.reshape(slots, 1, 1, length)


class EncoderDecoder(Layer):
    """A model that encodes one sequence, and predicts the next token of another.

    A family defines the attributes below and the methods that raise NotImplementedError. `start_token`: the
    first token of the second sequence; `padding_token`: None where a configuration has none.
    """

    vocabulary: int
    max_length: int  # of the second sequence
    cache_shape: tuple[int, int, int]  # of the decoder: layers, heads, size of a head
    start_token: int | None
    padding_token: int | None

    def encoder_states(self, inputs: Tensor, attention_mask: Tensor | None) -> list[Tensor]:
        """The input of the encoder's first layer and the output of each layer, the last one normalised."""
        raise NotImplementedError(type(self).__name__)

    def cross_attentions(self) -> list[Any]:
        """The `CrossAttention` of each layer of the decoder."""
        raise NotImplementedError(type(self).__name__)

    def decoder_states(
        self, tokens: Tensor, positions: Tensor, step: ForwardContext, memory: EncoderMemory
    ) -> list[Tensor]:
        """As `encoder_states`, of the decoder. `tokens`, `positions`: integers (batch, length)."""
        raise NotImplementedError(type(self).__name__)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token, (..., hidden) to (..., vocabulary)."""
        raise NotImplementedError(type(self).__name__)

    def memory_of(self, encoded: Tensor, seen: Tensor | None) -> EncoderMemory:
        """The memory of the encoder's output (batch, length, hidden)."""
        pairs = [attention.keys_and_values(encoded) for attention in self.cross_attentions()]
        return EncoderMemory([key for key, _ in pairs], [value for _, value in pairs], seen)

    def new_cache(self, slots: int, capacity: int, dtype: DTypeLike = "float32") -> KeyValueCache:
        """An empty cache for the decoder of `slots` sequences of up to `capacity` tokens."""
        layers, heads, size = self.cache_shape
        return KeyValueCache(layers, slots, heads, capacity, size, dtype, device_of(self))

    def new_memory(self, slots: int, length: int, dtype: DTypeLike = "float32") -> EncoderMemory:
        """Buffers for the memory of `slots` sequences of up to `length` positions of the encoder's output."""
        layers, heads, size = self.cache_shape
        device = device_of(self)

        def buffers() -> list[Tensor]:
            shape = (slots, heads, length, size)
            zeros = Tensor.zeros(*shape, dtype=dtype, device=device)
            return [nn.Buffer(zeros, persistent=False) for _ in range(layers)]

        seen = nn.Buffer(Tensor.zeros(slots, length, dtype="bool", device=device), persistent=False)
        return EncoderMemory(buffers(), buffers(), seen)

    def remember(
        self, memory: EncoderMemory, slot: int, inputs: Tensor, attention_mask: Tensor | None = None
    ) -> None:
        """Encode `inputs` (batch, ...), and write their memory into buffers that `new_memory` made, from
        `slot` on. Further positions are not seen. Raises ArgumentError."""
        new = self.encode(inputs, attention_mask)
        seen = memory.seen
        if seen is None:
            raise ArgumentError("memory: expected what new_memory makes, got one without places")
        batch, _, length, _ = new.keys[0].shape
        slots, capacity = seen.shape
        if length > capacity or not 0 <= slot <= slots - batch:
            raise ArgumentError(
                f"memory: expected a place for {batch} sequences of {length} from slot {slot} on, got "
                f"{slots} slots of {capacity}"
            )
        rows = slice(slot, slot + batch)
        for buffer, value in zip((*memory.keys, *memory.values), (*new.keys, *new.values), strict=True):
            buffer[rows, :, :length].assign(value.cast(buffer.dtype))
        is_there = Tensor.ones(batch, length, dtype="bool") if new.seen is None else new.seen
        seen[rows].assign(is_there.pad((0, capacity - length), value=False))
        Tensor.realize(*memory.keys, *memory.values, seen)

    def encode(self, inputs: Tensor, attention_mask: Tensor | None = None) -> EncoderMemory:
        """The memory of `inputs` (batch, ...); attention_mask: (batch, length), 0 for padding."""
        seen = padding_mask("attention_mask", attention_mask, inputs)
        return self.memory_of(self.encoder_states(inputs, attention_mask)[-1], seen)

    def next_logits(
        self, tokens: Tensor, view: TokenSpan | NextTokens, memory: EncoderMemory, last: Any = None
    ) -> Tensor:
        """Scores of the token that follows the tokens of a view of a cache, which then also holds these.

        `tokens`: (1, length) or (slots, 1), by the view. `memory`: has as many slots as the cache.
        `last`: the index of the token in a span after which scores are wanted; None: the last.
        (batch, vocabulary).
        """
        hidden = self._extend_cache(tokens, view, memory)
        return self.logits(hidden[:, -1] if last is None else hidden[:, last])

    def fill(self, tokens: Tensor, view: TokenSpan | NextTokens, memory: EncoderMemory) -> None:
        """As `next_logits`, without computing scores."""
        self._extend_cache(tokens, view, memory)

    def reading(self, memory: EncoderMemory) -> Reading:
        """This model bound to a memory, with the interface of a CausalLM."""
        return Reading(self, memory)

    def _extend_cache(self, tokens: Tensor, view: TokenSpan | NextTokens, memory: EncoderMemory) -> Tensor:
        if view.cache.capacity > self.max_length:
            raise ArgumentError(
                f"cache: the model takes up to {self.max_length} tokens, got a capacity of "
                f"{view.cache.capacity}"
            )
        if memory.keys[0].shape[0] != view.cache.slots:
            raise ArgumentError(
                f"memory: expected {view.cache.slots} slots, as many as the cache has, got "
                f"{memory.keys[0].shape[0]}"
            )
        step = ForwardContext(view.visibility, {}, view)
        return self.decoder_states(tokens, view.positions, step, memory.of(view))[-1]

    def predict(
        self,
        inputs: Tensor,
        attention_mask: Tensor | None,
        decoder_input_ids: Tensor | None,
        decoder_attention_mask: Tensor | None,
        labels: Tensor | None,
        output_hidden_states: bool,
    ) -> dict[str, Any]:
        """The outputs of `forward`: `logits`, with `labels` `loss`, `encoder_last_hidden_state`, and
        `encoder_hidden_states` and `decoder_hidden_states`, if asked for."""
        if decoder_input_ids is None:
            decoder_input_ids = self.shift_labels(labels)
        check_length("decoder_input_ids", decoder_input_ids, self.max_length)
        encoded = self.encoder_states(inputs, attention_mask)
        memory = self.memory_of(encoded[-1], padding_mask("attention_mask", attention_mask, inputs))
        at = Tensor.arange(decoder_input_ids.shape[1], dtype="int32", device=decoder_input_ids.device)
        padding = padding_mask("decoder_attention_mask", decoder_attention_mask, decoder_input_ids)
        step = ForwardContext(Visibility(at, at, padding), {})
        decoded = self.decoder_states(decoder_input_ids, at.unsqueeze(0), step, memory)
        logits = self.logits(decoded[-1])
        out: dict[str, Any] = {} if labels is None else {"loss": token_loss(logits, labels)}
        out |= {"logits": logits, "encoder_last_hidden_state": encoded[-1]}
        if output_hidden_states:
            out |= {"encoder_hidden_states": encoded, "decoder_hidden_states": decoded}
        return out

    def shift_labels(self, labels: Tensor | None) -> Tensor:
        """The decoder's input for predicting `labels` (batch, length): the start token, then all labels but
        the last."""
        if labels is None:
            raise ArgumentError("decoder_input_ids: expected these or labels, got neither")
        if self.start_token is None or self.padding_token is None:
            raise ModelError(
                "config.json: decoder_start_token_id and pad_token_id: both are needed to train on labels"
            )
        start = Tensor.full((labels.shape[0], 1), self.start_token, dtype=labels.dtype, device=labels.device)
        shifted_labels = start.cat(labels[:, :-1], dim=1)
        return (shifted_labels == IGNORED_LABEL).where(self.padding_token, shifted_labels)


@dataclass(frozen=True)
class Reading:
    """A model bound to a memory. It predicts the next token by the methods of `CausalLM`: see there."""

    model: EncoderDecoder
    memory: EncoderMemory

    @property
    def vocabulary(self) -> int:
        return self.model.vocabulary

    @property
    def max_length(self) -> int:
        return self.model.max_length

    def new_cache(self, slots: int, capacity: int, dtype: DTypeLike = "float32") -> KeyValueCache:
        return self.model.new_cache(slots, capacity, dtype)

    def next_logits(self, tokens: Tensor, view: TokenSpan | NextTokens, last: Any = None) -> Tensor:
        return self.model.next_logits(tokens, view, self.memory, last)

    def fill(self, tokens: Tensor, view: TokenSpan | NextTokens) -> None:
        self.model.fill(tokens, view, self.memory)


def read_tokens(config: Fields) -> tuple[int | None, int | None]:
    """The start token and the padding token of a configuration, None where it has none. Raises ModelError."""
    start = config.integer("decoder_start_token_id", None, least=0)
    return start, config.integer("pad_token_id", None, least=0)
