"""Derivatives of functions: `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`. The interface is torch.func's.

A derivative is an ordinary graph, so these functions may be nested, and used within `vmap` and `TinyJit`.
Forward mode is the gradient of a gradient: the vector-Jacobian product is linear in its cotangent, and its
derivative with respect to the cotangent is the Jacobian-vector product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polygrad.errors import ArgumentError, GradientError, ShapeError
from polygrad.helpers import prod
from polygrad.tensor.batching import vmap
from polygrad.tensor.core.trees import flatten_tensors, map_tensors
from polygrad.tensor.tensor import Tensor

ArgNums = int | tuple[int, ...]


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`function(*primals)`, and the vector-Jacobian product: a function from cotangents of the result to
    gradients, one like each of the primals.

    Primals and results are Tensors of floats, or lists, tuples and dicts of such. `has_aux`: the function
    returns (result, other), and other comes third. Raises ArgumentError, ShapeError.

        out, pull_back = vjp(lambda x: x.sin(), x)
        (gradient,) = pull_back(Tensor.ones_like(out))
    """
    inputs = [_fresh(p, "vjp") for p in primals]
    out, aux = _call(function, inputs, has_aux)
    results = flatten_tensors(out, "vjp")

    def pull_back(cotangents: Any) -> tuple[Any, ...]:
        cotangent_list = flatten_tensors(cotangents, "vjp")
        _check_alike("vjp: cotangents", results, cotangent_list)
        grads = iter(_pull_back(results, flatten_tensors(inputs, "vjp"), cotangent_list))
        return tuple([map_tensors(p, lambda _: next(grads), "vjp") for p in inputs])

    return (out, pull_back, aux) if has_aux else (out, pull_back)


def jvp(function: Callable[..., Any], primals: Any, tangents: Any, has_aux: bool = False) -> Any:
    """`function(*primals)`, and its derivative in the direction `tangents`, a tuple like `primals`.

    `has_aux`: the function returns (result, other), and other comes third. Raises ArgumentError, ShapeError.

        out, slope = jvp(lambda x: x.sin(), (x,), (Tensor.ones_like(x),))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise ArgumentError(
            f"jvp: expected tuples of primals and tangents, got {type(primals).__name__} and "
            f"{type(tangents).__name__}"
        )
    inputs = [_fresh(p, "jvp") for p in primals]
    directions = flatten_tensors(tangents, "jvp")
    _check_alike("jvp: tangents", flatten_tensors(inputs, "jvp"), directions)
    out, aux = _call(function, inputs, has_aux)
    results = flatten_tensors(out, "jvp")
    flowing = [_fresh(r._detached().zeros_like(), "jvp") for r in results]
    grads = _pull_back(results, flatten_tensors(inputs, "jvp"), flowing)
    total = sum(((g * t).sum() for g, t in zip(grads, directions, strict=True)), Tensor(0.0))
    slopes = iter(total.gradient(*flowing))
    out_slopes = map_tensors(out, lambda _: next(slopes), "jvp")
    return (out, out_slopes, aux) if has_aux else (out, out_slopes)


def jacrev(function: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The function that gives the Jacobian of `function` with respect to argument number `argnums`, or a
    tuple for several, by reverse mode: as many rows as the result has elements.

    A Jacobian has the shape of the result followed by that of the argument; where these are lists, tuples
    and dicts it is one for each, as torch's. `has_aux`: the function returns (result, other), and other
    comes second. Raises ArgumentError.

        jacobian = jacrev(lambda x: x @ w)(x)
    """

    def jacobian(*args: Any) -> Any:
        inputs, selected = _select_arguments(args, argnums, "jacrev")
        out, aux = _call(function, inputs, has_aux)

        def rows(result: Tensor) -> Any:
            basis = _basis(result)

            def row(u: Tensor) -> list[Tensor]:
                return _pull_back([result], flatten_tensors(selected, "jacrev"), [u])

            row_iterator = iter([r.reshape(*result.shape, *r.shape[1:]) for r in vmap(row)(basis)])
            return _as_argnums(map_tensors(selected, lambda _: next(row_iterator), "jacrev"), argnums)

        jacobians = map_tensors(out, rows, "jacrev")
        return (jacobians, aux) if has_aux else jacobians

    return jacobian


