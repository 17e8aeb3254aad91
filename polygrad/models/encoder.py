"""Common parts of encoders of text, images and sound: their layers, and the checks of their inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polygrad import nn
from polygrad.errors import ArgumentError, ShapeError
from polygrad.models.activations import activation
from polygrad.models.attention import AttentionConfig, ForwardContext, SelfAttention, Visibility
from polygrad.models.dropout import LayerDropout
from polygrad.models.feed_forward import Activation, FeedForward
from polygrad.models.fields import Fields
from polygrad.models.rotary import Rotation
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor

_NO_DROPOUT = LayerDropout()


@dataclass(frozen=True)
class EncoderConfig:
    """The structure of each of `layers` layers. `inner`: the width of the feed-forward part. `eps`: of the
    normalisations. `attention_class`: `SelfAttention`, or `CausalSelfAttention`. `dropout`: in training
    mode."""

    attention: AttentionConfig
    layers: int
    inner: int
    act: Activation
    eps: float
    attention_class: type[SelfAttention] = SelfAttention
    dropout: LayerDropout = _NO_DROPOUT

    @property
    def hidden(self) -> int:
        """The size of the input and the output of a layer."""
        return self.attention.hidden


@dataclass(frozen=True)
class EntryNames:
    """The names that entries of a configuration have."""

    hidden: str = "hidden_size"
    heads: str = "num_attention_heads"
    layers: str = "num_hidden_layers"
    inner: str = "intermediate_size"
    act: str = "hidden_act"
    eps: str = "layer_norm_eps"


def read_encoder(
    config: Fields,
    names: EntryNames | None = None,
    act: str = "gelu",
    eps: float = 1e-12,
    dropout: LayerDropout = _NO_DROPOUT,
) -> EncoderConfig:
    """The layers that a configuration describes, with biases everywhere. `act`, `eps`: the defaults.

    Raises ModelError.
    """
    names = names or EntryNames()
    hidden, heads = config.integer(names.hidden), config.integer(names.heads)
    size = head_size(config, names.hidden, names.heads)
    attention = AttentionConfig(
        hidden, heads, heads, size, qkv_bias=True, out_bias=True, dropout=dropout.weights
    )
    return EncoderConfig(
        attention,
        config.count(names.layers),
        config.integer(names.inner),
        activation(config, names.act, act),
        config.number(names.eps, eps),
        dropout=dropout,
    )


def head_size(config: Fields, hidden: str, heads: str) -> int:
    """The size of a head, where heads divide the size that entry `hidden` has. Raises ModelError."""
    width, count = config.integer(hidden), config.integer(heads)
    if width % count:
        raise config.refuse(heads, f"a divisor of {hidden}, {width}")
    return width // count


class EncoderLayer(Layer):
    """The parts of a layer, in an order that subclasses define: attention, a feed-forward part, and their
    normalisations."""

    def __init__(self, config: EncoderConfig) -> None:
        self.attention = config.attention_class(config.attention)
        self.attention_norm = nn.LayerNorm(config.hidden, config.eps)
        self.dropout = config.dropout
        self.feed_forward = FeedForward(config.hidden, config.inner, config.act, dropout=config.dropout.inner)
        self.norm = nn.LayerNorm(config.hidden, config.eps)

    def __call__(self, x: Tensor, step: ForwardContext) -> Tensor:
        raise NotImplementedError(type(self).__name__)


class PostNormLayer(EncoderLayer):
    """Sums of input and output are normalised (Vaswani et al., 2017)."""

    def __call__(self, x: Tensor, step: ForwardContext) -> Tensor:
        x = self.attention_norm(x + self.attention(x, step).dropout(self.dropout.attention))
        return self.norm(x + self.feed_forward(x).dropout(self.dropout.feed_forward))


class PreNormLayer(EncoderLayer):
    """Inputs of both parts are normalised."""

    def __call__(self, x: Tensor, step: ForwardContext) -> Tensor:
        x = x + self.attention(self.attention_norm(x), step).dropout(self.dropout.attention)
        return x + self.feed_forward(self.norm(x)).dropout(self.dropout.feed_forward)


def whole_sequence(
    x: Tensor, attention_mask: Tensor | None = None, rotations: dict[str, Rotation] | None = None
) -> ForwardContext:
    """The step of a call that sees whole sequences, x (batch, length, ...); `attention_mask`: (batch,
    length), 0 for padding. Raises ShapeError."""
    at = Tensor.arange(x.shape[1], dtype="int32", device=x.device)
    return ForwardContext(
        Visibility(at, at, padding_mask("attention_mask", attention_mask, x)), rotations or {}
    )


def padding_mask(name: str, mask: Tensor | None, x: Tensor) -> Tensor | None:
    """An argument that masks the tokens of x (batch, length, ...), as booleans. Raises ShapeError."""
    if mask is None:
        return None
    if tuple(mask.shape) != tuple(x.shape[:2]):
        raise ShapeError(f"{name}: expected shape {tuple(x.shape[:2])}, got {tuple(mask.shape)}")
    return mask.cast("bool")


def check_length(name: str, x: Tensor, longest: int) -> None:
    """Raises ArgumentError if argument `x` (batch, length) is longer than the model can take."""
    if x.ndim != 2:
        raise ShapeError(f"{name}: expected shape (batch, length), got {tuple(x.shape)}")
    if x.shape[1] > longest:
        raise ArgumentError(f"{name}: the model takes up to {longest} in a row, got {x.shape[1]}")


def features(
    states: list[Tensor], wants_states: bool, last: Tensor | None = None, pooled: Tensor | None = None
) -> dict[str, Any]:
    """The outputs of an encoder: `last_hidden_state`, which is `last` or else the last of its `states`,
    `pooler_output`, if there is one, and `hidden_states`, if they are wanted."""
    out: dict[str, Any] = {"last_hidden_state": states[-1] if last is None else last}
    if pooled is not None:
        out["pooler_output"] = pooled
    if wants_states:
        out["hidden_states"] = states
    return out
