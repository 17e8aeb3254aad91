"""Parameter groups, parameters without gradients, states: against torch step by step, captured and not."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch

from polygrad import Tensor, TinyJit, compile_step, nn
from polygrad.errors import ArgumentError, CaptureError, GradientError
from polygrad.nn import optim
from polygrad.nn.state import get_state_dict, safe_load, safe_save

KINDS = {
    "SGD": {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
    "Adam": {"betas": (0.8, 0.95), "weight_decay": 0.1},
    "AdamW": {"betas": (0.8, 0.95), "weight_decay": 0.1},
    "RMSprop": {"momentum": 0.5, "centered": True, "eps": 1e-3},
    "Adagrad": {"lr_decay": 0.1, "initial_accumulator_value": 0.1},
    "Adadelta": {"rho": 0.8},
    "Adamax": {"betas": (0.8, 0.95)},
    "NAdam": {"betas": (0.8, 0.95), "momentum_decay": 0.01},
    "RAdam": {"betas": (0.8, 0.6)},
    "Rprop": {"etas": (0.4, 1.3)},
    "ASGD": {"t0": 2, "lambd": 0.01},
}
# What a second group has for itself.
OTHERS = {
    "SGD": {"momentum": 0.5, "nesterov": False},
    "Adam": {"betas": (0.5, 0.9), "eps": 1e-3},
    "AdamW": {"betas": (0.5, 0.9), "weight_decay": 0.0},
    "RMSprop": {"alpha": 0.9, "momentum": 0.0},
    "Adagrad": {"weight_decay": 0.1},
    "Adadelta": {"eps": 1e-3},
    "Adamax": {"eps": 1e-2},
    "NAdam": {"betas": (0.5, 0.9), "momentum_decay": 0.1},
    "RAdam": {"betas": (0.7, 0.99)},
    "Rprop": {"step_sizes": (1e-3, 0.1)},
    "ASGD": {"alpha": 0.5},
}
SHAPES = ((3, 2), (2,), (4,), (2, 2))
# Which parameters have a gradient in each step: torch skips the others, and counts no step for them.
PATTERN = ("1111", "0110", "1001", "1111", "0001", "1110", "1111")


def arrays(seed, shapes=SHAPES):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=s).astype(np.float32) for s in shapes]


def pair(kind):
    """The optimizer here and in torch, each with two groups and a third that comes later."""
    ours, theirs = [Tensor(a) for a in arrays(0)], [torch.tensor(a, requires_grad=True) for a in arrays(0)]
    made = []
    for lib, ps in ((optim, ours), (torch.optim, theirs)):
        groups = [{"params": ps[:2]}, {"params": ps[2], "lr": 0.02, **OTHERS[kind]}]
        opt = getattr(lib, kind)(groups, lr=0.05, **KINDS[kind])
        opt.add_param_group({"params": [ps[3]], "lr": 0.1})
        made.append(opt)
    return ours, theirs, *made


@pytest.mark.parametrize("kind", KINDS)
def test_groups_and_skipped_parameters_step_as_torchs_within_1e_5(kind):
    ours, theirs, opt, opt_torch = pair(kind)
    for i, pattern in enumerate(PATTERN):
        grads = arrays(i + 1)
        for p, t, g, has in zip(ours, theirs, grads, pattern, strict=True):
            p.grad, t.grad = (Tensor(g), torch.tensor(g)) if has == "1" else (None, None)
        if i == 3 and kind != "ASGD":  # torch's step has the rate that was computed after the step before it
            for o in (opt, opt_torch):
                o.param_groups[1]["lr"] = 0.5 * float(o.param_groups[1]["lr"])
        with Tensor.train():
            opt.step()
        opt_torch.step()
        for p, t in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(
                p.numpy(), t.detach().numpy(), rtol=1e-5, atol=2e-6, err_msg=f"{kind}, step {i}"
            )


@pytest.mark.parametrize("kind", ["SGD", "AdamW", "NAdam", "RMSprop"])
@pytest.mark.parametrize("how", ["save", "deepcopy", "pickle"])
def test_states_resume_bit_equal(kind, how, tmp_path):
    """Also a state whose parameters have taken different numbers of steps."""
    ours, _, opt, _ = pair(kind)

    def steps(ps, opt, numbers):
        for i in numbers:
            for p, g, has in zip(ps, arrays(i + 1), PATTERN[i], strict=True):
                p.grad = Tensor(g) if has == "1" else None
            with Tensor.train():
                opt.step()

    schedule = optim.ExponentialLR(opt, 0.9)
    steps(ours, opt, range(4))
    schedule.step()
    if how == "save":
        safe_save(opt.state_dict(), tmp_path / "o.safetensors")
        other_ps, _, other, _ = pair(kind)
        for p, q in zip(other_ps, ours, strict=True):
            p.assign(q.numpy())
        other_schedule = optim.ExponentialLR(other, 0.9)
        other.load_state_dict(safe_load(tmp_path / "o.safetensors"))
        other_schedule.load_state_dict(schedule.state_dict())
    else:
        both = (ours, opt, schedule)
        copied = copy.deepcopy(both) if how == "deepcopy" else pickle.loads(pickle.dumps(both))
        other_ps, other, other_schedule = copied
    for ps, o, s in ((ours, opt, schedule), (other_ps, other, other_schedule)):
        steps(ps, o, range(4, 7))
        s.step()
        steps(ps, o, range(4))
    assert [p.tolist() for p in ours] == [p.tolist() for p in other_ps]
    assert schedule.get_last_lr() == other_schedule.get_last_lr()


@pytest.mark.parametrize("kind", ["AdamW", "NAdam", "SGD"])
@pytest.mark.parametrize("how", ["compiled", "jit"])
@pytest.mark.parametrize("stepped", [0, 2])
def test_captured_steps_skip_as_eager_ones_do(kind, how, stepped):
    """A step with a gradient for every parameter, `stepped` times; a captured one that leaves some out; and
    one for all of them again."""
    x = Tensor(arrays(9, [(5, 3)])[0])
    results = []
    for captured in (False, True):
        a, b = (Tensor(w) for w in arrays(4, [(3, 2), (3, 2)]))
        opt = getattr(optim, kind)([{"params": a}, {"params": b, "lr": 0.01}], lr=0.1, **KINDS[kind])

        def loss_of(model, x, a=a, b=b):
            return ((x @ a) ** 2).mean() + 0 * b.detach().sum()

        def full(a=a, b=b, opt=opt):
            with Tensor.train():
                opt.zero_grad()
                ((x @ a + x @ b) ** 2).mean().backward()
                opt.step()

        def partial(x, a=a, b=b, opt=opt, loss_of=loss_of):
            with Tensor.train():
                opt.zero_grad()
                loss = loss_of([a, b], x)
                loss.backward()
                opt.step()
            return loss

        for _ in range(stepped):
            full()
        if captured and how == "compiled":
            step = compile_step(loss_of, [a, b], opt, x)
            losses = []
            for _ in range(3):
                step.run(x)
                losses.append(step.loss_value())
        else:
            step = TinyJit(partial) if captured else partial
            losses = [step(x).item() for _ in range(3)]
        full()
        results.append((losses, a.tolist(), b.tolist()))
    assert results[0] == results[1]


def test_one_group_clock_is_split_inside_a_capture():
    """Parameters of one group with different histories: the counters of those left out stay behind."""
    x = Tensor(arrays(9, [(5, 3)])[0])
    results = []
    for captured in (False, True):
        a, b = (Tensor(w) for w in arrays(4, [(3, 2), (3, 2)]))
        opt = optim.Adam([a, b], 0.1)

        def steps(fn, n, model=(a, b), opt=opt, captured=captured):
            step = compile_step(fn, model, opt, x) if captured else None
            for _ in range(n):
                if step is not None:
                    step.run()
                    continue
                with Tensor.train():
                    opt.zero_grad()
                    fn(model, x).backward()
                    opt.step()

        steps(lambda m, x: ((x @ m[0] + x @ m[1]) ** 2).mean(), 2)
        steps(lambda m, x: ((x @ m[0]) ** 2).mean(), 3)
        steps(lambda m, x: ((x @ m[0] + x @ m[1]) ** 2).mean(), 2)
        results.append((a.tolist(), b.tolist()))
    assert results[0] == results[1]
    theirs = [torch.tensor(w, requires_grad=True) for w in arrays(4, [(3, 2), (3, 2)])]
    opt, xt = torch.optim.Adam(theirs, 0.1), torch.tensor(x.numpy())
    for i in range(7):
        opt.zero_grad()
        y = xt @ theirs[0] if 2 <= i < 5 else xt @ theirs[0] + xt @ theirs[1]
        (y**2).mean().backward()
        opt.step()
    for got, want in zip(results[0], theirs, strict=True):
        np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_groups_say_their_numbers_and_take_others():
    a, b = Tensor([1.0]), Tensor([1.0])
    opt = optim.AdamW([{"params": [a]}, {"params": [b], "lr": 0.5, "betas": (0.1, 0.2)}], lr=0.1)
    first, second = opt.param_groups
    assert (first["betas"], second["betas"], second["weight_decay"]) == ((0.9, 0.999), (0.1, 0.2), 0.01)
    assert first["lr"] is opt.lr and second["lr"].item() == 0.5 and "lr" in second
    assert set(first) >= {"params", "lr", "b1", "b2", "eps", "weight_decay"} and first["params"] == [a]
    opt.weight_decay = 0.3  # the optimizer's number is that of all groups that say no other
    second["weight_decay"] = 0.2
    assert (first["weight_decay"], second["weight_decay"]) == (0.3, 0.2)
    second["lr"] *= 0.5
    assert opt.param_groups[1]["lr"].item() == 0.25 and "0.25" not in repr(first)
    with pytest.raises(ArgumentError, match="param group 1: b1"):
        second["betas"] = (1.5, 0.2)
    assert second["betas"] == (0.1, 0.2)
    with pytest.raises(KeyError):
        second["momentum"]
    with pytest.raises(ArgumentError, match="expected lr, b1"):
        opt.add_param_group({"params": [Tensor([1.0])], "momentum": 0.9})
    with pytest.raises(ArgumentError, match="no other group"):
        opt.add_param_group({"params": [a]})
    with pytest.raises(ArgumentError, match="'params'"):
        opt.add_param_group({"lr": 1.0})
    with pytest.raises(ArgumentError, match="alone"):
        optim.SGD(a)
    assert len(opt.param_groups) == 2 and len(opt.m) == 2


def test_names_of_an_optimizers_state_are_those_of_its_attributes():
    a, b = Tensor([1.0]), Tensor([2.0, 3.0])
    names = list(get_state_dict(optim.Adam([a, b])))
    assert names == ["params.0", "params.1", "lr", "b1_t", "b2_t", "m.0", "m.1", "v.0", "v.1"]
    two = optim.Adam([{"params": [a]}, {"params": [b]}])
    assert {"group_lr.1", "clocks.1.b1_t"} <= set(two.state_dict()) and "params.0" not in two.state_dict()
    scheduler = optim.StepLR(two, 3)
    assert list(get_state_dict(scheduler)) == list(scheduler.state_dict()) == ["count"]


def test_a_generator_of_parameters_and_integers_among_them():
    layer = nn.BatchNorm(2)
    opt = optim.SGD((p for p in (layer.weight, Tensor([1, 2]))), 0.1)
    assert opt.params == [layer.weight] and opt.buffers[0].requires_grad is None


def test_steps_without_gradients_are_refused():
    a, b = Tensor([1.0]), Tensor([1.0])
    group = optim.OptimizerGroup(optim.SGD([a], 0.5), optim.Adam([b], 0.5))
    with Tensor.train():
        for o in (group, *group.optimizers):
            with pytest.raises(GradientError, match=r"got none for any of 1 parameters"):
                o.step()
        a.grad = Tensor([1.0])
        group.step()
    assert (a.item(), b.item()) == (0.5, 1.0)
    with pytest.raises(GradientError, match=r"with Tensor\.train\(\)"):
        group.step()


def test_a_step_returns_what_its_closure_does():
    a, b = Tensor([1.0]), torch.ones(1, requires_grad=True)
    opt, opt_torch = optim.SGD([a], 0.1), torch.optim.SGD([b], 0.1)

    def closure():
        opt.zero_grad()
        return (a * a).sum().backward()

    def closure_torch():
        opt_torch.zero_grad()
        loss = (b * b).sum()
        loss.backward()
        return loss

    with Tensor.train():
        assert [opt.step(closure).item() for _ in range(3)] == pytest.approx(
            [opt_torch.step(closure_torch).item() for _ in range(3)]
        )
    assert a.item() == pytest.approx(b.item())


@pytest.mark.parametrize("set_to_none", [True, False])
def test_zeroed_gradients_still_move_by_momentum(set_to_none):
    a, b = Tensor([1.0]), torch.ones(1, requires_grad=True)
    ours, theirs = optim.SGD([a], 0.1, momentum=0.9), torch.optim.SGD([b], 0.1, momentum=0.9)
    for g in (1.0, None, None):
        ours.zero_grad(set_to_none=set_to_none)
        theirs.zero_grad(set_to_none=set_to_none)
        if g is not None:
            a.grad, b.grad = Tensor([g]), torch.tensor([g])
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            with Tensor.train():
                ours.step()
            theirs.step()
    assert a.item() == pytest.approx(b.item())


def test_clipping_counts_all_groups_and_skips_what_has_no_gradient():
    a, b, c = Tensor([0.0]), Tensor([0.0]), Tensor([0.0])
    opt = optim.SGD([{"params": [a, c]}, {"params": [b], "lr": 0.5}], 1.0)
    opt.clip_gradients(max_norm=1.0)
    a.grad, b.grad = Tensor([3.0]), Tensor([4.0])
    with Tensor.train():
        opt.step()
    assert (a.item(), b.item(), c.item()) == pytest.approx((-0.6, -0.4, 0.0), rel=1e-5)
    a.grad, b.grad = Tensor([3.0]), Tensor([4.0])
    assert optim.clip_grad_norm_(opt.params, 1.0).item() == 5.0


# --- LBFGS


def rosenbrock(x, y):
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


def lbfgs_runs(**kwargs):
    """Parameters after each of five steps, and how often the closure was called: ours and torch's."""
    out = []
    for lib, make in ((optim, Tensor), (torch.optim, torch.tensor)):
        ps = [make([-1.0, 0.5], requires_grad=True), make([[1.0], [2.0]], requires_grad=True)]
        opt, calls, trace = lib.LBFGS(ps, **kwargs), [0], []

        def closure(ps=ps, opt=opt, calls=calls):
            calls[0] += 1
            opt.zero_grad()
            loss = rosenbrock(ps[0], ps[1].reshape(2)).sum() / 10
            loss.backward()
            return loss

        with Tensor.train():
            for _ in range(5):
                loss = opt.step(closure)
                trace.append((loss.item(), *[p.detach().numpy().ravel().tolist() for p in ps], calls[0]))
        out.append(trace)
    return out