def jacfwd(function: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """`jacrev` by forward mode: as many columns as the arguments have elements. Raises ArgumentError."""

    def jacobian(*args: Any) -> Any:
        inputs, selected = _select_arguments(args, argnums, "jacfwd")
        out, aux = _call(function, inputs, has_aux)
        results, targets = flatten_tensors(out, "jacfwd"), flatten_tensors(selected, "jacfwd")
        flowing = [_fresh(r._detached().zeros_like(), "jacfwd") for r in results]
        columns = []  # for each target, the columns of each result
        for target, g in zip(targets, _pull_back(results, targets, flowing), strict=True):

            def column(t: Tensor, g: Tensor = g) -> list[Tensor]:
                return (g * t).sum().gradient(*flowing)

            jacobians = vmap(column)(_basis(target))
            columns.append(
                [c.permute(*range(1, c.ndim), 0).reshape(*c.shape[1:], *target.shape) for c in jacobians]
            )
        by_result = iter([list(of) for of in zip(*columns, strict=True)])

        def of_result(_: Tensor) -> Any:
            parts = iter(next(by_result))
            return _as_argnums(map_tensors(selected, lambda _: next(parts), "jacfwd"), argnums)

        jacobians = map_tensors(out, of_result, "jacfwd")
        return (jacobians, aux) if has_aux else jacobians

    return jacobian


def hessian(function: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """The function that gives the second derivatives of `function`: `jacfwd` of `jacrev`. Raises
    ArgumentError.

        curvature = hessian(lambda x: (x * x).sum())(x)
    """
    return jacfwd(jacrev(function, argnums), argnums)


def _fresh(value: Any, what: str) -> Any:
    """The same elements as new Tensors, from which nothing else is computed."""
    return map_tensors(value, lambda x: _separate(x, what), what)


def _separate(x: Tensor, what: str) -> Tensor:
    if not x.dtype.is_float:
        raise GradientError(f"{what}: expected Tensors of floats, got {x.dtype}: use .cast()")
    return x._detached()._with_backward([x], lambda g, *_: g)


def _call(function: Callable[..., Any], args: Sequence[Any], has_aux: bool) -> tuple[Any, Any]:
    with Tensor.enable_grad():
        out = function(*args)
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise ArgumentError(f"has_aux: expected a function that returns (result, other), got {out!r}")
    return out


def _pull_back(
    results: Sequence[Tensor], targets: Sequence[Tensor], cotangents: Sequence[Tensor]
) -> list[Tensor]:
    """The gradients of the targets, summed over all results."""
    total: list[Tensor] | None = None
    for result, u in zip(results, cotangents, strict=True):
        grads = result.gradient(*targets, gradient=u.cast_like(result))
        total = grads if total is None else [a + b for a, b in zip(total, grads, strict=True)]
    return [t.zeros_like() for t in targets] if total is None else total


def _select_arguments(
    args: tuple[Any, ...], argnums: ArgNums, what: str
) -> tuple[list[Any], tuple[Any, ...]]:
    """The arguments, with new Tensors in the place of those that `argnums` selects, and these new Tensors."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise ArgumentError(
                f"{what}: argnums: expected the number of one of {len(args)} arguments, got {i}"
            )
    inputs = list(args)
    for i in numbers:
        inputs[i] = _fresh(inputs[i], what)
    return inputs, tuple([inputs[i] for i in numbers])


def _as_argnums(results: Any, argnums: ArgNums) -> Any:
    return results[0] if isinstance(argnums, int) else results


def _basis(x: Tensor) -> Tensor:
    """Each element's unit vector, (elements, *shape)."""
    n = prod(x.shape)
    if not isinstance(n, int):
        raise ShapeError(f"jacobian: expected fixed sizes, got shape {x.shape}")
    return Tensor.eye(n, dtype=x.dtype, device=x._device).reshape(n, *x.shape).contiguous()


def _check_alike(what: str, expected_tensors: Sequence[Tensor], actual_tensors: Sequence[Tensor]) -> None:
    if [x.shape for x in expected_tensors] != [x.shape for x in actual_tensors]:
        expected, actual = ([x.shape for x in tensors] for tensors in (expected_tensors, actual_tensors))
        raise ShapeError(f"{what}: expected shapes {expected}, got {actual}")
