"""Steps in which some parameters take no part, and groups of parameters: torch is the judge of each step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from polygrad import Tensor, TinyJit, nn
from polygrad.errors import ArgumentError, GradientError
from polygrad.nn import optim

MAKERS: dict[str, tuple[Any, Any]] = {
    "SGD": (lambda p: optim.SGD(p, 0.1, momentum=0.9), lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "Adam": (
        lambda p: optim.Adam(p, 0.1, betas=(0.8, 0.95)),
        lambda p: torch.optim.Adam(p, 0.1, betas=(0.8, 0.95)),
    ),
    "AdamW": (lambda p: optim.AdamW(p, 0.1), lambda p: torch.optim.AdamW(p, 0.1)),
    "NAdam": (lambda p: optim.NAdam(p, 0.1), lambda p: torch.optim.NAdam(p, 0.1)),
    "RAdam": (lambda p: optim.RAdam(p, 0.1), lambda p: torch.optim.RAdam(p, 0.1)),
    "Adamax": (lambda p: optim.Adamax(p, 0.1), lambda p: torch.optim.Adamax(p, 0.1)),
    "RMSprop": (
        lambda p: optim.RMSprop(p, 0.1, centered=True),
        lambda p: torch.optim.RMSprop(p, 0.1, centered=True),
    ),
    "Adagrad": (lambda p: optim.Adagrad(p, 0.1, 0.1), lambda p: torch.optim.Adagrad(p, 0.1, 0.1)),
}
# which parameters have a gradient in each step
STEPS = [(0, 1, 2), (0,), (0, 2), (1,), (0, 1, 2), (2,), (1, 2)]
START = np.array([[1.0, -2.0], [0.5, 3.0], [-1.0, 0.25]], np.float32)


def both() -> tuple[list[Tensor], list[Any]]:
    return [Tensor(x, requires_grad=True) for x in START], [
        torch.nn.Parameter(torch.tensor(x)) for x in START
    ]


@pytest.mark.parametrize("first", [0, 1, 3])
@pytest.mark.parametrize("name", MAKERS)
def test_parameters_without_a_gradient_stay_as_torchs_do(name: str, first: int) -> None:
    ours, theirs = both()
    optimizer, other = MAKERS[name][0](ours), MAKERS[name][1](theirs)
    with Tensor.train():
        for step in STEPS[first:]:
            optimizer.zero_grad()
            other.zero_grad()
            sum((ours[i] ** 2 * (i + 1)).sum() for i in step).backward()
            sum((theirs[i] ** 2 * (i + 1)).sum() for i in step).backward()
            optimizer.step()
            other.step()
            for p, q in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=2e-4, atol=1e-5)


def test_a_captured_step_trains_what_has_gradients() -> None:
    ours, theirs = both()
    optimizer, other = optim.Adam(ours, 0.1), torch.optim.Adam(theirs, 0.1)

    @TinyJit
    def step(x: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = (ours[0] * ours[2] * x).square().sum().backward()
        optimizer.step()
        return loss.realize()

    with Tensor.train():
        for i in range(5):
            step(Tensor([1.0 + i, 2.0]).realize())
            other.zero_grad()
            (theirs[0] * theirs[2] * torch.tensor([1.0 + i, 2.0])).square().sum().backward()
            other.step()
            for p, q in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=2e-4, atol=1e-5)


def test_without_any_gradient_a_step_is_an_error() -> None:
    ours, _ = both()
    with Tensor.train(), pytest.raises(GradientError, match="none of the parameters has a gradient"):
        optim.SGD(ours, 0.1).step()


def test_groups_have_their_own_rates() -> None:
    ours, theirs = both()
    groups = lambda ps: [{"params": ps[:1], "lr": 0.5}, {"params": ps[1:], "weight_decay": 0.1}]
    optimizer = optim.AdamW(groups(ours), lr=0.1, weight_decay=0.0)
    other = torch.optim.AdamW(groups(theirs), lr=0.1, weight_decay=0.0)
    assert [g["lr"] for g in optimizer.param_groups] == pytest.approx([0.5, 0.1])
    with Tensor.train():
        for rate in (None, None, 0.01):
            if rate is not None:
                for group in (*optimizer.param_groups, *other.param_groups):
                    group["lr"] = rate
            for opt, ps in ((optimizer, ours), (other, theirs)):
                opt.zero_grad()
                sum((p * p).sum() for p in ps).backward()
                opt.step()
            for p, q in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(p.numpy(), q.detach().numpy(), rtol=2e-4, atol=1e-5)


def test_wrong_groups_are_refused() -> None:
    ours, _ = both()
    with pytest.raises(ArgumentError, match="'learning_rate'"):
        optim.SGD([{"params": ours, "learning_rate": 0.1}])
    with pytest.raises(ArgumentError, match="expected groups with 'params'"):
        optim.SGD([{"lr": 0.1}])
    with pytest.raises(ArgumentError, match="two numbers"):
        optim.Adam(ours, betas=(0.9,))
    with pytest.raises(ArgumentError, match="expected one of params, lr"):
        optim.SGD(ours).param_groups[0]["learning_rate"] = 1


def test_frozen_layers_are_not_trained() -> None:
    first, second = nn.Linear(3, 4), nn.Linear(4, 2)
    for p in nn.state.get_parameters(first):
        p.requires_grad_(False)
    before = first.weight.tolist()
    optimizer = optim.Adam(nn.state.get_parameters([first, second]))
    with Tensor.train():
        second(first(Tensor.ones(2, 3)).relu()).square().mean().backward()
        optimizer.step()
    assert first.weight.tolist() == before and first.weight.grad is None