@pytest.mark.parametrize(
    "kwargs",
    [
        {"lr": 0.01, "max_iter": 4},
        {"lr": 0.02, "max_iter": 6, "history_size": 2},
        {"line_search_fn": "strong_wolfe", "max_iter": 3},
        {"line_search_fn": "strong_wolfe", "max_iter": 5, "history_size": 3, "lr": 0.5},
        {"line_search_fn": "strong_wolfe", "max_iter": 4, "max_eval": 5},
    ],
    ids=str,
)
def test_lbfgs_goes_where_torchs_goes_within_1e_3(kwargs):
    ours, theirs = lbfgs_runs(**kwargs)
    for a, b in zip(ours, theirs, strict=True):
        assert a[3] == b[3]
        np.testing.assert_allclose(a[0], b[0], rtol=1e-3, atol=1e-6)
        np.testing.assert_allclose(a[1] + a[2], b[1] + b[2], rtol=1e-3, atol=1e-4)


def test_lbfgs_finds_a_minimum_and_resumes_bit_equal():
    def run(p, opt, n):
        def closure():
            opt.zero_grad()
            return rosenbrock(p[:1], p[1:]).sum().backward()

        with Tensor.train():
            for _ in range(n):
                opt.step(closure)

    def make(values):
        p = Tensor(values, requires_grad=True)
        return p, optim.LBFGS([p], max_iter=4, line_search_fn="strong_wolfe")

    p, opt = make([-1.0, 2.0])
    run(p, opt, 3)
    q, other = make(p.tolist())
    other.load_state_dict(opt.state_dict())
    run(p, opt, 12)
    run(q, other, 12)
    assert p.tolist() == q.tolist() == pytest.approx([1.0, 1.0], abs=1e-3)


def test_lbfgs_is_refused_where_it_cannot_work():
    p = Tensor([1.0], requires_grad=True)
    opt = optim.LBFGS([p])
    with pytest.raises(GradientError, match="training mode"):
        opt.step(lambda: p.sum())
    with Tensor.train(), pytest.raises(ArgumentError, match="closure"):
        opt.step()
    with pytest.raises(ArgumentError, match="captured"):
        compile_step(lambda p, x: (p * x).sum(), p, opt, Tensor([1.0]))
    step = TinyJit(lambda x: opt.step(lambda: (p * x).square().sum().backward()))
    with Tensor.train(), pytest.raises(CaptureError, match="LBFGS"):
        for _ in range(2):
            step(Tensor([1.0]))
    with pytest.raises(ArgumentError, match="one parameter group"):
        opt.add_param_group({"params": [Tensor([1.0])]})
    with pytest.raises(ArgumentError, match="strong_wolfe"):
        optim.LBFGS([p], line_search_fn="armijo")
