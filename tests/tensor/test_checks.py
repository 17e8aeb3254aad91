"""Checks that travel with a computation, with `CHECK=1` and `ANOMALY=1`: eager, captured and under vmap."""

from __future__ import annotations

import re
import sys
import threading

import numpy as np
import pytest
import torch
from tensor.differential import sample

import polygrad.monitor
from polygrad import Context, Tensor, TinyJit, Variable, compile_step, gradient, nn, vmap
from polygrad.errors import AnomalyError, ArgumentError, AxisError, CaptureError, LinAlgError

pytestmark = pytest.mark.usefixtures("default_device")
NAN = float("nan")


def here(lines: int = 0) -> str:
    """This file and the line of the caller, or one `lines` below."""
    return re.escape(f"{__file__}:{sys._getframe(1).f_lineno + lines}")


def index_of(values: list) -> Tensor:
    """An index that the host does not know."""
    return Tensor(values) + 0


# --- captured, under vmap, in threads


def test_a_captured_function_is_checked_after_every_replay(device):
    table = Tensor(sample(4, 3)).realize()

    @TinyJit
    def pick(i):
        return table[i].sum(1)

    line = here(-2)
    with Context(CHECK=1):
        for values in ([0, 1], [1, 2], [3, -4]):
            got = pick(index_of(values))
            np.testing.assert_allclose(got.numpy(), sample(4, 3)[values].sum(1), rtol=1e-6)
        with pytest.raises(AxisError, match=rf"index: index 4 \(element 1 .* \({line}\)"):
            pick(index_of([0, 4]))
        assert pick(index_of([2, 2])).shape == (2,)
    for _ in range(3):
        pick(index_of([0, 9]))  # a capture of its own, without checks
    with Context(CHECK=1), pytest.raises(AxisError, match="index 9"):
        pick(index_of([0, 9]))


def test_a_training_step_is_checked_after_every_run(device, tmp_path):
    model = nn.Linear(4, 3)
    optimizer = nn.optim.SGD([model.weight, model.bias], lr=0.1)
    x, y = Tensor(sample(5, 4)), Tensor([0, 1, 2, 0, 1])
    with Context(CHECK=1):
        step = compile_step(lambda m, x, y: m(x).cross_entropy(y), model, optimizer, x, y)
        first = step.run(x, y).item()
        assert step.run(x, y).item() < first
        with pytest.raises(AxisError, match=rf"cross_entropy: index 7 \(element 3 .* \({here(-3)}\)"):
            step.run(x, Tensor([0, 1, 2, 7, 1]))
        with pytest.raises(ArgumentError, match="captured with CHECK=1"):
            step.save(tmp_path / "step.pgrd")
    plain = compile_step(lambda m, x, y: m(x).cross_entropy(y), model, optimizer, x, y)
    with Context(CHECK=1), pytest.raises(CaptureError, match="compiled without CHECK=1 and is run with it"):
        plain.run(x, y)
    plain.save(tmp_path / "step.pgrd")


def test_vmap_says_which_example(device):
    rows, places = Tensor(sample(3, 4)), index_of([[0, 1], [2, 3], [1, 5]])
    pick = vmap(lambda row, i: row[i])
    with Context(CHECK=1):
        with pytest.raises(AxisError, match=r"index: index 5 \(element 1 .*in example 2 of vmap"):
            pick(rows, places)
        with pytest.raises(AxisError, match=r"index -9 \(element 0 .*in example 0 of vmap"):
            pick(rows, places * 0 - 9)
        want = np.take_along_axis(sample(3, 4), np.array([[0, 1], [2, 3], [1, 1]]), 1)
        np.testing.assert_array_equal(pick(rows, index_of([[0, 1], [2, 3], [1, 1]])).numpy(), want)
    pick(rows, places).realize()


def test_sizes_that_vary_are_checked_with_their_values(device):
    x = Tensor(sample(8)).realize()
    index = index_of([2, 5])
    with Context(CHECK=1):
        for n in (6, 5):
            part = x[: Variable("n", 1, 8).bind(n)]
            if n == 6:
                assert part[index].shape == (2,)
            else:
                with pytest.raises(AxisError, match=r"index 5 \(element 1"):
                    part[index]


@pytest.mark.parametrize("dtype", ["uint8", "uint32", "uint64"])
def test_unsigned_indices_do_not_count_from_the_end(device, dtype):
    x, last = Tensor([1.0, 2.0, 3.0]).realize(), np.iinfo(dtype).max
    index = Tensor([0, last], dtype=dtype) + Tensor([0, 0], dtype=dtype)
    with Context(CHECK=1):
        assert x[index % 3].shape == (2,)
        for pick in (lambda: x[index], lambda: x.gather(0, index)):
            with pytest.raises(AxisError, match=rf"index {last} \(element 1 .* expected 0 to 2"):
                pick()


