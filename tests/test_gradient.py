"""The table of vector-Jacobian products.

Finite differences, torch, gradients of gradients, where gradients stop.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from polygrad import Tensor, checkpoint
from polygrad.errors import DTypeError, GradientError, ShapeError
from polygrad.gradient import VJP, VJP_BY_SOURCE, gradient
from polygrad.tensor.core.expressions import polynomial
from polygrad.uop.intern import node_count
from polygrad.uop.ops import GroupOp, Ops

# one expression of two float64 matrices (3, 4), elements in 0.5..2, for each rule
EXPRESSIONS = {
    "ADD": lambda x, y: x + y * 3,
    "MUL": lambda x, y: x * y * x,
    "MULACC": lambda x, y: polynomial(x * y, (0.5, -2.0, 3.0)) * x,
    "RECIPROCAL": lambda x, y: y / x,
    "EXP2": lambda x, y: (x * y).exp2(),
    "LOG2": lambda x, y: (x * y).log2(),
    "SQRT": lambda x, y: (x + y).sqrt(),
    "SIN": lambda x, y: (x * y).sin(),
    "TRUNC": lambda x, y: (x * 0.1).trunc() + y,
    "MAX": lambda x, y: x.maximum(y) * x,
    "WHERE": lambda x, y: (x < y).where(x * y, y),
    "CAST": lambda x, y: x.cast("float64") * y,
    "sum": lambda x, y: (x * y).sum(1),
    "max": lambda x, y: (x * y).max(0),
    "prod": lambda x, y: (x * y).prod(1),
    "RESHAPE": lambda x, y: x.reshape(2, 6) * y.reshape(2, 6),
    "EXPAND": lambda x, y: x.unsqueeze(0).expand(2, 3, 4) * y,
    "PERMUTE": lambda x, y: x.T @ y,
    "PAD": lambda x, y: (x.pad(((1, 0), (0, 2))) + 1) * y.pad(((0, 1), (2, 0))),
    "SHRINK": lambda x, y: x[1:, :2] * y[:2, 2:],
    "FLIP": lambda x, y: x.flip(0) * y.flip((0, 1)),
    "SHEAR": lambda x, y: x.pool((2, 2), 1, (1, 2)) * y.pool((2, 2), 1, (1, 2)),
    "SHEAR by strides": lambda x, y: x.pool((3,), 1) * y.pool((2,), 2, 1)[:, :, :1],
    "CONTIGUOUS": lambda x, y: (x * 2).contiguous() * y,
}


def _values(seed):
    return np.random.default_rng(seed).uniform(0.5, 2, (3, 4))


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_first_and_second_gradients_agree_with_finite_differences_to_1e_6(name):
    f = EXPRESSIONS[name]
    x, y = Tensor(_values(0)), Tensor(_values(1))

    def scalar(x, y):
        out = f(x, y)
        return (out * Tensor(np.cos(np.arange(out.numel())).reshape(out.shape))).sum()

    def slopes(x, y):
        gx, gy = scalar(x, y).gradient(x, y)
        return (gx * Tensor(np.sin(np.arange(12.0)).reshape(3, 4))).sum() + (gy * gy).sum()

    for value, name_of in ((scalar, "first"), (slopes, "second")):
        gx, gy = value(x, y).gradient(x, y)
        for which, g in enumerate((gx, gy)):
            direction = _values(5) - 1
            h = 1e-6
            ends = []
            for sign in (1, -1):
                moved = [Tensor(_values(0)), Tensor(_values(1))]
                moved[which] = moved[which] + Tensor(direction * h * sign)
                ends.append(value(*moved))
            ends[0].realize(ends[1], g)
            slope = (ends[0].item() - ends[1].item()) / (2 * h)
            np.testing.assert_allclose(
                (g.numpy() * direction).sum(), slope, rtol=1e-5, atol=1e-6, err_msg=name_of
            )


def test_every_op_that_reaches_the_table_has_a_rule():
    never = {
        Ops.NEG,
        Ops.SUB,
        Ops.FDIV,
        Ops.DOT,
        Ops.MOD,
        Ops.IDIV,
        Ops.SHL,
        Ops.SHR,
        Ops.XOR,
        Ops.OR,
        Ops.AND,
        Ops.THREEFRY,
    }
    assert (GroupOp.ALU | GroupOp.Movement) - GroupOp.Comparison - never <= {*VJP, *VJP_BY_SOURCE}


def test_no_node_is_made_for_a_gradient_that_nobody_wants():
    x, y = Tensor([3.0, 5.0]).uop, Tensor([7.0, 11.0]).uop
    g = Tensor([13.0, 17.0]).uop
    product, quotient, chosen = x * y, x / y, (x < y).where(x, y)
    for node in (product, quotient, chosen):
        before = node_count()
        assert list(gradient(node, g, [x])) == [x]
        wanted = node_count() - before
        gradient(node, g, [x, y])
        assert node_count() - before > wanted


def test_constant_factors_of_a_gradient():
    x, w = Tensor([1.0, 2.0]), Tensor([3.0, 5.0])
    for factor in (0.0, 1.0, 2.0):
        (g,) = (x * factor * w).sum().gradient(x)
        assert g.tolist() == [3 * factor, 5 * factor]


def test_third_derivative():
    x = Tensor([1.5], dtype="float64")
    g = (x**5).sum()
    for _ in range(3):
        (g,) = g.sum().gradient(x)
    assert g.item() == pytest.approx(60 * 1.5**2)


def test_hessian_vector_product_of_a_small_network_agrees_with_torch():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s) for s in ((5, 4), (4, 3), (4, 3))]

    def f(x, w, v, grad):
        out = ((x @ w).tanh().softmax(-1) * (x @ w)).sum()
        (g,) = grad(out, w)
        return grad((g * v).sum(), w)[0]

    ours = f(*map(Tensor, arrays), lambda a, b: a.gradient(b))
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    x, w, v = theirs
    (g,) = torch.autograd.grad(((x @ w).tanh().softmax(-1) * (x @ w)).sum(), w, create_graph=True)
    (want,) = torch.autograd.grad((g * v).sum(), w)
    np.testing.assert_allclose(ours.numpy(), want.numpy(), rtol=1e-9, atol=1e-10)


# --- Tensors: backward, leaves, where gradients stop


def test_backward_adds_up_in_leaves_only():
    x, c = Tensor([1.0, 2.0], requires_grad=True), Tensor([3.0, 4.0])
    y = x * c
    y.sum().backward()
    (y * y).sum().backward()
    assert x.grad.tolist() == [3 + 18, 4 + 64] and c.grad.tolist() == [1 + 6, 2 + 32] and y.grad is None


def test_backward_fills_every_float_leaf_that_did_not_refuse():
    a, b, refuses = Tensor([1.0, 2.0]), Tensor([3.0, 4.0]), Tensor([5.0, 6.0], requires_grad=False)
    whole, stranger, one = Tensor([1, 2]), Tensor([7.0, 8.0]), Tensor.ones(2)
    row, between = b.reshape(1, 2)[:, ::-1], a * b
    ((between + row).sum() + (refuses * a * one).sum() + (whole * a).sum() + a.detach().sum()).backward()
    assert a.grad.tolist() == [3 + 5 + 1, 4 + 6 + 2]
    assert b.grad.tolist() == [1 + 1, 2 + 1]
    assert a.grad.requires_grad is False
    for t in (refuses, whole, stranger, one, row, between):
        assert t.grad is None


def test_a_result_is_a_leaf_once_it_is_data_or_what_it_came_from_is_gone():
    x = Tensor([1.0, 2.0])
    y = (x * 2).realize()
    (y * y).sum().backward()
    assert x.grad is None and y.grad.tolist() == [4, 8]
    z = Tensor([1.0, 2.0]) * 2
    (z * z).sum().backward()
    assert z.grad.tolist() == [4, 8]
    w = Tensor([1.0, 2.0])
    before = w * 3
    loss = (before * before).sum()
    before.realize()  # the loss was made of what it was before
    loss.backward()
    assert w.grad.tolist() == [18, 36] and before.grad is None


def test_constants_that_require_a_gradient_have_one_of_their_own():
    ones, same = Tensor.ones(3, requires_grad=True), Tensor.full((3,), 1.0).requires_grad_()
    one, other = Tensor(1.0, requires_grad=True), Tensor.ones(3)
    (ones * 2 + same * 3 + one + 1 + other).sum().backward()
    assert ones.grad.tolist() == [2, 2, 2] and same.grad.tolist() == [3, 3, 3] and one.grad.item() == 3
    assert other.grad is None


def test_without_gradients_there_are_no_leaves():
    x = Tensor([1.0, 2.0])
    with Tensor.no_grad():
        y = x * 2
        z = Tensor([3.0]) * 2  # what it was computed from is gone
    with pytest.raises(GradientError, match="no Tensor with requires_grad=True leads to"):
        (y * z).sum().backward()
    assert y.grad is None and z.grad is None and y.requires_grad is z.requires_grad is False
    x = Tensor([1.0, 2.0])
    loss = (x * x).sum()
    (loss + x.detach().sum()).backward()
    assert x.grad.tolist() == [2, 4] and loss.grad is None


def test_views_of_one_memory_are_leaves_by_their_nodes():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    view = x[1]
    view.realize()
    ((x + 0.0) * view).sum().backward()
    assert x.grad.shape == (2, 2)


def test_item_before_backward_keeps_the_graph():
    x = Tensor([1.0, 2.0], requires_grad=True)
    loss = (x * x).sum()
    assert loss.item() == 5
    loss.backward()
    assert x.grad.tolist() == [2, 4]


def test_a_leaf_realized_after_it_was_used_gets_its_gradient():
    w = Tensor([1.0, 2.0]) + 1
    w.requires_grad = True
    loss = (w * w).sum()
    w.realize()
    loss.backward()
    assert w.grad.tolist() == [4, 6]


def test_reshaped_and_transposed_leaves_get_their_gradient():
    w = Tensor([[1.0, 2.0], [3.0, 4.0]]).T
    w.requires_grad = True
    (Tensor([[1.0, 10.0]]) @ w.T.reshape(4).reshape(2, 2)).sum().backward()
    assert w.grad.tolist() == [[1, 10], [1, 10]]


def test_detach_and_integers_stop_gradients():
    x = Tensor([1.0, 2.0])
    assert (x.detach() * x).sum().gradient(x)[0].tolist() == [1, 2]
    assert (x.int().float() + x).sum().gradient(x)[0].tolist() == [1, 1]
    assert x.detach().sum().gradient(x)[0].tolist() == [0, 0]
    assert x.sum().gradient(Tensor([3.0, 4.0]))[0].tolist() == [0, 0]
    assert not x.detach().requires_grad


def test_gradient_takes_what_flows_in():
    x = Tensor([1.0, 2.0])
    assert (x * x).gradient(x, gradient=Tensor([1.0, 10.0]))[0].tolist() == [2, 40]
    x.requires_grad = True
    (x * x).backward(Tensor([1.0, 1.0]))
    assert x.grad.tolist() == [2, 4]


def test_gradient_of_an_intermediate():
    x = Tensor([1.0, 2.0])
    y = x.reshape(2, 1) * 3
    assert (y * y).sum().gradient(y)[0].tolist() == [[6], [12]]


def test_requires_grad_propagates_as_in_tinygrad():
    a, b, n = Tensor([1.0], requires_grad=True), Tensor([1.0], requires_grad=False), Tensor([1.0])
    assert (a + b).requires_grad and (n + a).requires_grad
    assert (
        (b + b).requires_grad is False
        and (n + n).requires_grad is None
        and (n + b).requires_grad is (b + n).requires_grad is None
    )
    assert (a > b).requires_grad is False
    with Tensor.no_grad():
        assert (a * 2).requires_grad is False
    assert (a * 2).requires_grad


def test_errors():
    x = Tensor([1.0, 2.0])
    with pytest.raises(GradientError, match="scalar"):
        (x * 2).backward()
    with pytest.raises(GradientError, match="float"):
        Tensor([1]).sum().backward()
    with pytest.raises(GradientError, match="float targets"):
        x.sum().gradient(Tensor([1]))
    with pytest.raises(ShapeError, match="gradient="):
        (x * 2).gradient(x, gradient=Tensor([1.0]))
    with pytest.raises(DTypeError):
        x & x
    assert x.sum().gradient(x)[0].tolist() == [1, 1]


def test_the_gradient_of_a_sum_is_no_product_by_one():
    x = Tensor([1.0, 2.0]).uop
    root = (x * x).reduce_axis(Ops.ADD, (0,)).reshape(())
    g = gradient(root, root.const_like(1.0), [x])[x]
    assert [n.op for n in g.toposort()] == [Ops.BUFFER, Ops.ADD]


@pytest.mark.parametrize("name", ["sigmoid", "silu", "gelu", "tanh", "quick_gelu"])
def test_gradients_of_sigmoids_where_the_exponential_overflows_within_1e_5_of_torch(name):
    values = [-1000.0, -100.0, -30.0, -11.0, 11.0, 100.0, 1000.0]
    x, t = Tensor(values), torch.tensor(values, requires_grad=True)
    (ours,) = getattr(x, name)().sum().gradient(x)
    functions = {
        "gelu": lambda t: torch.nn.functional.gelu(t, approximate="tanh"),
        "silu": torch.nn.functional.silu,
        "quick_gelu": lambda t: t * (t * 1.702).sigmoid(),
    }
    functions.get(name, getattr(torch, name, None))(t).sum().backward()
    np.testing.assert_allclose(ours.numpy(), t.grad.numpy(), atol=1e-5)


@pytest.mark.parametrize("device", ["CPU", "WASM", "INTERP"])
@pytest.mark.parametrize("value_too", [False, True])
def test_a_maximum_is_found_among_values_computed_again(device, value_too):
    """Whatever else is computed along with the gradient, and so stored, the values round the same."""
    x = np.random.default_rng(21).standard_normal((78, 39)).astype(np.float32)
    theirs = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    y = F.gelu(theirs, approximate="tanh")
    F.gelu(y - y.amax(1, keepdim=True), approximate="tanh").square().mean().backward()
    ours = Tensor(x, device=device, requires_grad=True)
    y = ours.gelu()
    out = (y - y.max(1, keepdim=True)).gelu()
    (gradient,) = (out * out).mean().gradient(ours)
    if value_too:
        out.realize(gradient)
    want = theirs.grad.numpy()
    np.testing.assert_allclose(gradient.numpy(), want, atol=1e-5 * abs(want).max())


def test_a_checkpoint_counts_a_stored_value_once_that_it_reads_in_two_shapes():
    w = Tensor([[0.5, 1.0], [1.5, 2.0]], requires_grad=True)
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=False)
    half = (w * 0.5).realize()
    checkpoint(lambda x: x @ half.T @ half, x).sum().backward()
    again = Tensor(w.numpy(), requires_grad=True)
    (x @ (again * 0.5).T @ (again * 0.5)).sum().backward()
    assert w.grad.tolist() == again.grad.tolist()
