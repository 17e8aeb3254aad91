"""Expected results of `javascript/transform_cases.mjs`: the same programs on the CPU."""

from __future__ import annotations

from typing import Any

from javascript_expected import Net, rows

from polygrad import (
    Tensor,
    checkpoint,
    compile_step,
    custom_gradient,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    nn,
    vjp,
    vmap,
)


def lists(*tensors: Any) -> list[Any]:
    return [t.tolist() for t in tensors]


def batched() -> dict[str, Any]:
    x, y = Tensor(rows(3, 4)), Tensor(rows(3, 4)).cos()
    w = Tensor(rows(4, 2), requires_grad=True)
    mixed = vmap(lambda a: a @ w)(x)
    both = vmap(lambda a, b: (a + b, a * 2), in_axes=1, out_axes=-1)(x, y)
    pairs = vmap(lambda a: vmap(lambda b: (a * b).sum())(y))(x)
    product, total = vmap(lambda a, b: (a * b, b.sum()), in_axes=[0, None], out_axes=[1, None])(x, y[0])
    found = [vmap(lambda a, b: (a - b).square().sum())(x, y), mixed, *both, pairs, product, total]
    gradients = vmap(lambda a: (a @ w).square().sum().gradient(w)[0])(x)
    values = lists(*found, gradients)
    step = compile_step(
        lambda w, x: vmap(lambda row: (row @ w).square().sum())(x).mean(), w, nn.optim.SGD([w], 0.1), x
    )
    for _ in range(3):
        step.run(x)
    shapes = [list(t.shape) for t in found]
    return {"values": values, "kept": "kept", "depths": [[3]], "shapes": shapes, "trained": w.tolist()}


def recomputed() -> dict[str, Any]:
    Tensor.manual_seed(7)
    net = Net()
    x = Tensor(rows(6, 4), requires_grad=True)
    checkpoint(net, x).square().sum().backward()
    gradients = lists(x.grad, net.hidden.weight.grad, net.out.weight.grad)
    return {"plain": gradients, "again": gradients, "shape": [6, 3]}


def own_gradients() -> dict[str, Any]:
    x, y = Tensor([1.0, -2.0, 3.0], requires_grad=True), Tensor([4.0, 5.0, 6.0], requires_grad=True)
    clipped = custom_gradient(lambda a, scale: a * scale, lambda g, value, a: (g * value).clamp(-1, 1))
    (first,) = clipped(x, 5).sum().gradient(x)
    (second,) = clipped(x, 5).square().sum().gradient(x)
    both = custom_gradient(
        lambda a, b: (a + b, a * b), lambda g, values, a, b: (g[0] * 10 + g[1] * a, b * g[1])
    )
    total, product = both(x, y)
    values = lists(total, product, *(total.sum() + product.sum()).gradient(x, y))
    return {
        "first": first.tolist(),
        "second": second.tolist(),
        "calls": [[3], [3], [3]],
        "values": values,
        "steps": [[-2, -2], [-5, -5], [-8, -8]],
    }


def hooked() -> dict[str, Any]:
    return {"found": [[20, 40], [20, 40], [2, 4]], "kept": [2, 4]}


def derived() -> dict[str, Any]:
    x, w = Tensor([0.5, -1.0, 2.0]), Tensor(rows(3, 2))

    def f(a: Tensor) -> Tensor:
        return (a @ w).sin()

    out, pull_back = vjp(f, x)
    both, pull, other = vjp(lambda a, b: ((a * b, a.sum()), a + 1), x, x.exp(), has_aux=True)
    of = pull((both[0].ones_like(), both[1].ones_like()))
    value, slope = jvp(f, (x,), (x.ones_like(),))
    several = jacrev(lambda a, b: a * b, argnums=(0, 1))(x, x.exp())
    with_aux = jacrev(lambda a: (a.square(), a.sum()), has_aux=True)(x)
    curvature = hessian(lambda a: (a**3).sum())(x)
    per_row = vmap(jacrev(lambda row: row.square().sum()))(w)
    first = [out, *pull_back(out.ones_like()), *both, other, *of, value, slope, x.cos()]
    return {"values": lists(*first, jacrev(f)(x), jacfwd(f)(x), *several, *with_aux, curvature, per_row)}
