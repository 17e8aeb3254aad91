"""Networks for tables: rows of standardised numbers (rows, features) to scores (rows, members, outputs).

`members` are separate predictions, whose mean is the prediction; there is 1, except in TabM.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from polygrad import nn
from polygrad.nn.layer import Layer
from polygrad.nn.parameter import parameter
from polygrad.tensor.tensor import Tensor


class TableNetwork(Layer):
    """The base: `scores` is a family's own. `is_classifier`: outputs are logits of classes."""

    is_classifier: bool

    def scores(self, x: Tensor) -> Tensor:
        """(rows, features) to (rows, members, outputs)."""
        raise NotImplementedError(type(self).__name__)

    def forward(self, x: Tensor, labels: Tensor | None = None) -> dict[str, Any]:
        """`prediction`: probabilities (rows, classes), or numbers (rows, outputs). With `labels`, int32
        classes (rows,) or float32 numbers (rows, outputs), also `loss`: the mean of the members' losses."""
        scores = self.scores(x)
        shown = scores.softmax(-1) if self.is_classifier else scores
        out = {"prediction": shown.mean(1)}
        if labels is not None:
            out["loss"] = self._loss(scores, labels)
        return out

    def _loss(self, scores: Tensor, labels: Tensor) -> Tensor:
        rows, members, outputs = scores.shape
        if self.is_classifier:
            targets = labels.unsqueeze(1).expand(rows, members).flatten()
            return scores.reshape(rows * members, outputs).sparse_categorical_crossentropy(targets)
        return (scores - labels.unsqueeze(1)).square().mean()


class MLPNetwork(TableNetwork):
    """Linear layers with ReLU and dropout between them."""

    def __init__(
        self, features: int, outputs: int, is_classifier: bool, hidden: tuple[int, ...], dropout: float
    ) -> None:
        sizes = [features, *hidden]
        self.layers = [nn.Linear(a, b) for a, b in pairwise(sizes)]
        self.head = nn.Linear(sizes[-1], outputs)
        self.dropout, self.is_classifier = dropout, is_classifier

    def scores(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x).relu().dropout(self.dropout)
        return self.head(x).unsqueeze(1)


class EnsembleLinear(Layer):
    """A Linear layer that `members` share (BatchEnsemble: Wen et al., 2020): (rows, members, in) to (rows,
    members, out). Each has a vector that scales the input, one that scales the output, and a bias.

    `has_signs`: the first vectors start as random signs, which tells members apart; else as ones.
    """

    def __init__(self, in_features: int, out_features: int, members: int, has_signs: bool) -> None:
        bound = 1 / math.sqrt(in_features)
        self.weight = parameter(Tensor.uniform(out_features, in_features, low=-bound, high=bound))
        signs = (Tensor.rand(members, in_features) < 0.5).where(1.0, -1.0)
        self.scale_in = parameter(signs if has_signs else Tensor.ones(members, in_features).contiguous())
        self.scale_out = parameter(Tensor.ones(members, out_features).contiguous())
        self.bias = parameter(Tensor.uniform(members, out_features, low=-bound, high=bound))

    def __call__(self, x: Tensor) -> Tensor:
        return (x * self.scale_in).linear(self.weight.transpose()) * self.scale_out + self.bias


class TabMNetwork(TableNetwork):
    """TabM (Gorishniy et al., 2024): MLPs that share their matrices, each with vectors and a head of its
    own."""

    def __init__(
        self,
        features: int,
        outputs: int,
        is_classifier: bool,
        hidden: tuple[int, ...],
        dropout: float,
        members: int,
    ) -> None:
        sizes = [features, *hidden]
        self.layers = [
            EnsembleLinear(a, b, members, has_signs=i == 0) for i, (a, b) in enumerate(pairwise(sizes))
        ]
        bound = 1 / math.sqrt(sizes[-1])
        self.head = parameter(Tensor.uniform(members, sizes[-1], outputs, low=-bound, high=bound))
        self.head_bias = parameter(Tensor.uniform(members, outputs, low=-bound, high=bound))
        self.members, self.dropout, self.is_classifier = members, dropout, is_classifier

    def scores(self, x: Tensor) -> Tensor:
        x = x.unsqueeze(1).expand(x.shape[0], self.members, x.shape[1])
        for layer in self.layers:
            x = layer(x).relu().dropout(self.dropout)
        member_scores = x.transpose(0, 1).dot(self.head).transpose(0, 1)  # one product for each member
        return member_scores + self.head_bias


class NAMNetwork(TableNetwork):
    """A neural additive model (Agarwal et al., 2020): the sum of a function of each feature, so that one sees
    what a feature does.

    Each function is an MLP of its own. Its first layer has ReLU units, or with `has_exu` exp-centred ones,
    which jump: min(max((x - b) * exp(w), 0), 1). `feature_dropout`: whole functions are dropped in training.
    """

    def __init__(
        self,
        features: int,
        outputs: int,
        is_classifier: bool,
        hidden: tuple[int, ...],
        dropout: float,
        feature_dropout: float,
        has_exu: bool,
    ) -> None:
        first, *later_sizes = hidden
        if has_exu:
            self.first = parameter(Tensor.randn(features, 1, first) * 0.5 + 3.0)
            self.offsets = parameter(Tensor.randn(features, 1, first))
        else:
            self.first = parameter(Tensor.uniform(features, 1, first, low=-1.0, high=1.0))
            self.offsets = parameter(Tensor.uniform(features, 1, first, low=-1.0, high=1.0))
        sizes = [first, *later_sizes, outputs]
        self.weights, self.biases = [], []
        for a, b in pairwise(sizes):
            bound = 1 / math.sqrt(a)
            self.weights.append(parameter(Tensor.uniform(features, a, b, low=-bound, high=bound)))
            self.biases.append(parameter(Tensor.uniform(features, 1, b, low=-bound, high=bound)))
        self.bias = parameter(Tensor.zeros(outputs).contiguous())
        self.dropout, self.feature_dropout = dropout, feature_dropout
        self.has_exu, self.is_classifier = has_exu, is_classifier

    def contributions(self, x: Tensor) -> Tensor:
        """What each feature adds to the scores: (rows, features) to (rows, features, outputs)."""
        x = x.transpose(0, 1).unsqueeze(-1)  # (features, rows, 1)
        if self.has_exu:
            x = ((x - self.offsets) * self.first.exp()).relu().minimum(1.0)
        else:
            x = (x * self.first + self.offsets).relu()
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases)):
            if i:
                x = x.relu()
            x = x.dropout(self.dropout).dot(weight) + bias
        return x.transpose(0, 1)

    def scores(self, x: Tensor) -> Tensor:
        contributions = self.contributions(x)
        if self.feature_dropout and Tensor.training:
            rows, features, _ = contributions.shape
            contributions = contributions * Tensor.ones(
                rows, features, 1, device=contributions.device
            ).dropout(self.feature_dropout)
        return (contributions.sum(1) + self.bias).unsqueeze(1)
