"""Derivatives of functions: `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`. The interface is torch.func's.

A derivative is a graph like any other, so each of these may be used inside another, inside of `vmap` and
`TinyJit`. Forward mode is the gradient of a gradient: what flows back is linear in what flows in, and the
derivative of that is the Jacobian times a vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polygrad.errors import ArgumentError, GradientError, ShapeError
from polygrad.helpers import prod
from polygrad.tensor.batching import vmap
from polygrad.tensor.core.trees import leaves, mapped
from polygrad.tensor.tensor import Tensor

ArgNums = int | tuple[int, ...]


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`function(*primals)`, and a function that gives what flows back from cotangents of that result: for
    each of the primals, Tensors like it.

    Primals and results are Tensors of floats, or lists, tuples and dicts of such. `has_aux`: the function
    returns (result, other), and other comes third. Raises ArgumentError, ShapeError.

        out, pull_back = vjp(lambda x: x.sin(), x)
        (gradient,) = pull_back(Tensor.ones_like(out))
    """
    inputs = [_fresh(p, "vjp") for p in primals]
    out, aux = _called(function, inputs, has_aux)
    results = leaves(out, "vjp")

    def pull_back(cotangents: Any) -> tuple[Any, ...]:
        given = leaves(cotangents, "vjp")
        _check_alike("vjp: cotangents", results, given)
        grads = iter(_pulled(results, leaves(inputs, "vjp"), given))
        return tuple([mapped(p, lambda _: next(grads), "vjp") for p in inputs])

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
    directions = leaves(tangents, "jvp")
    _check_alike("jvp: tangents", leaves(inputs, "jvp"), directions)
    out, aux = _called(function, inputs, has_aux)
    results = leaves(out, "jvp")
    flowing = [_fresh(r._detached().zeros_like(), "jvp") for r in results]
    grads = _pulled(results, leaves(inputs, "jvp"), flowing)
    total = sum(((g * t).sum() for g, t in zip(grads, directions, strict=True)), Tensor(0.0))
    slopes = iter(total.gradient(*flowing))
    out_slopes = mapped(out, lambda _: next(slopes), "jvp")
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
        inputs, chosen = _chosen(args, argnums, "jacrev")
        out, aux = _called(function, inputs, has_aux)

        def rows(result: Tensor) -> Any:
            basis = _basis(result)

            def row(u: Tensor) -> list[Tensor]:
                return _pulled([result], leaves(chosen, "jacrev"), [u])

            found = iter([r.reshape(*result.shape, *r.shape[1:]) for r in vmap(row)(basis)])
            return _as_argnums(mapped(chosen, lambda _: next(found), "jacrev"), argnums)

        found = mapped(out, rows, "jacrev")
        return (found, aux) if has_aux else found

    return jacobian


def jacfwd(function: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """`jacrev` by forward mode: as many columns as the arguments have elements. Raises ArgumentError."""

    def jacobian(*args: Any) -> Any:
        inputs, chosen = _chosen(args, argnums, "jacfwd")
        out, aux = _called(function, inputs, has_aux)
        results, targets = leaves(out, "jacfwd"), leaves(chosen, "jacfwd")
        flowing = [_fresh(r._detached().zeros_like(), "jacfwd") for r in results]
        columns = []  # for each target, those of each result
        for target, g in zip(targets, _pulled(results, targets, flowing), strict=True):

            def column(t: Tensor, g: Tensor = g) -> list[Tensor]:
                return (g * t).sum().gradient(*flowing)

            found = vmap(column)(_basis(target))
            columns.append(
                [c.permute(*range(1, c.ndim), 0).reshape(*c.shape[1:], *target.shape) for c in found]
            )
        by_result = iter([list(of) for of in zip(*columns, strict=True)])

        def of_result(_: Tensor) -> Any:
            parts = iter(next(by_result))
            return _as_argnums(mapped(chosen, lambda _: next(parts), "jacfwd"), argnums)

        found = mapped(out, of_result, "jacfwd")
        return (found, aux) if has_aux else found

    return jacobian


def hessian(function: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """The function that gives the second derivatives of `function`: `jacfwd` of `jacrev`. Raises
    ArgumentError.

        curvature = hessian(lambda x: (x * x).sum())(x)
    """
    return jacfwd(jacrev(function, argnums), argnums)


def _fresh(value: Any, what: str) -> Any:
    """The same elements as Tensors that nothing else is computed from, so that they can be told apart."""
    return mapped(value, lambda x: _alone(x, what), what)


def _alone(x: Tensor, what: str) -> Tensor:
    if not x.dtype.is_float:
        raise GradientError(f"{what}: expected Tensors of floats, got {x.dtype}: use .cast()")
    return x._detached()._with_backward([x], lambda g, *_: g)


def _called(function: Callable[..., Any], args: Sequence[Any], has_aux: bool) -> tuple[Any, Any]:
    with Tensor.enable_grad():
        out = function(*args)
    if not has_aux:
        return out, None
    if not isinstance(out, tuple) or len(out) != 2:
        raise ArgumentError(f"has_aux: expected a function that returns (result, other), got {out!r}")
    return out


def _pulled(
    results: Sequence[Tensor], targets: Sequence[Tensor], cotangents: Sequence[Tensor]
) -> list[Tensor]:
    """What flows back to the targets from all results."""
    total: list[Tensor] | None = None
    for result, u in zip(results, cotangents, strict=True):
        grads = result.gradient(*targets, gradient=u.cast_like(result))
        total = grads if total is None else [a + b for a, b in zip(total, grads, strict=True)]
    return [t.zeros_like() for t in targets] if total is None else total


def _chosen(args: tuple[Any, ...], argnums: ArgNums, what: str) -> tuple[list[Any], tuple[Any, ...]]:
    """The arguments, with those of the numbers `argnums` to themselves; and these."""
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


def _as_argnums(found: Any, argnums: ArgNums) -> Any:
    return found[0] if isinstance(argnums, int) else found


def _basis(x: Tensor) -> Tensor:
    """Each element's unit vector, (elements, *shape)."""
    n = prod(x.shape)
    if not isinstance(n, int):
        raise ShapeError(f"jacobian: expected fixed sizes, got shape {x.shape}")
    return Tensor.eye(n, dtype=x.dtype, device=x._device).reshape(n, *x.shape).contiguous()


def _check_alike(what: str, wanted: Sequence[Tensor], given: Sequence[Tensor]) -> None:
    if [x.shape for x in wanted] != [x.shape for x in given]:
        raise ShapeError(
            f"{what}: expected shapes {[x.shape for x in wanted]}, got {[x.shape for x in given]}"
        )
