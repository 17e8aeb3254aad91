"""Labels of inputs: those that a configuration names, heads that predict them, and losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polygrad import nn
from polygrad.errors import ShapeError
from polygrad.models.causal_lm import IGNORED_LABEL
from polygrad.models.feed_forward import Activation
from polygrad.models.fields import Fields
from polygrad.nn.layer import Layer
from polygrad.nn.packed import PackedWeight, linear
from polygrad.nn.parameter import parameter
from polygrad.tensor.tensor import Tensor

_REGRESSION, _ONE, _SEVERAL = "regression", "single_label_classification", "multi_label_classification"


@dataclass(frozen=True)
class Labels:
    """The number of labels, and the `problem`: a number to predict, one label of all, or several; None: the
    labels' dtype decides."""

    count: int
    problem: str | None = None

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss of logits (batch, count): a squared error, or a cross-entropy.

        `labels`: integers (batch,) for one label of all, else floats (batch, count). Raises ShapeError.

        >>> Labels(2).loss(Tensor([[0.0, 0.0]]), Tensor([1])).item()
        0.693147...
        >>> Labels(1).loss(Tensor([[3.0]]), Tensor([1.0])).item()
        4.0
        """
        problem = self.problem
        if problem is None:
            several = _ONE if labels.dtype.is_int else _SEVERAL
            problem = _REGRESSION if self.count == 1 else several
        if problem == _ONE:
            return token_loss(logits, labels)
        if labels.numel() != logits.numel():
            raise ShapeError(f"labels: expected shape {tuple(logits.shape)}, got {tuple(labels.shape)}")
        labels = labels.reshape(*logits.shape).float()
        return (
            logits.mse_loss(labels) if problem == _REGRESSION else logits.binary_crossentropy_logits(labels)
        )

    def probabilities(self, logits: Tensor) -> Tensor:
        """The probability of each label, by logits (batch, count). Labels exclude each other unless `problem`
        says that several may hold. For a number to predict, the number itself.

        >>> Labels(2).probabilities(Tensor([[0.0, 0.0]])).tolist()
        [[0.5, 0.5]]
        """
        if self.problem == _REGRESSION:
            return logits
        return logits.sigmoid() if self.problem == _SEVERAL or self.count == 1 else logits.softmax(-1)


def read_labels(config: Fields) -> Labels:
    """The labels that a configuration names. Raises ModelError.

    >>> read_labels(Fields({"id2label": {"0": "cat", "1": "dog", "2": "bird"}}))
    Labels(count=3, problem=None)
    """
    problem = None
    if "problem_type" in config:
        problem = config.choice("problem_type", {_REGRESSION, _ONE, _SEVERAL})
    if "id2label" in config:
        count = len(config.section("id2label").values)
        if count == 0:
            raise config.refuse("id2label", "at least one label")
        return Labels(count, problem)
    return Labels(config.integer("num_labels", 2), problem)


def label_names(config: Fields) -> list[str]:
    """The names of the labels, by their numbers. Raises ModelError.

    >>> label_names(Fields({"id2label": {"0": "cat", "1": "dog"}}))
    ['cat', 'dog']
    """
    names = config.section("id2label", {}).values
    return [str(names.get(str(i), f"LABEL_{i}")) for i in range(read_labels(config).count)]


def token_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean cross-entropy of logits (..., classes) and integers (...), of which -100 do not count.

    Raises ShapeError.

    >>> token_loss(Tensor([[[0.0, 0.0], [9.0, 0.0]]]), Tensor([[1, -100]])).item()
    0.693147...
    """
    if tuple(labels.shape) != tuple(logits.shape[:-1]):
        raise ShapeError(f"labels: expected shape {tuple(logits.shape[:-1])}, got {tuple(labels.shape)}")
    scores = logits.reshape(-1, logits.shape[-1])
    return scores.sparse_categorical_crossentropy(labels.flatten(), ignore_index=IGNORED_LABEL)


def prediction(trunk: dict[str, Any], logits: Tensor, loss: Tensor | None) -> dict[str, Any]:
    """The outputs of a model: `loss`, if there is one, `logits`, and the trunk's `hidden_states`, if any."""
    out: dict[str, Any] = {} if loss is None else {"loss": loss}
    out["logits"] = logits
    if "hidden_states" in trunk:
        out["hidden_states"] = trunk["hidden_states"]
    return out


def layer_norm(size: int, eps: float, bias: bool = True) -> nn.LayerNorm:
    """A normalisation of the last axis, with or without a bias."""
    norm = nn.LayerNorm(size, eps)
    if not bias:
        norm.bias = None
    return norm


class MaskedLMHead(Layer):
    """Scores of the tokens that were masked: (..., hidden) to (..., vocabulary).

    A product, an activation and a normalisation, then products with the embeddings `table` (vocabulary,
    hidden), or with a `decoder` of its own if `is_tied` is False.
    """

    def __init__(
        self,
        hidden: int,
        vocabulary: int,
        act: Activation,
        norm: nn.LayerNorm,
        is_tied: bool,
        dense_bias: bool = True,
        bias: bool = True,
    ) -> None:
        self.dense, self.norm = nn.Linear(hidden, hidden, dense_bias), norm
        self.activation = act
        self.decoder = None if is_tied else nn.Linear(hidden, vocabulary, bias)
        self.bias = parameter(Tensor.zeros(vocabulary)) if is_tied and bias else None

    def __call__(self, x: Tensor, table: Tensor | PackedWeight) -> Tensor:
        x = self.norm(self.activation(self.dense(x)))
        return linear(x, table, self.bias) if self.decoder is None else self.decoder(x)
