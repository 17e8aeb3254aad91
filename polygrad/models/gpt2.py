"""GPT-2 (Radford et al., 2019): learned positions, LayerNorm, and weights kept as (in, out)."""

from __future__ import annotations

from dataclasses import replace

from polygrad import nn
from polygrad.models.activations import activation
from polygrad.models.architecture import Architecture
from polygrad.models.attention import AttentionConfig, CausalSelfAttention, ForwardContext
from polygrad.models.causal_lm import CausalLM
from polygrad.models.dropout import dropout
from polygrad.models.feed_forward import FeedForward
from polygrad.models.fields import Fields
from polygrad.models.names import Names
from polygrad.models.positions import PositionTable
from polygrad.models.text_classification import classifier
from polygrad.nn.layer import Layer
from polygrad.nn.packed import linear
from polygrad.tensor.tensor import Tensor


class GPT2Layer(Layer):
    """Attention and a feed-forward part, each behind a normalisation and with its input added."""

    def __init__(self, config: Fields, index: int) -> None:
        hidden, heads = config.integer("n_embd"), config.integer("n_head")
        if hidden % heads:
            raise config.refuse("n_head", f"a divisor of n_embd, {hidden}")
        eps = config.number("layer_norm_epsilon", 1e-5)
        size = hidden // heads
        scale = (1.0 if config.flag("scale_attn_weights", True) is False else size**-0.5) / (
            index + 1 if config.flag("scale_attn_by_inverse_layer_idx", False) else 1
        )
        self.ln_1, self.ln_2 = nn.LayerNorm(hidden, eps), nn.LayerNorm(hidden, eps)
        self.attn = CausalSelfAttention(
            AttentionConfig(
                hidden,
                heads,
                heads,
                size,
                qkv_bias=True,
                out_bias=True,
                scale=scale,
                dropout=dropout(config, "attn_pdrop", 0.1),
            ),
            index,
        )
        self.dropout = dropout(config, "resid_pdrop", 0.1)
        self.mlp = FeedForward(
            hidden,
            config.integer("n_inner", 4 * hidden),
            activation(config, "activation_function", "gelu_new"),
        )

    def __call__(self, x: Tensor, step: ForwardContext) -> Tensor:
        x = x + self.attn(self.ln_1(x), step).dropout(self.dropout)
        return x + self.mlp(self.ln_2(x)).dropout(self.dropout)


class GPT2(CausalLM):
    """GPT-2 with scores of the next token."""

    def __init__(self, config: Fields) -> None:
        hidden, heads = config.integer("n_embd"), config.integer("n_head")
        layers, self.max_length = config.count("n_layer"), config.integer("n_positions")
        self.cache_shape, self.rotaries = (layers, heads, hidden // heads), {}
        self.vocabulary = config.integer("vocab_size")
        self.dropout = dropout(config, "embd_pdrop", 0.1)
        self.wte = nn.Embedding(self.vocabulary, hidden)
        self.wpe = PositionTable(self.max_length, hidden)
        self.h = [GPT2Layer(config, i) for i in range(layers)]
        self.ln_f = nn.LayerNorm(hidden, config.number("layer_norm_epsilon", 1e-5))
        is_tied = config.flag("tie_word_embeddings", True)
        self.lm_head = None if is_tied else nn.Linear(hidden, self.vocabulary, bias=False)

    def hidden_states(self, tokens: Tensor, positions: Tensor, step: ForwardContext) -> list[Tensor]:
        x = (self.wte(tokens).float() + self.wpe(positions)).dropout(self.dropout)
        states = self.run_layers(self.h, x, step)
        return [*states[:-1], self.ln_f(states[-1])]

    def logits(self, hidden: Tensor) -> Tensor:
        if self.lm_head is not None:
            return self.lm_head(hidden)
        return linear(hidden, self.wte.weight)


_NAMES = Names(
    transposed=tuple(
        f"{part}.{name}"
        for part, names in {
            "attn": ("q_proj", "k_proj", "v_proj", "o_proj"),
            "mlp": ("up_proj", "down_proj"),
        }.items()
        for name in names
    ),
    joined=(("c_attn", ("q_proj", "k_proj", "v_proj")),),
    renames=(
        ("attn.o_proj", "attn.c_proj"),
        ("mlp.up_proj", "mlp.c_fc"),
        ("mlp.down_proj", "mlp.c_proj"),
        ("h.{}", "transformer.h.{}"),
        ("wte", "transformer.wte"),
        ("wpe", "transformer.wpe"),
        ("ln_f", "transformer.ln_f"),
    ),
)

ARCHITECTURES = (
    Architecture("GPT2LMHeadModel", "causal-lm", GPT2, _NAMES),
    Architecture(
        "GPT2ForSequenceClassification",
        "text-classification",
        classifier(GPT2, "n_embd"),
        replace(_NAMES, renames=(*_NAMES.renames, ("trunk.transformer", "transformer"))),
    ),
)
