"""Softmax, losses, and their gradients."""

from __future__ import annotations

from typing import Any

from tests.parity.inputs import Inputs
from tests.parity.programs.registry import program, with_gradients


@program
def softmax(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(16, 24).softmax(-1)]


@program
def softmax_backward(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(16, 24)
    return with_gradients(make, x.softmax(-1), x)


@program
def softmax_over_all(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(6, 10).flatten().softmax(0)]


@program
def log_softmax(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(16, 24).log_softmax(-1)]


@program
def log_softmax_backward(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(16, 24)
    return with_gradients(make, x.log_softmax(0), x)


@program
def logsumexp(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(16, 24).logsumexp(1)]


@program
def cross_entropy(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(16, 10).sparse_categorical_crossentropy(make.integers(10, 16))]


@program
def cross_entropy_backward(lib: Any, make: Inputs) -> list[Any]:
    logits, labels = make.normal(16, 10), make.integers(10, 16)
    loss = logits.sparse_categorical_crossentropy(labels, label_smoothing=0.1)
    return [loss, *loss.gradient(logits)]


@program
def cross_entropy_of_probabilities(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(16, 10).cross_entropy(make.normal(16, 10).softmax(-1))]


@program
def binary_cross_entropy_backward(lib: Any, make: Inputs) -> list[Any]:
    logits, labels = make.normal(32), make.integers(2, 32).cast("float32")
    loss = logits.binary_crossentropy_logits(labels)
    return [loss, *loss.gradient(logits)]


@program
def huber_backward(lib: Any, make: Inputs) -> list[Any]:
    x, y = make.normal(8, 8), make.normal(8, 8)
    d = (x - y).abs()
    loss = (d < 1).where(0.5 * d * d, d - 0.5).mean()
    return [loss, *loss.gradient(x, y)]


@program
def kl_divergence_backward(lib: Any, make: Inputs) -> list[Any]:
    x, y = make.normal(8, 12), make.normal(8, 12)
    loss = (x.softmax(-1) * (x.log_softmax(-1) - y.log_softmax(-1))).sum(-1).mean()
    return [loss, *loss.gradient(x, y)]


@program
def contrastive_backward(lib: Any, make: Inputs) -> list[Any]:
    """Both directions of a CLIP loss."""
    a, b = make.normal(8, 16), make.normal(8, 16)
    logits, labels = a @ b.transpose(), make.integers(8, 8)
    of_rows = logits.sparse_categorical_crossentropy(labels)
    loss = of_rows + logits.transpose().sparse_categorical_crossentropy(labels)
    return [loss, *loss.gradient(a, b)]
