"""Functions of functions for bindings in other languages: `polygrad/bridge.py` calls these as
`$functions.NAME`.

`function` is one of the other side (`polygrad/bridge_functions.py`). Its arguments come as lists of Tensors,
one for each argument, and results go back as one list of Tensors: the other side knows their structure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polygrad.tensor import batching, custom_gradient, jacobians
from polygrad.tensor.autograd import HookHandle
from polygrad.tensor.core.trees import flatten_tensors
from polygrad.tensor.tensor import Tensor

Function = Callable[..., Any]
Arguments = Sequence[list[Tensor]]
Axes = int | list[int | None] | None


def vmap(function: Function, in_axes: Axes, out_axes: Axes, arguments: Arguments) -> list[Tensor]:
    """`polygrad.vmap`, called."""
    return flatten_tensors(batching.vmap(function, in_axes, out_axes)(*arguments), "vmap")


def checkpoint(result: Any, inputs: Sequence[Tensor]) -> Tensor:
    """`polygrad.checkpoint` of a function that has run."""
    return custom_gradient.checkpoint(lambda *_: result, *inputs)  # type: ignore[no-any-return]


def with_gradient(forward: Function, backward: Function, inputs: Sequence[Tensor]) -> list[Tensor]:
    """`polygrad.custom_gradient`, called."""
    return flatten_tensors(custom_gradient.custom_gradient(forward, backward)(*inputs), "custom_gradient")


def vjp(function: Function, primals: Arguments, has_aux: bool) -> list[Any]:
    """`polygrad.vjp`: the Tensors of the result, those of what else there is, and the pull-back."""
    out, pull_back, *aux = jacobians.vjp(function, *primals, has_aux=has_aux)
    return [*flatten_tensors([out, *aux], "vjp"), pull_back]


def pull_back(function: Function, cotangents: Sequence[Tensor]) -> list[Tensor]:
    """The gradients of all primals."""
    return flatten_tensors(function(cotangents), "vjp")


def jvp(function: Function, primals: Arguments, tangents: Arguments, has_aux: bool) -> list[Tensor]:
    """`polygrad.jvp`: the Tensors of the result, of its derivative, and of what else there is."""
    return flatten_tensors(jacobians.jvp(function, tuple(primals), tuple(tangents), has_aux=has_aux), "jvp")


def jacobian(
    mode: str, function: Function, argnums: Any, has_aux: bool, arguments: Arguments
) -> list[Tensor]:
    """`jacrev`, `jacfwd` or `hessian`, called."""
    numbers = tuple(argnums) if isinstance(argnums, list) else argnums
    if mode == "hessian":
        derivative = jacobians.hessian(function, numbers)
    else:
        make = jacobians.jacrev if mode == "jacrev" else jacobians.jacfwd
        derivative = make(function, numbers, has_aux=has_aux)
    return flatten_tensors(derivative(*arguments), mode)


def register_hook(tensor: Tensor, hook: Function) -> HookHandle:
    """`Tensor.register_hook`."""
    return tensor.register_hook(hook)


def remove_hook(handle: HookHandle) -> None:
    """Stop calling a hook."""
    handle.remove()