def test_modes_end_with_their_context_and_cost_nothing_outside(device):
    assert polygrad.monitor._LockState.observer is None and not gradient.watch.observers
    with pytest.raises(AnomalyError), Tensor.detect_anomaly():
        Tensor([-1.0]).sqrt()
    assert polygrad.monitor._LockState.observer is None and not gradient.watch.observers
    assert np.isnan(Tensor([-1.0]).sqrt().item())
    index = index_of([9])
    with Context(CHECK=1), Context(CHECK=0):
        assert Tensor([1.0])[index].tolist() == [0]
    errors: list[Exception] = []

    def other():
        try:
            Tensor([1.0])[index]
        except AxisError as e:
            errors.append(e)

    with Context(CHECK=1):  # the mode is the process's
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert len(errors) == 1


# --- matrices

MATRICES = {
    "nan": [[NAN] * 3] * 3,
    "zero": [[0.0] * 3] * 3,
    "rank 2": [[1.0, 0, 0], [0, 1, 1], [0, 1, 1]],
    "good": [[4.0, 1, 0], [1, 3, 1], [0, 1, 2]],
    "indefinite": [[1.0, 2, 3], [2, 1, 0], [3, 0, 5]],
    "needs a swap": [[0.0, 1, 0], [1, 0, 0], [0, 0, 0]],
}


@pytest.mark.parametrize("upper", [False, True])
def test_info_is_torchs(device, upper):
    a = list(MATRICES.values())
    for ours, theirs in (
        (Tensor(a).cholesky_ex(upper=upper), torch.linalg.cholesky_ex(torch.tensor(a), upper=upper)),
        (Tensor(a).inv_ex(), torch.linalg.inv_ex(torch.tensor(a))),
    ):
        assert ours[1].tolist() == theirs[1].tolist() and ours[1].dtype == "int32"
        for value, want, info in zip(ours[0].numpy(), theirs[0].numpy(), ours[1].tolist(), strict=True):
            if info == 0:
                np.testing.assert_allclose(value, want, atol=1e-5)
    one, info = Tensor(MATRICES["good"]).inv_ex()
    assert info.shape == () and info.item() == 0 and one.shape == (3, 3)
    assert (
        Tensor.zeros(2, 0, 0).inv_ex()[1].tolist()
        == [0, 0]
        == Tensor.zeros(2, 0, 0).cholesky_ex()[1].tolist()
    )


def test_the_forms_with_info_have_gradients(device):
    a = np.array(MATRICES["good"], np.float32)
    for name in ("cholesky_ex", "inv_ex"):
        x, t = Tensor(a, requires_grad=True), torch.tensor(a, requires_grad=True)
        (getattr(x, name)()[0] * Tensor(sample(3, 3))).sum().backward()
        (getattr(torch.linalg, name)(t)[0] * torch.tensor(sample(3, 3))).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), t.grad.numpy(), atol=1e-4)


def test_a_matrix_that_an_operation_cannot_take(device):
    batch = Tensor([MATRICES["good"], MATRICES["rank 2"]])
    b = Tensor([1.0, 2.0, 3.0])
    calls = {
        "cholesky": lambda: batch.cholesky(),
        "inv": lambda: batch.inv(),
        "solve": lambda: batch.solve(b.reshape(3, 1)),
        "triangular_solve": lambda: (batch * Tensor([1.0, 1.0, 0.0])).triangular_solve(b.reshape(3, 1)),
    }
    for call in calls.values():
        call().realize()  # NaN or infinities, as ever
    with Context(CHECK=1):
        for name, call in calls.items():
            which = 0 if name == "triangular_solve" else 1
            with pytest.raises(
                LinAlgError, match=rf"^{name}: matrix {which}: .* 3 is .*test_checks\.py:\d+\)$"
            ):
                call()
        for good in (batch[0].cholesky(), batch[0].inv(), batch[0].solve(b), batch[:1].triangular_solve(b)):
            assert np.isfinite(good.numpy()).all()
        assert batch[1].det().item() == 0  # a singular matrix has one

        @TinyJit
        def factor(x):
            return x.cholesky()

        for scale in (1.0, 2.0, 1.0):
            factor((batch[0] * scale).realize())
        with pytest.raises(LinAlgError, match=r"cholesky: expected a positive definite matrix, .*order 1"):
            factor((-batch[0]).realize())
    for name, k in (("cholesky_ex", 3), ("inv_ex", 3)):
        with pytest.raises(LinAlgError, match=f"{name}: matrix 1: .* {k} "):
            getattr(batch, name)(check_errors=True)
        getattr(batch[:1], name)(check_errors=True)


