"""The dropout probabilities of a configuration."""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.models.fields import Fields


@dataclass(frozen=True)
class LayerDropout:
    """The dropout probabilities of a transformer's layer: of the `weights` of attention, of the output of
    `attention`, of the `inner` values of the feed-forward part, and of the output of `feed_forward`."""

    weights: float = 0.0
    attention: float = 0.0
    inner: float = 0.0
    feed_forward: float = 0.0


def dropout(config: Fields, name: str = "attention_dropout", default: float = 0.0) -> float:
    """Entry `name`, a probability of at least 0 and below 1. Raises ModelError."""
    probability = config.number(name, default)
    if not 0 <= probability < 1:
        raise config.refuse(name, "a number from 0 on and below 1")
    return probability


def hidden_dropout(config: Fields, default: float) -> LayerDropout:
    """The dropout of BERT and its relatives: `hidden_dropout_prob` for the outputs of both parts,
    `attention_probs_dropout_prob` for the weights. Raises ModelError."""
    hidden = dropout(config, "hidden_dropout_prob", default)
    weights = dropout(config, "attention_probs_dropout_prob", default)
    return LayerDropout(weights, hidden, 0.0, hidden)
