"""Gradients that a captured function reads and leaves in `.grad`: as those of eager calls, or an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from polygrad import Tensor, TinyJit, nn
from polygrad.errors import CaptureError

Captured = Callable[[Callable[..., Any]], Any]


class Training:
    """A leaf, its optimizer, and what is captured: `backward` of a loss, and `step`."""

    def __init__(self, device: str, capture: Captured, forgets: bool = False) -> None:
        self.w = w = Tensor([1.0, 2.0], device, requires_grad=True)
        self.device, self.optimizer = device, nn.optim.SGD([w], lr=0.1)

        def backward(x: Tensor) -> Tensor:
            if forgets:
                self.optimizer.zero_grad()
            return (w * w * x).sum().backward().realize()

        def step() -> Tensor:
            self.optimizer.step()
            self.optimizer.zero_grad()
            return w.realize()

        self.backward, self.step = capture(backward), capture(step)

    def call(self, i: int) -> list[Any]:
        loss = self.backward(Tensor([1.0, 0.1 * i], self.device).realize())
        return [loss.item(), self.w.grad.tolist()]


def never(t: Training) -> list[Any]:
    return [t.call(i) for i in range(6)]


def reset_once(t: Training) -> list[Any]:
    found = []
    for i in range(8):
        if i == 4:
            t.w.grad = None
        found += t.call(i)
    return found


def reset_before_each(t: Training) -> list[Any]:
    found = []
    for i in range(6):
        t.optimizer.zero_grad()
        found += t.call(i)
    return found


def eager_steps(t: Training) -> list[Any]:
    found = []
    for i in range(6):
        found += t.call(i)
        t.optimizer.step()
        found += [t.w.tolist()]
    return found


def accumulated(t: Training) -> list[Any]:
    """Two captured backwards for each captured step, which forgets the gradient."""
    found: list[Any] = []
    for i in range(6):
        found += [t.call(i), t.call(i + 1)]
        t.step()
        found += [t.w.tolist(), t.w.grad]
    return found


def accumulated_in_place(t: Training) -> list[Any]:
    """The same with one gradient, which is set to 0."""
    t.w.grad = Tensor.zeros(2, device=t.device).contiguous().realize()
    found: list[Any] = []
    for i in range(6):
        t.optimizer.zero_grad(set_to_none=False)
        assert t.w.grad is not None
        found += [t.call(i), t.call(i + 1)]
        t.optimizer.step()
        found += [t.w.tolist()]
    return found


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize(
    "run", [never, reset_once, reset_before_each, eager_steps, accumulated, accumulated_in_place]
)
def test_gradients_of_captured_functions_are_those_of_eager_ones(
    run: Callable[[Training], list[Any]], forgets: bool, device: str
) -> None:
    with Tensor.train():
        assert run(Training(device, TinyJit, forgets)) == run(Training(device, lambda f: f, forgets))


def test_no_call_is_captured_anew_once_each_of_the_gradients_states_has_been() -> None:
    with Tensor.train():
        t = Training("CPU", TinyJit)
        seen = []
        for i in range(8):
            for _ in range(2):
                t.call(i)
                seen.append(t.backward.program)
            t.optimizer.step()
            t.optimizer.zero_grad()
    assert len({id(p) for p in seen[6:]}) == 2 and all(
        p is q for p, q in zip(seen[6:], seen[8:], strict=False)
    )


def test_a_step_that_is_given_another_gradient_each_time_is_an_error_that_says_so() -> None:
    w = Tensor([1.0, 2.0], requires_grad=True)
    optimizer = nn.optim.SGD([w], lr=0.1)
    step = TinyJit(lambda: optimizer.step())
    before, after = Tensor([1.0, 2.0], requires_grad=True), []
    other = nn.optim.SGD([before], lr=0.1)
    message = (
        r"the gradient of a Tensor of shape \(2,\) that requires one .*: call zero_grad\(\) and step\(\)"
    )
    with Tensor.train(), pytest.raises(CaptureError, match=message):
        for i in range(12):
            for leaf, train in ((w, step), (before, other.step)):
                leaf.grad = None
                (leaf * leaf * (i + 1.0)).sum().backward()
                train()
            after.append(w.tolist())
            assert after[-1] == before.tolist()  # as long as there is no error, it is right


def test_a_lazy_gradient_that_a_call_overwrites_the_operands_of_has_its_value(device: str) -> None:
    """It was computed in the capture, before the write, and then taken for computed: as zeros."""
    w = Tensor([1.0, 2.0], device, requires_grad=True)
    kept: list[Any] = [None]

    @TinyJit
    def step() -> None:
        with Tensor.no_grad():
            w.assign(w - kept[0] * 0.125).realize()

    for _ in range(5):
        before = w.tolist()
        loss = (w * w).sum().backward()
        kept[0], w.grad = w.grad, None
        step()
        assert w.tolist() == [x * 0.75 for x in before] and kept[0].tolist() == [2 * x for x in before]
        assert loss.item() == sum(x * x for x in before)


def test_a_gradient_that_the_function_does_not_use_may_be_any() -> None:
    w, other = Tensor([1.0], requires_grad=True), Tensor([3.0], requires_grad=True)
    f = TinyJit(lambda x: (x * 2 + w.detach()).realize())
    for i in range(5):
        other.grad, w.grad = Tensor([float(i)]), Tensor([float(i)]).realize()
        assert f(Tensor([1.0])).item() == 3 and w.grad.item() == other.grad.item() == i
        if i > 1:
            assert f.captured
