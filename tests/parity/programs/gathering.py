"""Programs that gather, scan and sort."""

from __future__ import annotations

from typing import Any

from tests.parity.inputs import Inputs
from tests.parity.programs.registry import program, with_gradients


@program
def gather(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(6, 10).gather(1, make.integers(10, 6, 4))]


@program
def gather_backward(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(6, 10)
    return with_gradients(make, x.gather(1, make.integers(10, 6, 4)), x)


@program
def embedding(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(20, 8)[make.integers(20, 3, 5)]]


@program
def embedding_backward(lib: Any, make: Inputs) -> list[Any]:
    table = make.normal(20, 8)
    return with_gradients(make, table[make.integers(20, 3, 5)], table)


@program
def embedding_of_one_hot(lib: Any, make: Inputs) -> list[Any]:
    return [make.integers(20, 3, 5).one_hot(20).cast("float32") @ make.normal(20, 8)]


@program
def pick_rows_and_columns(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(8, 9)[make.integers(8, 5), make.integers(9, 5)]]


@program
def scatter_add(lib: Any, make: Inputs) -> list[Any]:
    x, index, values = make.normal(6, 10), make.integers(10, 6, 4), make.normal(6, 4)
    return [x.scatter_reduce(1, index, values, "sum")]


@program
def cumsum(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(4, 30).cumsum(1)]


@program
def cumsum_long(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(1500).cumsum(0)]


@program
def cumsum_backward(lib: Any, make: Inputs) -> list[Any]:
    x = make.normal(4, 30)
    return with_gradients(make, x.cumsum(0), x)


@program
def cumprod(lib: Any, make: Inputs) -> list[Any]:
    return [make.positive(4, 12).cumprod(1)]


@program
def sort(lib: Any, make: Inputs) -> list[Any]:
    return list(make.normal(4, 20).sort(1))


@program
def topk(lib: Any, make: Inputs) -> list[Any]:
    return list(make.normal(4, 20).topk(3))


@program
def argmax(lib: Any, make: Inputs) -> list[Any]:
    return [make.normal(8, 20).argmax(1)]


@program
def accuracy(lib: Any, make: Inputs) -> list[Any]:
    return [(make.normal(16, 10).argmax(-1) == make.integers(10, 16)).mean()]


@program
def nearest_centroid(lib: Any, make: Inputs) -> list[Any]:
    """A k-means step: the new centroids."""
    points, centroids = make.normal(24, 4), make.normal(5, 4)
    distance = (points.unsqueeze(1) - centroids.unsqueeze(0)).square().sum(-1)
    member = distance.argmin(1).one_hot(5).cast("float32")
    return [(member.transpose() @ points) / (member.sum(0).reshape(5, 1) + 1e-6)]
