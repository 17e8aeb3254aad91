"""RMSprop, Muon, LARS, LAMB, clipping, schedules: against torch and tinygrad, captured and not; refusals."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from polygrad import Tensor, TinyJit, compile_step, nn
from polygrad.errors import ArgumentError, CaptureError, GradientError
from polygrad.nn import optim

pytestmark = pytest.mark.usefixtures("default_device")

# name -> (ours, torch's)
AGAINST_TORCH = {
    "rmsprop": (lambda p: optim.RMSprop(p), lambda p: torch.optim.RMSprop(p)),
    "rmsprop_momentum": (
        lambda p: optim.RMSprop(p, 0.02, 0.9, momentum=0.8, weight_decay=0.05),
        lambda p: torch.optim.RMSprop(p, 0.02, 0.9, momentum=0.8, weight_decay=0.05),
    ),
    "rmsprop_centered": (
        lambda p: optim.RMSprop(p, 0.02, eps=1e-3, centered=True),
        lambda p: torch.optim.RMSprop(p, 0.02, eps=1e-3, centered=True),
    ),
    "rmsprop_everything": (
        lambda p: optim.RMSprop(p, 0.02, 0.8, 1e-3, 0.1, 0.5, True),
        lambda p: torch.optim.RMSprop(p, 0.02, 0.8, 1e-3, 0.1, 0.5, True),
    ),
    "lamb_as_adam": (
        lambda p: optim.LAMB(p, 0.01, weight_decay=0.1, adam=True),
        lambda p: torch.optim.AdamW(p, 0.01, eps=1e-6, weight_decay=0.1),
    ),
    "lars_as_sgd": (
        lambda p: optim.LARS(p, 0.1, 0.9, 0.01, nesterov=True, classic=False, tcoef=0.0),
        lambda p: torch.optim.SGD(p, 0.1, 0.9, weight_decay=0.01, nesterov=True),
    ),
    "adam_clipped": (lambda p: clipped(optim.Adam(p, 0.01)), lambda p: torch.optim.Adam(p, 0.01)),
    "sgd_clipped": (lambda p: clipped(optim.SGD(p, 0.1)), lambda p: torch.optim.SGD(p, 0.1)),
}


def clipped(optimizer):
    optimizer.clip_gradients(max_norm=0.05)
    return optimizer


def data():
    rng = np.random.default_rng(0)
    x, w, b = (rng.normal(size=s).astype(np.float32) for s in ((6, 4), (4, 3), (3,)))
    return x, np.array([0, 1, 2, 0, 1, 2], np.int32), w, b


@pytest.mark.parametrize("name", AGAINST_TORCH)
def test_six_steps_agree_with_torch_within_2e_5(device, name):
    x, y, w, b = data()
    ours = [Tensor(w), Tensor(b)]
    theirs = [torch.tensor(w, requires_grad=True), torch.tensor(b, requires_grad=True)]
    opt, opt_torch = AGAINST_TORCH[name][0](ours), AGAINST_TORCH[name][1](theirs)
    for _ in range(6):
        with Tensor.train():
            opt.zero_grad()
            (Tensor(x) @ ours[0] + ours[1]).cross_entropy(Tensor(y)).backward()
            opt.step()
        opt_torch.zero_grad()
        logits = torch.tensor(x) @ theirs[0] + theirs[1]
        torch.nn.functional.cross_entropy(logits, torch.tensor(y).long()).backward()
        if "clipped" in name:
            torch.nn.utils.clip_grad_norm_(theirs, 0.05)
        opt_torch.step()
    for a, t in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.numpy(), t.detach().numpy(), rtol=2e-5, atol=2e-6)


# Twenty steps of each: (our class and torch's, our arguments, torch's where they are other ones).
TWENTY_STEPS = [
    ("Adagrad", {}, {}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.05, "initial_accumulator_value": 0.2}, {}),
    ("Adadelta", {}, {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.05}, {}),
    ("Adamax", {}, {}),
    ("Adamax", {"lr": 0.05, "eps": 1e-3, "weight_decay": 0.05}, {"b1": 0.8, "b2": 0.95}),
    ("NAdam", {}, {}),
    ("NAdam", {"lr": 0.05, "momentum_decay": 0.01, "weight_decay": 0.05}, {"b1": 0.8, "b2": 0.95}),
    ("NAdam", {"weight_decay": 0.1}, {"decoupled": True}),
    ("RAdam", {"lr": 0.05}, {}),
    ("RAdam", {"lr": 0.05, "eps": 1e-3, "weight_decay": 0.05}, {"b1": 0.8, "b2": 0.95}),
    ("RAdam", {"weight_decay": 0.1}, {"decoupled": True}),
    ("Rprop", {}, {}),
    ("Rprop", {"lr": 0.05, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.2)}, {}),
    ("ASGD", {}, {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "alpha": 0.6, "t0": 3, "weight_decay": 0.05}, {}),
]


def to_torch(ours):
    """Arguments that torch calls otherwise."""
    names = {"decoupled": "decoupled_weight_decay"}
    theirs = {names.get(k, k): v for k, v in ours.items() if k not in ("b1", "b2")}
    return {**theirs, "betas": (ours["b1"], ours["b2"])} if "b1" in ours else theirs


@pytest.mark.parametrize("device", ["CPU"])
@pytest.mark.parametrize(
    ("name", "same", "other"), TWENTY_STEPS, ids=lambda x: x if x and isinstance(x, str) else ""
)
def test_twenty_steps_agree_with_torch_within_2e_6(device, name, same, other):
    x, y, w, b = data()
    ours = [Tensor(w), Tensor(b)]
    theirs = [torch.tensor(w, requires_grad=True), torch.tensor(b, requires_grad=True)]
    opt = getattr(optim, name)(ours, **same, **other)
    opt_torch = getattr(torch.optim, name)(theirs, **same, **to_torch(other))
    for _ in range(20):
        with Tensor.train():
            opt.zero_grad()
            (Tensor(x) @ ours[0] + ours[1]).cross_entropy(Tensor(y)).backward()
            opt.step()
        opt_torch.zero_grad()
        logits = torch.tensor(x) @ theirs[0] + theirs[1]
        torch.nn.functional.cross_entropy(logits, torch.tensor(y).long()).backward()
        opt_torch.step()
    for i, (a, t) in enumerate(zip(ours, theirs, strict=True)):
        np.testing.assert_allclose(a.numpy(), t.detach().numpy(), rtol=2e-6, atol=2e-6)
        if name == "ASGD":
            np.testing.assert_allclose(opt.ax[i].numpy(), opt_torch.state[t]["ax"].numpy(), atol=2e-6)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9}), ("AdamW", {"lr": 0.1, "weight_decay": 0.01}),
        ("ASGD", {"lr": 0.1}), ("Adagrad", {"lr": 0.1}), ("Rprop", {"lr": 0.1}),
        ("RMSprop", {"lr": 0.1, "momentum": 0.9}), ("NAdam", {"lr": 0.1}),
    ],
)  # fmt: skip
def test_scalars_are_trained_as_torchs_within_5e_6(name, options):
    ours, theirs = Tensor(2.0), torch.tensor(2.0, requires_grad=True)
    opt, opt_torch = getattr(optim, name)([ours], **options), getattr(torch.optim, name)([theirs], **options)
    for _ in range(4):
        with Tensor.train():
            opt.zero_grad()
            ((ours * Tensor([1.0, 3.0]) - 1) ** 2).sum().backward()
            opt.step()
        opt_torch.zero_grad()
        ((theirs * torch.tensor([1.0, 3.0]) - 1) ** 2).sum().backward()
        opt_torch.step()
    assert ours.shape == ()
    assert ours.item() == pytest.approx(theirs.item(), rel=5e-6)


@pytest.mark.parametrize(
    ("classic", "name"), [(True, "SGD"), (False, "SGD"), (True, "LARS"), (False, "LARS")]
)
def test_scalars_are_trained_with_momentum(name, classic):
    w = Tensor(2.0)
    opt = getattr(optim, name)([w], lr=0.01, momentum=0.5, classic=classic)
    with Tensor.train():
        for _ in range(3):
            opt.zero_grad()
            (w * w).backward()
            opt.step()
    assert w.shape == () and w.item() < 2


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Adagrad", {"lr_decay": -1}), ("Adadelta", {"rho": 1.5}), ("Adamax", {"b1": 1.0}),
        ("NAdam", {"b2": -0.1}),
        ("RAdam", {"eps": -1e-8}), ("Rprop", {"etas": (1.5, 0.5)}), ("Rprop", {"step_sizes": (1.0, 0.1)}),
        ("ASGD", {"weight_decay": -1.0}), ("NAdam", {"lr": -0.1}), ("RAdam", {"b2": 0.0}),
    ],
)  # fmt: skip
def test_arguments_that_make_no_sense_are_refused(name, arguments):
    with pytest.raises(ArgumentError, match=next(iter(arguments))):
        getattr(optim, name)([Tensor([1.0])], **arguments)


TINYGRAD = {
    "lars": ("LARS", {"lr": 0.1}),
    "lars_popular": ("LARS", {"lr": 0.1, "classic": False, "nesterov": True, "tcoef": 0.01}),
    "lars_decoupled": ("LARS", {"lr": 0.1, "pre_wd": False, "weight_decay": 0.1}),
    "lars_no_momentum": ("LARS", {"lr": 0.1, "momentum": 0.0}),
    "lamb": ("LAMB", {"lr": 0.01}),
    "lamb_decay": ("LAMB", {"lr": 0.01, "weight_decay": 0.1, "b1": 0.8}),
    "muon": ("Muon", {"lr": 0.05}),
    "muon_plain": ("Muon", {"lr": 0.05, "nesterov": False, "weight_decay": 0.0}),
    "muon_cubic": ("Muon", {"lr": 0.05, "ns_steps": 8, "ns_coefficients": (1.5, -0.5)}),
}


@pytest.fixture(scope="module")
def by_tinygrad():
    """What tinygrad makes of the parameters, by case; its Python backend needs no compiler."""
    x, y, w, b = (a.tolist() for a in data())
    cases = {
        name: [kind, kwargs, x, y, [w] if kind == "Muon" else [w, b]]
        for name, (kind, kwargs) in TINYGRAD.items()
    }
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "tinygrad_steps.py")],
        input=json.dumps(cases),
        env={**os.environ, "TRAINING": "1", "DEV": "PYTHON"},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", TINYGRAD)
def test_two_steps_agree_with_tinygrad_within_1e_4(by_tinygrad, name):
    kind, kwargs = TINYGRAD[name]
    x, y, w, b = data()
    params = [Tensor(w)] if kind == "Muon" else [Tensor(w), Tensor(b)]
    opt = getattr(optim, kind)(params, **kwargs)
    with Tensor.train():
        for _ in range(2):
            opt.zero_grad()
            logits = Tensor(x) @ params[0]
            logits = logits + params[1] if len(params) > 1 else logits
            logits.sparse_categorical_crossentropy(Tensor(y)).backward()
            opt.step()
    for ours, theirs in zip(params, by_tinygrad[name], strict=True):
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("adjust", ["original", "match_rms_adamw"])
def test_muon_steps_as_torchs_within_its_bfloat16(shape, adjust):
    rng = np.random.default_rng(1)
    w, g = (rng.normal(size=shape).astype(np.float32) for _ in range(2))
    ours, theirs = Tensor(w), torch.tensor(w, requires_grad=True)
    opt = optim.Muon([ours], 0.1, adjust_lr_fn=adjust)
    opt_torch = torch.optim.Muon([theirs], 0.1, adjust_lr_fn=adjust)
    for i in range(3):
        ours.grad, theirs.grad = Tensor(g * (i + 1)), torch.tensor(g * (i + 1))
        with Tensor.train():
            opt.step()
        opt_torch.step()
    np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), atol=0.02)


def test_muon_makes_the_step_orthogonal_within_a_quarter():
    p = Tensor.zeros(4, 6).contiguous()
    opt = optim.Muon([p], 1.0, momentum=0.0, nesterov=False, weight_decay=0.0)
    p.grad = Tensor(np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32))
    with Tensor.train():
        opt.step()
    singular = np.linalg.svd(p.numpy(), compute_uv=False)
    assert (abs(singular - 1) < 0.35).all(), singular


def test_muon_flattens_the_kernels_of_convolutions():
    conv = nn.Conv2d(2, 3, 2, bias=False)
    before = conv.weight.numpy()
    opt = optim.Muon([conv.weight], 0.1)
    with Tensor.train():
        conv(Tensor.randn(1, 2, 4, 4)).square().sum().backward()
        opt.step()
    assert conv.weight.shape == (3, 2, 2, 2) and (conv.weight.numpy() != before).any()


# --- clipping

GRADIENTS = [np.array([[3.0, -4.0], [0.0, 12.0]], np.float32), np.array([1.0, -2.0, 2.0], np.float32)]


@pytest.mark.parametrize("norm_type", [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("max_norm", [0.0, 1.0, 5.0, 100.0])
def test_clipping_to_a_norm_is_torchs_within_1e_5(norm_type, max_norm):
    ours, theirs = [], []
    for g in GRADIENTS:
        ours.append(Tensor.zeros(g.shape))
        theirs.append(torch.zeros(g.shape, requires_grad=True))
        ours[-1].grad, theirs[-1].grad = Tensor(g), torch.tensor(g)
    bare = Tensor([1.0])
    norm = optim.clip_grad_norm_([*ours, bare], max_norm, norm_type)
    want = torch.nn.utils.clip_grad_norm_(theirs, max_norm, norm_type)
    assert norm.item() == pytest.approx(want.item(), rel=1e-5) and bare.grad is None
    for a, t in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(a.grad.numpy(), t.grad.numpy(), rtol=1e-5, atol=1e-7)


def test_clipping_to_a_value_is_torchs():
    p, t = Tensor.zeros(2, 2), torch.zeros(2, 2, requires_grad=True)
    p.grad, t.grad = Tensor(GRADIENTS[0]), torch.tensor(GRADIENTS[0])
    optim.clip_grad_value_(p, 3.5)
    torch.nn.utils.clip_grad_value_(t, 3.5)
    np.testing.assert_array_equal(p.grad.numpy(), t.grad.numpy())


def test_clipping_without_gradients_is_nothing():
    assert optim.clip_grad_norm_([Tensor([1.0])], 1.0).item() == 0
    optim.clip_grad_value_([Tensor([1.0])], 1.0)


def test_clipping_says_when_the_norm_is_not_finite():
    p = Tensor([1.0, 2.0])
    p.grad = Tensor([1.0, math.inf])
    with pytest.raises(GradientError, match="finite"):
        optim.clip_grad_norm_(p, 1.0, error_if_nonfinite=True)
    half = Tensor([1.0, 1.0], dtype="float16")
    half.grad = Tensor([300.0, 400.0], dtype="float16")  # their squares are beyond float16
    assert optim.clip_grad_norm_(half, 1.0).item() == pytest.approx(500)
    assert half.grad.dtype == "float16"
    np.testing.assert_allclose(half.grad.numpy(), [0.6, 0.8], rtol=1e-3)


def test_a_group_clips_the_norm_of_all_its_parameters():
    a, b = Tensor([0.0]), Tensor([0.0])
    group = optim.OptimizerGroup(optim.SGD([a], 1.0), optim.SGD([b], 1.0))
    group.clip_gradients(max_norm=1.0, max_value=4.0)
    a.grad, b.grad = Tensor([3.0]), Tensor([9.0])
    with Tensor.train():
        group.step()
    assert (a.item(), b.item()) == pytest.approx((-0.6, -0.8), rel=1e-5)


# --- schedules

SCHEDULES = {
    "step": ("StepLR", (3, 0.5)),
    "step_zero": ("StepLR", (3, 0.0)),
    "milestones": ("MultiStepLR", ([2, 5, 9], 0.3)),
    "exponential": ("ExponentialLR", (0.9,)),
    "warm_up": ("LinearLR", (0.1, 1.0, 6)),
    "decay": ("LinearLR", (1.0, 0.0, 8)),
    "cosine": ("CosineAnnealingLR", (12, 0.01)),
    "one_cycle": ("OneCycleLR", (0.5, 14)),
    "one_cycle_linear": ("OneCycleLR", (0.5, 14, 0.4, "linear", 10.0, 100.0)),
    "one_cycle_three_phases": ("OneCycleLR", (0.5, 14, 0.4, "cos", 10.0, 100.0, True)),
    "constant": ("ConstantLR", (0.25, 4)),
    "polynomial": ("PolynomialLR", (9, 2.0)),
    "restarts": ("CosineAnnealingWarmRestarts", (4, 1, 0.01)),
    "longer_restarts": ("CosineAnnealingWarmRestarts", (2, 2)),
    "cyclic": ("CyclicLR", (0.1, 0.5, 3, 2)),
    "cyclic_halved": ("CyclicLR", (0.1, 0.5, 2, None, "triangular2")),
    "cyclic_exponential": ("CyclicLR", (0.1, 0.5, 3, None, "exp_range", 0.8)),
    "lambda": ("LambdaLR", (lambda i: 1 / (i + 1),)),
    "multiplicative": ("MultiplicativeLR", (lambda i: 0.9 if i % 3 else 1.5,)),
}


def torch_schedule(opt, kind, args):
    if kind == "CyclicLR":
        return torch.optim.lr_scheduler.CyclicLR(opt, *args, cycle_momentum=False)
    if kind != "OneCycleLR":
        return getattr(torch.optim.lr_scheduler, kind)(opt, *args)
    names = ("max_lr", "total_steps", "pct_start", "anneal_strategy", "div_factor", "final_div_factor")
    kwargs = dict(zip((*names, "three_phase"), args, strict=False))
    if "anneal_strategy" in kwargs:
        kwargs["anneal_strategy"] = {"cos": "cos", "linear": "linear"}[kwargs["anneal_strategy"]]
    return torch.optim.lr_scheduler.OneCycleLR(opt, cycle_momentum=False, **kwargs)


def torch_rates(make, steps=13):
    opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.2)
    scheduler, rates = make(opt), []
    for _ in range(steps):
        rates.append(opt.param_groups[0]["lr"])
        opt.step()
        scheduler.step()
    return [*rates, opt.param_groups[0]["lr"]]


def own_rates(make, steps=13):
    opt = optim.SGD([Tensor([0.0])], 0.2)
    scheduler, rates = make(opt), []
    for _ in range(steps):
        rates.append(opt.lr.item())
        scheduler.step()
    return [*rates, opt.lr.item()]


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates_are_torchs_within_1e_5(device, name):
    kind, args = SCHEDULES[name]
    got = own_rates(lambda o: getattr(optim, kind)(o, *args))
    want = torch_rates(lambda o: torch_schedule(o, kind, args))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


def test_a_warm_up_before_a_cosine_is_torchs_within_1e_5():
    def make(lib):
        return lambda o: lib.SequentialLR(
            o, [lib.LinearLR(o, 0.1, total_iters=4), lib.CosineAnnealingLR(o, 8)], [4]
        )

    np.testing.assert_allclose(
        own_rates(make(optim), 11), torch_rates(make(torch.optim.lr_scheduler), 11), rtol=1e-5, atol=1e-7
    )


def test_schedules_at_the_same_time_are_torchs_within_1e_5():
    def make(lib):
        return lambda o: lib.ChainedScheduler(
            [
                lib.ConstantLR(o, 0.1, 3),
                lib.ExponentialLR(o, 0.9),
                lib.MultiplicativeLR(o, lambda i: 1 + i / 10),
            ]
        )

    np.testing.assert_allclose(
        own_rates(make(optim), 11), torch_rates(make(torch.optim.lr_scheduler), 11), rtol=1e-5, atol=1e-7
    )
    with pytest.raises(ArgumentError, match="scale"):
        opt = optim.SGD([Tensor([1.0])], 0.1)
        optim.ChainedScheduler([optim.CosineAnnealingLR(opt, 5, 0.01)])
    with pytest.raises(ArgumentError, match="LambdaLR"):
        optim.ChainedScheduler([optim.StepLR(opt, 5), optim.LambdaLR(opt, float)])


def test_one_cycle_takes_epochs_and_needs_a_length():
    opt = optim.SGD([Tensor([1.0])], 0.1)
    assert optim.OneCycleLR(opt, 0.5, epochs=3, steps_per_epoch=4).total_steps == 12
    with pytest.raises(ArgumentError, match="steps_per_epoch"):
        optim.OneCycleLR(opt, 0.5)


PLATEAUS = {
    "default": {"patience": 1},
    "max": {"mode": "max", "factor": 0.5, "patience": 0},
    "abs": {"threshold": 0.3, "threshold_mode": "abs", "patience": 0, "min_lr": [0.01, 0.02]},
    "cooldown": {"cooldown": 2, "patience": 0, "factor": 0.5},
    "eps": {"eps": 0.04, "patience": 0, "factor": 0.5},
}


@pytest.mark.parametrize("name", PLATEAUS)
def test_plateaus_reduce_the_rates_of_groups_as_torchs(name):
    numbers = [3.0, 2.0, 2.1, 2.0, 1.99, 1.5, 1.5, 1.5, 1.5, 1.2, 1.6, 1.7, 1.8, 0.1, 4.0]
    p, t = [Tensor([1.0]), Tensor([1.0])], [torch.ones(1, requires_grad=True) for _ in range(2)]
    ours = optim.SGD([{"params": [p[0]]}, {"params": [p[1]], "lr": 0.5}], 0.2)
    theirs = torch.optim.SGD([{"params": [t[0]]}, {"params": [t[1]], "lr": 0.5}], 0.2)
    scheduler = optim.ReduceLROnPlateau(ours, **PLATEAUS[name])
    wanted = torch.optim.lr_scheduler.ReduceLROnPlateau(theirs, **PLATEAUS[name])
    for i, x in enumerate(numbers):
        if i == 7:  # another goes on where this one was
            state, scheduler = scheduler.state_dict(), optim.ReduceLROnPlateau(ours, **PLATEAUS[name])
            scheduler.load_state_dict(state)
        scheduler.step(Tensor(x) if i % 2 else x)
        wanted.step(x)
        assert scheduler.get_last_lr() == pytest.approx([g["lr"] for g in theirs.param_groups], rel=1e-6)
    assert scheduler.num_bad_epochs == wanted.num_bad_epochs
    assert scheduler.best == pytest.approx(wanted.best)
    with pytest.raises(ArgumentError, match="metric"):
        scheduler.step()


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("CosineAnnealingLR", (9, 0.01)),
        ("OneCycleLR", ([0.5, 0.9], 14)),
        ("LambdaLR", ([lambda i: 1 / (i + 1), lambda i: 0.9**i],)),
        ("CyclicLR", ([0.1, 0.2], [0.3, 0.9], 3)),
    ],
)
def test_each_group_has_a_schedule_of_its_own(kind, args):
    p, t = [Tensor([1.0]), Tensor([1.0])], [torch.ones(1, requires_grad=True) for _ in range(2)]
    ours = optim.SGD([{"params": [p[0]]}, {"params": [p[1]], "lr": 0.5}], 0.2)
    theirs = torch.optim.SGD([{"params": [t[0]]}, {"params": [t[1]], "lr": 0.5}], 0.2)
    scheduler, wanted = getattr(optim, kind)(ours, *args), torch_schedule(theirs, kind, args)
    for i in range(10):
        assert scheduler.get_last_lr() == pytest.approx([g["lr"] for g in theirs.param_groups], rel=1e-5)
        theirs.step()
        scheduler.step()
        wanted.step()
        if i == 5:
            state = {k: Tensor(x.numpy()) for k, x in scheduler.state_dict().items()}
            scheduler = getattr(optim, kind)(ours, *args)
            scheduler.load_state_dict(state)


def test_functions_of_the_host_follow_captured_steps_and_are_refused_inside():
    p = Tensor([1.0, 2.0])
    opt = optim.SGD([p], 0.1)
    scheduler = optim.LambdaLR(opt, lambda i: 0.5**i)
    step = compile_step(lambda p, x: (p * x).square().sum(), p, opt, Tensor([1.0]))
    found = []
    for _ in range(3):
        step.run()
        scheduler.step()
        found.append(p.tolist()[0])
    want = np.cumprod([1 - 0.2, 1 - 0.1, 1 - 0.05])
    np.testing.assert_allclose(found, want, rtol=1e-6)
    jit = TinyJit(lambda x: scheduler.step() or x + 1)
    with pytest.raises(CaptureError, match="LambdaLR"):
        for _ in range(2):
            jit(Tensor([1.0]))
    plateau = optim.ReduceLROnPlateau(opt)
    jit = TinyJit(lambda x: plateau.step(x.sum()) or x + 1)
    with pytest.raises(CaptureError):
        for _ in range(2):
            jit(Tensor([1.0]))


def test_a_group_has_the_rates_of_each_optimizer():
    group = optim.OptimizerGroup(optim.SGD([Tensor([1.0])], 0.5), optim.SGD([Tensor([1.0])], 0.25))
    scheduler = optim.StepLR(group, 1, 0.5)
    scheduler.step()
    assert [o.lr.item() for o in group.optimizers] == [0.25, 0.125]


def test_a_schedule_inside_a_captured_function_goes_on_counting(device):
    rates = []
    for wrap in (lambda f: f, TinyJit):
        p = Tensor([1.0, 2.0]).realize()
        opt = optim.SGD([p], 0.1)
        scheduler = optim.CosineAnnealingLR(opt, 10)

        @wrap
        def step(p=p, opt=opt, scheduler=scheduler):
            with Tensor.train():
                opt.zero_grad()
                p.square().sum().backward()
                opt.step()
                scheduler.step()
            return opt.lr

        rates.append([(step().item(), p.tolist()) for _ in range(6)])
    assert rates[0] == rates[1] and rates[0][5][0] < rates[0][0][0]


@pytest.mark.parametrize("name", ["RMSprop", "LARS", "LAMB", "Muon"])
def test_compiled_steps_are_bit_identical_to_the_eager_loop(device, name):
    x, y, w, _ = data()
    results = []
    for compiled in (False, True):
        model = nn.Linear(4, 3, bias=False)
        model.weight.assign(Tensor(w.T)).realize()
        opt = getattr(optim, name)([model.weight], 0.05)
        opt.clip_gradients(max_norm=0.1)
        scheduler = optim.LinearLR(opt, 0.1, total_iters=3)
        losses = []

        def loss_of(m, x, y):
            return m(x).cross_entropy(y)

        step = compile_step(loss_of, model, opt, x, y) if compiled else None
        for _ in range(4):
            if step is not None:
                step.run()
                losses.append(step.loss_value())
            else:
                with Tensor.train():
                    opt.zero_grad()
                    loss = loss_of(model, Tensor(x), Tensor(y))
                    loss.backward()
                    opt.step()
                losses.append(loss.item())
            scheduler.step()
        results.append((losses, model.weight.tolist()))
    assert results[0] == results[1]


# --- what is refused, by torch too

P, T = [Tensor([[1.0]])], [torch.ones(1, 1, requires_grad=True)]
O, TO = (lambda: optim.SGD(P, 0.1)), (lambda: torch.optim.SGD(T, 0.1))
S = torch.optim.lr_scheduler
REFUSED = {
    "lr": (lambda: optim.SGD(P, -0.1), lambda: torch.optim.SGD(T, -0.1)),
    "lr_nan": (lambda: optim.Adam(P, math.nan), lambda: torch.optim.Adam(T, math.nan)),
    "sgd_momentum": (lambda: optim.SGD(P, momentum=-1), lambda: torch.optim.SGD(T, momentum=-1)),
    "sgd_decay": (lambda: optim.SGD(P, weight_decay=-1), lambda: torch.optim.SGD(T, weight_decay=-1)),
    "sgd_nesterov": (lambda: optim.SGD(P, nesterov=True), lambda: torch.optim.SGD(T, nesterov=True)),
    "adam_b1": (lambda: optim.Adam(P, b1=1.0), lambda: torch.optim.Adam(T, betas=(1.0, 0.9))),
    "adam_b1_negative": (lambda: optim.Adam(P, b1=-0.1), lambda: torch.optim.Adam(T, betas=(-0.1, 0.9))),
    "adam_b2": (lambda: optim.AdamW(P, b2=1.5), lambda: torch.optim.AdamW(T, betas=(0.9, 1.5))),
    "adam_eps": (lambda: optim.Adam(P, eps=-1e-8), lambda: torch.optim.Adam(T, eps=-1e-8)),
    "adamw_decay": (
        lambda: optim.AdamW(P, weight_decay=-1e-8),
        lambda: torch.optim.AdamW(T, weight_decay=-1e-8),
    ),
    "rmsprop_alpha": (lambda: optim.RMSprop(P, alpha=-1), lambda: torch.optim.RMSprop(T, alpha=-1)),
    "rmsprop_momentum": (lambda: optim.RMSprop(P, momentum=-1), lambda: torch.optim.RMSprop(T, momentum=-1)),
    "rmsprop_lr": (lambda: optim.RMSprop(P, -1), lambda: torch.optim.RMSprop(T, -1)),
    "muon_momentum": (lambda: optim.Muon(P, momentum=-1), lambda: torch.optim.Muon(T, momentum=-1)),
    "muon_decay": (lambda: optim.Muon(P, weight_decay=-1), lambda: torch.optim.Muon(T, weight_decay=-1)),
    "muon_word": (lambda: optim.Muon(P, adjust_lr_fn="x"), lambda: torch.optim.Muon(T, adjust_lr_fn="x")),
    "muon_vector": (
        lambda: optim.Muon([Tensor([1.0])]),
        lambda: torch.optim.Muon([torch.ones(1, requires_grad=True)]),
    ),
    "one_cycle_steps": (lambda: optim.OneCycleLR(O(), 1.0, 0), lambda: S.OneCycleLR(TO(), 1.0, 0)),
    "one_cycle_start": (
        lambda: optim.OneCycleLR(O(), 1.0, 9, pct_start=2),
        lambda: S.OneCycleLR(TO(), 1.0, 9, pct_start=2),
    ),
    "one_cycle_word": (
        lambda: optim.OneCycleLR(O(), 1.0, 9, anneal_strategy="x"),
        lambda: S.OneCycleLR(TO(), 1.0, 9, anneal_strategy="x"),
    ),
    "linear_start": (lambda: optim.LinearLR(O(), 0.0), lambda: S.LinearLR(TO(), 0.0)),
    "linear_end": (lambda: optim.LinearLR(O(), 0.5, 2.0), lambda: S.LinearLR(TO(), 0.5, 2.0)),
    "sequence": (
        lambda: optim.SequentialLR(O(), [optim.ExponentialLR(O(), 0.9)], [3]),
        lambda: S.SequentialLR(TO(), [S.ExponentialLR(TO(), 0.9)], [3]),
    ),
}
# torch takes these.
OURS_ALONE = {
    "lars_tcoef": lambda: optim.LARS(P, tcoef=-1),
    "lamb_b2": lambda: optim.LAMB(P, b2=-0.5),
    "step_size": lambda: optim.StepLR(O(), 0),
    "cosine": lambda: optim.CosineAnnealingLR(O(), 0),
    "clip_norm": lambda: optim.clip_grad_norm_(P, -1.0),
    "clip_type": lambda: optim.clip_grad_norm_(P, 1.0, 0.0),
    "clip_value": lambda: optim.clip_grad_value_(P, -1.0),
    "clip_of_an_optimizer": lambda: O().clip_gradients(max_norm=-1.0),
    "muon_steps": lambda: optim.Muon(P, ns_steps=100),
    "rmsprop_alpha_of_one": lambda: optim.RMSprop(P, alpha=1.0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_refused(name):
    with pytest.raises(Exception):  # noqa: B017  of many types
        REFUSED[name][1]()
    with pytest.raises(ArgumentError, match="expected"):
        REFUSED[name][0]()


@pytest.mark.parametrize("name", OURS_ALONE)
def test_other_senseless_numbers_are_refused_too(name):
    with pytest.raises(ArgumentError, match="expected"):
        OURS_ALONE[name]()