# --- NaN


def test_the_operation_whose_result_first_had_a_nan_is_named(device):
    x = Tensor([[1.0, 0.0], [-2.0, 4.0]])
    with Tensor.detect_anomaly():
        y = x * 2
        with pytest.raises(AnomalyError, match=rf"^log \({here(1)}\): .* a NaN at position \(1, 0\)$"):
            z = y.log()
        with pytest.raises(AnomalyError, match=r"^div .*position 0"):
            z = (y[0, 1] - 0).reshape(1) / 0.0
        with pytest.raises(AnomalyError, match=r"^add .*operands of shape \(2,\) had one before"):
            z = Tensor([NAN, 1.0]) + 1
        z = Tensor([NAN, 1.0]).nan_to_num()  # no result has one
        assert z.tolist() == [0, 1] and Tensor([NAN]).isnan().tolist() == [True]
        assert (y.exp() / y.exp().sum()).sum().item() == pytest.approx(1)  # infinities are no NaN
        assert np.isinf(Tensor([0.0]).log().item())
        layer = nn.Linear(2, 2)
        layer.weight = Tensor([[NAN, 0.0], [0.0, 0.0]])
        with pytest.raises(AnomalyError, match=rf"\({here(1)}\).*operands of shape"):
            layer(x)


def test_values_that_an_operation_hides_are_none_of_its_result(device):
    x, y = Tensor([0.0, 1.0]), Tensor([0.0, 2.0])
    with Tensor.detect_anomaly():
        assert x.xlogy(y).tolist() == pytest.approx([0.0, np.log(2)])
        assert np.isfinite(Tensor([[-np.inf, 0.0]]).softmax().numpy()).all()


def test_the_operation_whose_gradient_first_had_a_nan_is_named(device):
    x = Tensor([0.0, 0.0], requires_grad=True)
    with Tensor.detect_anomaly():
        square = x * x
        line = here(-1)
        root = square.sum().sqrt()
        with pytest.raises(
            AnomalyError, match=rf"the gradient of mul \({line}\): .*shape \(2,\) has a NaN at position 0"
        ):
            root.backward()
        y = Tensor([1.0, 2.0], requires_grad=True)
        (y * y).sum().sqrt().backward()
        np.testing.assert_allclose(y.grad.numpy(), np.array([1, 2]) / np.sqrt(5), rtol=1e-6)
        with pytest.raises(AnomalyError, match="the gradient of"):
            (x * x).sum().sqrt().gradient(x)
    before = (x * x).sum().sqrt()
    with Tensor.detect_anomaly(), pytest.raises(AnomalyError, match="an operation MUL that was made before"):
        before.backward()


def test_training_is_the_same_with_and_without(device):
    def train():
        Tensor.manual_seed(0)
        model = [nn.Linear(4, 8), Tensor.relu, nn.BatchNorm(8), nn.Linear(8, 3)]
        optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=0.01)
        x, y = Tensor(sample(6, 4)), Tensor([0, 1, 2, 0, 1, 2])
        with Tensor.train():
            for _ in range(2):
                optimizer.zero_grad()
                x.sequential(model).cross_entropy(y).backward()
                optimizer.step()
        return [p.numpy() for p in nn.state.get_parameters(model)]

    want = train()
    with Context(ANOMALY=1, CHECK=1):
        got = train()
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_captured_step_is_looked_at_after_every_run(device):
    model = nn.Linear(2, 2)
    optimizer = nn.optim.SGD([model.weight, model.bias], lr=0.1)
    x = Tensor([[1.0, 2.0]])
    with Tensor.detect_anomaly():
        step = compile_step(lambda m, x: (m(x) * 0 + x).log().sum(), model, optimizer, x)
        line = here(-1)
        assert step.run(x).item() == pytest.approx(np.log(2))
        with pytest.raises(AnomalyError, match=rf"^log \({line}\): .*position \(0, 1\)"):
            step.run(Tensor([[1.0, -2.0]]))
        with pytest.raises(AnomalyError, match=r"^sqrt .*in example 1 of vmap"):
            vmap(lambda row: row.sqrt())(Tensor([1.0, -1.0]))
    step.run(Tensor([[3.0, 2.0]]))
    plain = TinyJit(lambda x: x.log())
    for _ in range(3):
        plain(x)
    with Tensor.detect_anomaly(), pytest.raises(AnomalyError, match=r"^log"):
        plain(x - 2)
