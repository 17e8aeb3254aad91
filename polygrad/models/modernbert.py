"""ModernBERT (Warner et al., 2024): rotary positions, inputs of layers normalised, gated feed-forward parts,
and layers of which most see only tokens nearby."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from polygrad import nn
from polygrad.models.activations import activation
from polygrad.models.architecture import Architecture
from polygrad.models.attention import AttentionConfig, ForwardContext, SelfAttention
from polygrad.models.blocks import run_layers
from polygrad.models.dropout import LayerDropout, dropout
from polygrad.models.encoder import (
    check_length,
    features,
    head_size,
    padding_mask,
    whole_sequence,
)
from polygrad.models.feed_forward import Activation, GatedFeedForward
from polygrad.models.fields import Fields
from polygrad.models.heads import TextHead
from polygrad.models.labels import MaskedLMHead, layer_norm, read_labels
from polygrad.models.names import Names
from polygrad.models.rotary import Rotary, rotary
from polygrad.nn.layer import Layer
from polygrad.tensor.tensor import Tensor

_FULL, _LOCAL = "full_attention", "sliding_attention"
# Base of the rotary embedding, where a file has none; the entry that older files have.
_THETAS = {_FULL: (160000.0, "global_rope_theta"), _LOCAL: (10000.0, "local_rope_theta")}


@dataclass(frozen=True)
class _ModernBertConfig:
    """`attention`: of each layer. `eps`, `norm_bias`: of the normalisations."""

    hidden: int
    inner: int
    act: Activation
    mlp_bias: bool
    eps: float
    norm_bias: bool
    attention: tuple[AttentionConfig, ...]
    dropout: LayerDropout

    def norm(self) -> nn.LayerNorm:
        """A normalisation."""
        return layer_norm(self.hidden, self.eps, self.norm_bias)


def _read(config: Fields) -> _ModernBertConfig:
    hidden, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    bias = config.flag("attention_bias", False)
    size = head_size(config, "hidden_size", "num_attention_heads")
    dropped = dropout(config)
    full = AttentionConfig(hidden, heads, heads, size, bias, bias, rotation=_FULL, dropout=dropped)
    # local_attention is the width of the window, both sides together
    radius = config.integer("local_attention", 128, least=2) // 2
    local = replace(full, radius=radius, rotation=_LOCAL)
    kinds = _layer_types(config)
    return _ModernBertConfig(
        hidden,
        config.integer("intermediate_size"),
        activation(config, "hidden_activation", "gelu"),
        config.flag("mlp_bias", False),
        config.number("norm_eps", 1e-5),
        config.flag("norm_bias", False),
        tuple(full if kind == _FULL else local for kind in kinds),
        LayerDropout(dropped, dropped, dropout(config, "mlp_dropout")),
    )


def _layer_types(config: Fields) -> list[str]:
    layers = config.count("num_hidden_layers")
    every = config.integer("global_attn_every_n_layers", 3)
    kinds = config.items("layer_types", str, [_LOCAL if i % every else _FULL for i in range(layers)])
    if len(kinds) != layers or not set(kinds) <= {_FULL, _LOCAL}:
        raise config.refuse("layer_types", f"{layers} of {_FULL} and {_LOCAL}")
    return kinds


def _rotary(config: Fields, kind: str, size: int) -> Rotary:
    theta, entry = _THETAS[kind]
    return rotary(config, size, config.number(entry, theta), kind)


class ModernBertLayer(Layer):
    """Attention and a feed-forward part, with their inputs added. The first layer's input is normalised by
    the embeddings."""

    def __init__(self, config: _ModernBertConfig, index: int) -> None:
        self.attn_norm = config.norm() if index else None
        self.attn = SelfAttention(config.attention[index])
        self.mlp_norm = config.norm()
        self.dropout = config.dropout
        self.mlp = GatedFeedForward(
            config.hidden, config.inner, config.act, config.mlp_bias, self.dropout.inner
        )

    def __call__(self, x: Tensor, step: ForwardContext) -> Tensor:
        inner = x if self.attn_norm is None else self.attn_norm(x)
        x = x + self.attn(inner, step).dropout(self.dropout.attention)
        return x + self.mlp(self.mlp_norm(x))


class ModernBertModel(Layer):
    """Hidden states of tokens.

    >>> sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    >>> model = ModernBertModel(Fields({**sizes, "vocab_size": 50, "local_attention": 4}))
    >>> model.forward(Tensor([[2, 7, 3]]))["last_hidden_state"].shape
    (1, 3, 8)
    """

    def __init__(self, config: Fields) -> None:
        c = _read(config)
        self.longest = config.integer("max_position_embeddings", 8192)
        size = c.attention[0].head_size
        self.rotaries = {kind: _rotary(config, kind, size) for kind in _THETAS}
        self.words = nn.Embedding(config.integer("vocab_size"), c.hidden)
        self.norm = c.norm()
        self.dropout = dropout(config, "embedding_dropout")
        self.layers = [ModernBertLayer(c, i) for i in range(len(c.attention))]
        self.final_norm = c.norm()

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
        check_length("input_ids", input_ids, self.longest)
        length = input_ids.shape[1]
        positions = position_ids
        if positions is None:
            positions = Tensor.arange(length, dtype="int32", device=input_ids.device).unsqueeze(0)
        rotations = {name: table.at(positions, length) for name, table in self.rotaries.items()}
        step = whole_sequence(input_ids, attention_mask, rotations)
        x = self.norm(self.words(input_ids).float()).dropout(self.dropout)
        states = run_layers(self.layers, x, step)
        return features([*states[:-1], self.final_norm(states[-1])], output_hidden_states)


class PredictionHead(Layer):
    """A product, an activation and a normalisation: (..., hidden) to the same shape."""

    def __init__(self, config: Fields, c: _ModernBertConfig) -> None:
        self.dense = nn.Linear(c.hidden, c.hidden, config.flag("classifier_bias", False))
        self.activation = activation(config, "classifier_activation", "gelu")
        self.norm = c.norm()

    def __call__(self, x: Tensor) -> Tensor:
        return self.norm(self.activation(self.dense(x)))


class ModernBertForMaskedLM(TextHead):
    """Scores of the tokens that stand where the input has masks."""

    def __init__(self, config: Fields) -> None:
        c = _read(config)
        self.trunk = ModernBertModel(config)
        self.head = MaskedLMHead(
            c.hidden,
            config.integer("vocab_size"),
            activation(config, "classifier_activation", "gelu"),
            c.norm(),
            config.flag("tie_word_embeddings", True),
            config.flag("classifier_bias", False),
            config.flag("decoder_bias", True),
        )

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        return self.head(out["last_hidden_state"], self.trunk.words.weight)


class ModernBertForSequenceClassification(TextHead):
    """Labels of whole texts, by the first token or by the mean of all."""

    def __init__(self, config: Fields) -> None:
        self.pooling = config.choice("classifier_pooling", {"cls", "mean"}, "cls")
        self.labels = read_labels(config)
        c = _read(config)
        self.trunk = ModernBertModel(config)
        self.head = PredictionHead(config, c)
        self.classifier = nn.Linear(c.hidden, self.labels.count)
        self.dropout = dropout(config, "classifier_dropout")

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        hidden = out["last_hidden_state"]
        is_token = padding_mask("attention_mask", attention_mask, hidden)
        if self.pooling == "cls":
            pooled = hidden[:, 0]
        elif is_token is None:
            pooled = hidden.mean(1)
        else:
            shares = is_token.float().unsqueeze(-1)
            pooled = (hidden * shares).sum(1) / shares.sum(1)
        return self.classifier(self.head(pooled).dropout(self.dropout))


class ModernBertForTokenClassification(TextHead):
    """Labels of tokens."""

    def __init__(self, config: Fields) -> None:
        c = _read(config)
        self.trunk = ModernBertModel(config)
        self.head = PredictionHead(config, c)
        self.classifier = nn.Linear(c.hidden, read_labels(config).count)
        self.dropout = dropout(config, "classifier_dropout")

    def scores(self, out: dict[str, Any], attention_mask: Tensor | None) -> Tensor:
        return self.classifier(self.head(out["last_hidden_state"]).dropout(self.dropout))


_LAYER_NAMES = (
    ("attn.o_proj", "attn.Wo"),
    ("mlp.down_proj", "mlp.Wo"),
    ("words", "embeddings.tok_embeddings"),
)
_JOINED = (("Wqkv", ("q_proj", "k_proj", "v_proj")), ("Wi", ("gate_proj", "up_proj")))
# A model without a head has no prefix.
_MODEL_NAMES = Names(renames=(*_LAYER_NAMES, ("norm", "embeddings.norm")), joined=_JOINED)
_NAMES = Names(
    renames=(
        *_LAYER_NAMES,
        ("trunk.norm", "trunk.embeddings.norm"),
        ("trunk", "model"),
        ("head.decoder", "decoder"),
        ("head.bias", "decoder.bias"),
    ),
    joined=_JOINED,
)

ARCHITECTURES = (
    Architecture(
        "ModernBertModel",
        "text-features",
        ModernBertModel,
        _MODEL_NAMES.within("model", "embeddings", "layers", "final_norm"),
    ),
    Architecture("ModernBertForMaskedLM", "masked-lm", ModernBertForMaskedLM, _NAMES),
    Architecture(
        "ModernBertForSequenceClassification",
        "text-classification",
        ModernBertForSequenceClassification,
        _NAMES,
    ),
    Architecture(
        "ModernBertForTokenClassification", "token-classification", ModernBertForTokenClassification, _NAMES
    ),
)
