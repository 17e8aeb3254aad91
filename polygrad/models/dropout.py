"""The dropout probabilities of a configuration."""

from __future__ import annotations

from dataclasses import dataclass

from polygrad.models.fields import Fields


@dataclass(frozen=True)
class LayerDropout:
    """What part of numbers a layer of a transformer drops in training: of the `weights` of attention, of what
    `attention` gives, of the `inner` numbers of the feed-forward part, and of what `feed_forward` gives."""

    weights: float = 0.0
    attention: float = 0.0
    inner: float = 0.0
    feed_forward: float = 0.0


def dropout(config: Fields, name: str = "attention_dropout", default: float = 0.0) -> float:
    """Entry `name`, a part from 0 on and below 1. Raises ModelError."""
    probability = config.number(name, default)
    if not 0 <= probability < 1:
        raise config.refuse(name, "a number from 0 on and below 1")
    return probability


def hidden_dropout(config: Fields, default: float) -> LayerDropout:
    """What BERT and those like it drop: `hidden_dropout_prob` of what both parts give,
    `attention_probs_dropout_prob` of weights. Raises ModelError."""
    hidden = dropout(config, "hidden_dropout_prob", default)
    weights = dropout(config, "attention_probs_dropout_prob", default)
    return LayerDropout(weights, hidden, 0.0, hidden)
