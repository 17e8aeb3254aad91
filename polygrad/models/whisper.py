"""Whisper (Radford et al., 2022): a text for 30 seconds of sound. Two convolutions and an encoder read the
spectrogram of `log_mel.log_mel`, a decoder writes the text."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from polygrad import nn
from polygrad.errors import ArgumentError, ShapeError
from polygrad.models.architecture import Architecture
from polygrad.models.attention import CausalSelfAttention, CrossAttention, ForwardContext
from polygrad.models.blocks import run_layers
from polygrad.models.dropout import LayerDropout, dropout
from polygrad.models.encoder import (
    EncoderConfig,
    EntryNames,
    PreNormLayer,
    read_encoder,
    whole_sequence,
)
from polygrad.models.encoder_decoder import EncoderDecoder, EncoderMemory, read_tokens
from polygrad.models.feed_forward import FeedForward
from polygrad.models.fields import Fields
from polygrad.models.names import Names
from polygrad.models.positions import PositionTable
from polygrad.nn.layer import Layer
from polygrad.nn.packed import linear
from polygrad.tensor.tensor import Tensor

_EPS = 1e-5


def _read(config: Fields, part: str) -> EncoderConfig:
    """`part`: "encoder" or "decoder"."""
    names = EntryNames(
        "d_model", f"{part}_attention_heads", f"{part}_layers", f"{part}_ffn_dim", "activation_function"
    )
    hidden = dropout(config, "dropout")
    dropped = LayerDropout(dropout(config), hidden, dropout(config, "activation_dropout"), hidden)
    encoder_config = read_encoder(config, names, eps=_EPS, dropout=dropped)
    return replace(encoder_config, attention=replace(encoder_config.attention, key_bias=False))


class WhisperEncoder(Layer):
    """Hidden states of a sound, half as many as it has pieces."""

    def __init__(self, config: Fields) -> None:
        c = _read(config, "encoder")
        self.bands = config.integer("num_mel_bins", 80)
        self.length = config.integer("max_source_positions", 1500)
        self.conv1 = nn.Conv1d(self.bands, c.hidden, 3, padding=1)
        self.conv2 = nn.Conv1d(c.hidden, c.hidden, 3, stride=2, padding=1)
        self.positions = PositionTable(self.length, c.hidden)
        self.positions.weight.requires_grad_(False)  # sines and cosines, which are not trained
        self.dropout = c.dropout.feed_forward
        self.layers = [PreNormLayer(c) for _ in range(c.layers)]
        self.final_norm = nn.LayerNorm(c.hidden, _EPS)

    def states(self, sound: Tensor) -> list[Tensor]:
        """The input of the first layer and the output of each layer, the last one normalised. Raises
        ShapeError for another number of pieces."""
        if tuple(sound.shape[1:]) != (self.bands, 2 * self.length):
            raise ShapeError(
                f"input_features: expected shape (batch, {self.bands}, {2 * self.length}), got "
                f"{tuple(sound.shape)}"
            )
        x = self.conv2(self.conv1(sound.float()).gelu(approximate="none")).gelu(approximate="none")
        x = (x.transpose(1, 2) + self.positions.weight).dropout(self.dropout)
        states = run_layers(self.layers, x, whole_sequence(x))
        return [*states[:-1], self.final_norm(states[-1])]


class WhisperDecoderLayer(Layer):
    """Attention, attention to the sound, and a feed-forward part, each behind a normalisation and with its
    input added."""

    def __init__(self, config: EncoderConfig, index: int) -> None:
        self.index = index
        self.attention = CausalSelfAttention(config.attention, index)
        self.attention_norm = nn.LayerNorm(config.hidden, _EPS)
        self.cross_attention = CrossAttention(config.attention)
        self.cross_norm = nn.LayerNorm(config.hidden, _EPS)
        self.dropout = config.dropout
        self.feed_forward = FeedForward(config.hidden, config.inner, config.act, dropout=config.dropout.inner)
        self.norm = nn.LayerNorm(config.hidden, _EPS)

    def __call__(self, x: Tensor, step: ForwardContext, memory: EncoderMemory) -> Tensor:
        key, value = memory.keys[self.index], memory.values[self.index]
        attended, dropped = self.attention(self.attention_norm(x), step), self.dropout
        x = x + attended.dropout(dropped.attention)
        crossed = self.cross_attention(self.cross_norm(x), key, value, memory.mask)
        x = x + crossed.dropout(dropped.attention)
        return x + self.feed_forward(self.norm(x)).dropout(dropped.feed_forward)


class WhisperDecoder(Layer):
    """Embeddings, layers and a last normalisation."""

    def __init__(self, config: Fields) -> None:
        c = _read(config, "decoder")
        self.words = nn.Embedding(config.integer("vocab_size"), c.hidden)
        self.positions = PositionTable(config.integer("max_target_positions", 448), c.hidden)
        self.dropout = c.dropout.feed_forward
        self.layers = [WhisperDecoderLayer(c, i) for i in range(c.layers)]
        self.final_norm = nn.LayerNorm(c.hidden, _EPS)

    def states(
        self, tokens: Tensor, positions: Tensor, step: ForwardContext, memory: EncoderMemory
    ) -> list[Tensor]:
        """See `EncoderDecoder.decoder_states`."""
        states = [(self.words(tokens).float() + self.positions(positions)).dropout(self.dropout)]
        for layer in self.layers:
            states.append(layer(states[-1], step, memory))
        return [*states[:-1], self.final_norm(states[-1])]


class WhisperForConditionalGeneration(EncoderDecoder):
    """A text for a sound.

    >>> from polygrad.models.log_mel import log_mel
    >>> sizes = {"d_model": 8, "max_source_positions": 50, "vocab_size": 50}
    >>> part = {"layers": 1, "attention_heads": 2, "ffn_dim": 16}
    >>> parts = {f"{name}_{key}": n for name in ("encoder", "decoder") for key, n in part.items()}
    >>> model = WhisperForConditionalGeneration(Fields(sizes | parts))
    >>> model.forward(log_mel([0.0] * 16000, seconds=1), Tensor([[3, 4]]))["logits"].shape
    (1, 2, 50)
    """

    def __init__(self, config: Fields) -> None:
        if config.flag("scale_embedding", False):
            raise config.refuse("scale_embedding", "false: no Whisper scales its embeddings")
        c = _read(config, "decoder")
        self.vocabulary = config.integer("vocab_size")
        self.max_length = config.integer("max_target_positions", 448)
        self.cache_shape = (c.layers, c.attention.heads, c.attention.head_size)
        self.start_token, self.padding_token = read_tokens(config)
        self.encoder, self.decoder = WhisperEncoder(config), WhisperDecoder(config)
        is_tied = config.flag("tie_word_embeddings", True)
        self.proj_out = None if is_tied else nn.Linear(c.hidden, self.vocabulary, bias=False)

    def forward(
        self,
        input_features: Tensor,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> dict[str, Any]:
        """`logits` (batch, length, vocabulary), and more: see `EncoderDecoder.predict`.

        input_features: (batch, bands, pieces), of `log_mel`; decoder_input_ids: (batch, length), made of
        `labels` unless given; its mask: the same, 0 for padding. Raises ArgumentError, ShapeError.
        """
        return self.predict(
            input_features, None, decoder_input_ids, decoder_attention_mask, labels, output_hidden_states
        )

    def encoder_states(self, inputs: Tensor, attention_mask: Tensor | None) -> list[Tensor]:
        if attention_mask is not None:
            raise ArgumentError("attention_mask: a Whisper hears all of a sound, silence too: expected None")
        return self.encoder.states(inputs)

    def cross_attentions(self) -> list[CrossAttention]:
        return [layer.cross_attention for layer in self.decoder.layers]

    def decoder_states(
        self, tokens: Tensor, positions: Tensor, step: ForwardContext, memory: EncoderMemory
    ) -> list[Tensor]:
        return self.decoder.states(tokens, positions, step, memory)

    def logits(self, hidden: Tensor) -> Tensor:
        head = self.decoder.words if self.proj_out is None else self.proj_out
        return linear(hidden, head.weight)


_NAMES = Names(
    renames=(
        ("attention_norm", "self_attn_layer_norm"),
        ("cross_norm", "encoder_attn_layer_norm"),
        ("layers.{}.norm", "layers.{}.final_layer_norm"),
        ("final_norm", "layer_norm"),
        ("attention", "self_attn"),
        ("cross_attention", "encoder_attn"),
        ("o_proj", "out_proj"),
        ("feed_forward.up_proj", "fc1"),
        ("feed_forward.down_proj", "fc2"),
        ("words", "embed_tokens"),
        ("positions", "embed_positions"),
        ("encoder", "model.encoder"),
        ("decoder", "model.decoder"),
    ),
)

ARCHITECTURES = (
    Architecture(
        "WhisperForConditionalGeneration", "speech-to-text", WhisperForConditionalGeneration, _NAMES
    ),
)
