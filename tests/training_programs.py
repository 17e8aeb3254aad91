"""Random training programs, on polygrad and on torch at once, and what each parameter must be after them.

A program is a list of statements over parameters, buffers, values and losses: operations, some of them under
`no_grad`, several losses, optimizer steps between them, writes in place, freezing, double backward,
checkpoints, captures, copies, reads. torch is the model. It cannot differentiate through memory that was
written since, and we can: so in the model a parameter is a list of versions, each a leaf of its own, and a
write makes another. A parameter's gradient is the sum of its versions'.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np
import torch

from polygrad import Tensor, TinyJit, checkpoint
from polygrad.errors import GradientError
from polygrad.nn.optim import SGD, Adam

TOLERANCE = 2e-3
SHAPE = (2, 3)

# What a value is computed by: of ours and torch's at once.
UNARY: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("x * 0.5 + 1", lambda x: x * 0.5 + 1),
    ("x.sigmoid()", lambda x: x.sigmoid()),
    ("x.tanh()", lambda x: x.tanh()),
    ("x.relu()", lambda x: x.relu()),
    ("(x * 0.3).exp()", lambda x: (x * 0.3).exp()),
    ("x.softmax(1)", lambda x: x.softmax(1)),
    ("x - x.mean()", lambda x: x - x.mean()),
    ("x.amax(1, keepdim=True) * x", lambda x: x.amax(1, keepdim=True) * x),
    ("x * x.sum(0, keepdim=True)", lambda x: x * x.sum(0, keepdim=True)),
    ("x.flip(1) * 2", lambda x: x.flip((1,)) * 2),
    ("x.clamp(-1, 1)", lambda x: x.clamp(-1, 1)),
    ("x.abs()", lambda x: x.abs()),
    ("x[[1, 0]]", lambda x: x[[1, 0]]),
    ("x[:, 1:2] * x", lambda x: x[:, 1:2] * x),
    ("x.logsumexp(0) + x", lambda x: x.logsumexp(0) + x),
    ("x.reshape(3, 2).T", lambda x: x.reshape(3, 2).T * 1),
    ("x[x > 0].sum() + x", lambda x: x[x > 0].sum() + x),
)  # fmt: skip
BINARY: tuple[tuple[str, Callable[[Any, Any], Any]], ...] = (
    ("x + y", lambda x, y: x + y),
    ("x - y", lambda x, y: x - y),
    ("x * y", lambda x, y: x * y),
    ("x / (y * y + 1)", lambda x, y: x / (y * y + 1)),
    ("x @ y.T @ y", lambda x, y: x @ y.T @ y * 0.2),
    ("where(x > 0, x, y)", lambda x, y: (Tensor if isinstance(x, Tensor) else torch).where(x > 0, x, y)),
    ("maximum(x, y)", lambda x, y: x.maximum(y)),
    ("cat", lambda x, y: (x.cat(y) if isinstance(x, Tensor) else torch.cat([x, y]))[1:3]),
)  # fmt: skip
LOSSES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("x.sum()", lambda x: x.sum()),
    ("x.square().mean()", lambda x: x.square().mean()),
    ("x.mean() * x[0, 0]", lambda x: x.mean() * x[0, 0]),
    ("x.sigmoid().log().sum()", lambda x: x.sigmoid().log().sum()),
)


@dataclass(eq=False)
class Parameter:
    """`ours`, and its model: `versions`, the newest last, of which `main` is what torch's optimizer steps."""

    ours: Tensor
    main: torch.nn.Parameter
    versions: list[Any] = field(default_factory=list)
    grad: Any = None
    frozen: bool = False

    @property
    def value(self) -> Any:
        """What an operation reads now."""
        return self.versions[-1].detach() if self.frozen else self.versions[-1]

    def written(self) -> None:
        """`main` has changed."""
        self.versions.append(self.main.detach().clone().requires_grad_())

    def add(self, grads: list[Any]) -> None:
        """Gradients of all versions, or None, of a backward."""
        present = [g for g in grads if g is not None]
        if present and not self.frozen:
            total = sum(present[1:], present[0]).detach()
            self.grad = total if self.grad is None else self.grad + total


@dataclass(eq=False)
class Value:
    """A value, ours and torch's."""

    ours: Tensor
    theirs: Any


class TrainingProgram:
    """One random program of `length` statements on a device. `log` has them as text."""

    def __init__(self, seed: int, device: str, length: int = 12) -> None:
        self.random, self.device, self.length = Random(seed), device, length
        self.numbers = np.random.default_rng(seed)
        self.log: list[str] = []
        self.writes = 0
        self.spent_at = 1 << 30  # how many writes there were at the first backward that keeps no graph
        self.checks = self.random.choice((0.0, 0.3, 1.0))  # how likely everything is read after a statement
        self.parameters = [self._parameter() for _ in range(2)]
        self.values = [self._value(), self._value()]
        self.buffer = self._value()
        self.losses: list[Value] = []
        make = self.random.choice((self._sgd, self._adam))
        self.optimizer, self.model_optimizer = make(self.parameters)

    # --- making things

    def _array(self) -> Any:
        return self.numbers.uniform(-1.5, 1.5, SHAPE).astype(np.float32)

    def _parameter(self) -> Parameter:
        array = self._array()
        lazy = self.random.random() < 0.3
        ours = Tensor(array, device=self.device)
        if lazy:  # a value that is not computed yet
            ours = Tensor((ours * 2 - ours).uop, requires_grad=True)
        else:
            ours.requires_grad_()
        main = torch.nn.Parameter(torch.tensor(array))
        return Parameter(ours, main, [torch.tensor(array, requires_grad=True)])

    def _value(self) -> Value:
        array = self._array()
        return Value(Tensor(array, device=self.device, requires_grad=False), torch.tensor(array))

    def _sgd(self, parameters: list[Parameter]) -> tuple[Any, Any]:
        momentum = self.random.choice((0.0, 0.9))
        return (
            SGD([p.ours for p in parameters], lr=0.1, momentum=momentum),
            torch.optim.SGD([p.main for p in parameters], lr=0.1, momentum=momentum),
        )

    def _adam(self, parameters: list[Parameter]) -> tuple[Any, Any]:
        return (
            Adam([p.ours for p in parameters], lr=0.05),
            torch.optim.Adam([p.main for p in parameters], lr=0.05),
        )

    def _operand(self) -> tuple[str, Any, Any]:
        """A parameter, a buffer or a value: its name, ours and torch's."""
        i = self.random.randrange(len(self.parameters) + len(self.values) + 1)
        if i < len(self.parameters):
            return f"p{i}", self.parameters[i].ours, self.parameters[i].value
        if i == len(self.parameters):
            return "buffer", self.buffer.ours, self.buffer.theirs
        v = self.values[i - len(self.parameters) - 1]
        return f"v{i - len(self.parameters) - 1}", v.ours, v.theirs

    def _computed(self) -> tuple[str, Any, Any]:
        if self.random.random() < 0.5:
            text, op = self.random.choice(UNARY)
            name, ours, theirs = self._operand()
            return f"{text}, x = {name}", op(ours), op(theirs)
        text, op2 = self.random.choice(BINARY)
        (a, x, tx), (b, y, ty) = self._operand(), self._operand()
        return f"{text}, x = {a}, y = {b}", op2(x, y), op2(tx, ty)

    def _keep(self, ours: Tensor, theirs: Any) -> None:
        if len(self.values) < 6:
            self.values.append(Value(ours, theirs))
        else:
            self.values[self.random.randrange(6)] = Value(ours, theirs)

    # --- statements

    def run(self) -> None:
        statements = (
            *(self.compute,) * 6, *(self.loss,) * 4, *(self.backward,) * 5, *(self.step,) * 3, self.no_grad,
            self.detach, self.read, self.zero_grad, self.write, self.freeze, self.update_buffer,
            self.accumulate, self.write_value, self.gradient, self.penalty, self.checkpoint, self.copy,
            self.capture, self.explicit_gradient,
        )  # fmt: skip
        with Tensor.train():
            for _ in range(self.length):
                self.random.choice(statements)()
                if self.random.random() < self.checks:
                    self.check()
            self.check()

    def compute(self) -> None:
        text, ours, theirs = self._computed()
        self.log.append(f"v = {text}")
        self._keep(ours, theirs)

    def no_grad(self) -> None:
        with Tensor.no_grad(), torch.no_grad():
            text, ours, theirs = self._computed()
        assert ours.requires_grad is False
        self.log.append(f"no_grad: v = {text}")
        self._keep(ours, theirs)

    def detach(self) -> None:
        v = self.random.choice(self.values)
        self.log.append("v = v.detach() * 2")
        self._keep(v.ours.detach() * 2, v.theirs.detach() * 2)

    def checkpoint(self) -> None:
        text, op = self.random.choice(BINARY)
        (a, x, tx), (b, y, ty) = self._operand(), self._operand()
        self.log.append(f"v = checkpoint({text}, x = {a}, y = {b})")
        self._keep(checkpoint(lambda x: op(x, y).tanh(), x), op(tx, ty).tanh())

    def loss(self) -> None:
        text, op = self.random.choice(LOSSES)
        name, ours, theirs = self._operand()
        self.log.append(f"l{len(self.losses)} = {text}, x = {name}")
        self.losses.append(Value(op(ours), op(theirs)))

    def accumulate(self) -> None:
        if len(self.losses) > 1:
            a, b = self.random.sample(self.losses, 2)
            self.log.append(
                f"l{len(self.losses)} = sum of losses {self.losses.index(a)}, {self.losses.index(b)}"
            )
            self.losses.append(Value(a.ours + b.ours, a.theirs + b.theirs))

    def _differentiable(self) -> Value | None:
        losses = [x for x in self.losses if x.theirs.requires_grad]
        return self.random.choice(losses) if losses else None

    def backward(self) -> None:
        loss = self._differentiable()
        if loss is None:
            return
        retain = self.random.random() < 0.2
        self.log.append(f"l{self.losses.index(loss)}.backward({retain=})")
        versions = [v for p in self.parameters for v in p.versions]
        try:
            loss.ours.backward(retain_graph=retain)
        except GradientError as error:
            self.log.append(f"  refused: {error}")
            assert "writ" in str(error) and self._may_be_lost(), f"refused: {error}"
            return
        grads = torch.autograd.grad(loss.theirs, versions, retain_graph=True, allow_unused=True)
        for p in self.parameters:
            p.add(list(grads[: len(p.versions)]))
            grads = grads[len(p.versions) :]
        if not retain:
            self.spent_at = min(self.spent_at, self.writes)

    def _may_be_lost(self) -> bool:
        """Whether something was written, perhaps carried out after a backward that keeps no graph: another
        may be refused then."""
        return self.spent_at < 1 << 30 and self.writes > 0

    def gradient(self) -> None:
        """A gradient as a value, which is differentiated again."""
        loss = self._differentiable()
        p = self.random.choice(self.parameters)
        if loss is None or p.frozen or self._may_be_lost():
            return
        grads = torch.autograd.grad(loss.theirs, p.versions, create_graph=True, allow_unused=True)
        if all(w is None for w in grads):
            return
        self.log.append(f"v = l{self.losses.index(loss)}.gradient(p{self.parameters.index(p)})")
        (g,) = loss.ours.gradient(p.ours)
        self._keep(g, self._as_data(g, grads))

    def penalty(self) -> None:
        """The square of a gradient is a loss."""
        loss = self._differentiable()
        p = self.random.choice(self.parameters)
        if loss is None or p.frozen or self._may_be_lost():
            return
        grads = torch.autograd.grad(loss.theirs, p.versions, create_graph=True, allow_unused=True)
        if any(w is not None for w in grads):
            self.log.append(
                f"l = (l{self.losses.index(loss)}.gradient(p{self.parameters.index(p)}) ** 2).sum()"
            )
            (g,) = loss.ours.gradient(p.ours)
            self.losses.append(Value(g.square().sum(), self._as_data(g, grads).square().sum()))

    def _as_data(self, g: Tensor, grads: tuple[Any, ...]) -> Any:
        """The sum of torch's gradients: without a graph where ours, `g`, has none. torch's gradients of `abs`
        and `relu` require gradients, which are 0; ours are data, as torch's of `where` and `clamp`."""
        present = [w for w in grads if w is not None]
        total = sum(present[1:], present[0])
        if g.requires_grad or not total.requires_grad:
            return total
        versions = [v for p in self.parameters for v in p.versions]
        weights = torch.arange(1.0, total.numel() + 1).reshape(total.shape)
        further = torch.autograd.grad((total * weights).sum(), versions, retain_graph=True, allow_unused=True)
        assert all(f is None or not f.any() for f in further), "a gradient that is not constant has no graph"
        return total.detach()

    def explicit_gradient(self) -> None:
        """`gradient` with respect to a value that is no leaf."""
        v = self.random.choice(self.values)
        if not v.theirs.requires_grad or self._may_be_lost():
            return
        self.log.append(f"(v{self.values.index(v)} * 3).tanh().sum().gradient(v)")
        (g,) = (v.ours * 3).tanh().sum().gradient(v.ours)
        (want,) = torch.autograd.grad((v.theirs * 3).tanh().sum(), [v.theirs])
        self._same("gradient of a value", g, want)

    def step(self) -> None:
        if any(p.grad is None or p.frozen for p in self.parameters):
            return
        self.log.append("optimizer.step()")
        for p in self.parameters:
            p.main.grad = p.grad.clone()
        self.optimizer.step()
        self.model_optimizer.step()
        for p in self.parameters:
            p.written()
        self.writes += 1

    def zero_grad(self) -> None:
        self.log.append("zero_grad()")
        self.optimizer.zero_grad()
        for p in self.parameters:
            p.grad = None

    def read(self) -> None:
        x = self.random.choice([*self.values, *self.losses, self.buffer])
        how = self.random.choice(("realize", "numpy", "tolist"))
        self.log.append(f"{how}()")
        getattr(x.ours, how)()
        self._same("read", x.ours, x.theirs)

    def write(self) -> None:
        """A write to a parameter."""
        p = self.random.choice(self.parameters)
        how = self.random.randrange(4)
        self.log.append(f"write {how} to p{self.parameters.index(p)}")
        with Tensor.no_grad(), torch.no_grad():
            if how == 0:
                p.ours.assign(p.ours * 0.5)
                p.main *= 0.5
            elif how == 1:
                p.ours[0] = 0.25
                p.main[0] = 0.25
            elif how == 2:
                p.ours -= 0.1
                p.main -= 0.1
            else:
                p.ours[p.ours > 0] *= 0.5
                p.main[p.main > 0] *= 0.5
        if self.random.random() < 0.5:
            p.ours.realize()
        p.written()
        self.writes += 1

    def freeze(self) -> None:
        p = self.random.choice(self.parameters)
        p.frozen = not p.frozen
        self.log.append(f"p{self.parameters.index(p)}.requires_grad_({not p.frozen})")
        p.ours.requires_grad_(not p.frozen)

    def update_buffer(self) -> None:
        _, ours, theirs = self._operand()
        self.log.append("no_grad: buffer.assign(buffer * 0.9 + x * 0.1)")
        with Tensor.no_grad(), torch.no_grad():
            self.buffer.ours.assign(self.buffer.ours * 0.9 + ours * 0.1)
            self.buffer.theirs = self.buffer.theirs * 0.9 + theirs * 0.1
        self.writes += 1

    def write_value(self) -> None:
        """A write to a value that was computed: gradients flow through what stays."""
        v = self.random.choice(self.values)
        how = self.random.randrange(3)
        self.log.append(f"write {how} to v{self.values.index(v)}")
        _, ours, theirs = self._operand()
        if how == 0:
            v.ours[1] = 0.5
            v.theirs = torch.cat([v.theirs[:1], torch.full((1, 3), 0.5)])
        elif how == 1:
            v.ours[:, 0] = ours[:, 1]
            v.theirs = torch.cat([theirs[:, 1:2], v.theirs[:, 1:]], 1)
        else:
            v.ours += ours
            v.theirs = v.theirs + theirs
        self.writes += 1

    def copy(self) -> None:
        """Copies and pickles of a parameter are leaves with its value and gradient."""
        p = self.random.choice(self.parameters)
        how = self.random.choice(("deepcopy", "pickle", "copy"))
        self.log.append(how)
        make = {
            "deepcopy": copy.deepcopy,
            "copy": copy.copy,
            "pickle": lambda t: pickle.loads(pickle.dumps(t)),
        }
        other = make[how](p.ours)
        assert other.requires_grad is (not p.frozen)
        self._same(how, other, p.versions[-1])
        if other.requires_grad:
            other.grad = None
            (other * other).sum().backward()
            self._same(f"gradient of a {how}", other.grad, 2 * p.versions[-1].detach())

    def capture(self) -> None:
        """A captured training step of a layer of its own, called six times; gradients are forgotten in it,
        before it, never, or before every other call, so that they add up."""
        text, op = self.random.choice(UNARY[:13])
        forgets = ("inside", "before", "never", "every other")[len(self.log) % 4]
        self.log.append(f"six captured steps of {text}, zero_grad {forgets}")
        array, xs = self._array(), [self._array() for _ in range(3)]
        w, model = (
            Tensor(array, device=self.device, requires_grad=True),
            torch.tensor(array, requires_grad=True),
        )
        optimizer, theirs = SGD([w], lr=0.1), torch.optim.SGD([model], lr=0.1)

        @TinyJit
        def step(x: Tensor) -> Tensor:
            if forgets == "inside":
                optimizer.zero_grad()
            loss = (op(w) * x).square().mean().backward()
            optimizer.step()
            return loss.realize()

        for i, x in enumerate([*xs, *xs]):
            if forgets == "before" or (forgets == "every other" and i % 2):
                optimizer.zero_grad()
            if forgets in ("inside", "before") or (forgets == "every other" and i % 2):
                theirs.zero_grad()
            got = step(Tensor(x, device=self.device).realize())
            want = (op(model) * torch.tensor(x)).square().mean()
            want.backward()
            theirs.step()
            self._same("loss of a captured step", got, want)
        self._same("parameter of a captured step", w, model)
        self._same("gradient of a captured step", w.grad, model.grad)

    # --- judging

    def _same(self, what: str, got: Tensor, want: Any) -> None:
        want = want.detach().numpy()
        got = got.numpy()
        size = max(1.0, float(np.abs(want).max(initial=0)))
        assert got.shape == want.shape, f"{what}: {got.shape}, torch has {want.shape}"
        assert np.allclose(got, want, rtol=TOLERANCE, atol=TOLERANCE * size, equal_nan=True), (
            f"{what}: {got}, torch has {want}"
        )

    def check(self) -> None:
        self.log.append("# check")
        for i, p in enumerate(self.parameters):
            self._same(f"p{i}", p.ours, p.versions[-1])
            assert (p.ours.grad is None) == (p.grad is None), f"p{i}.grad: {p.ours.grad}, torch has {p.grad}"
            if p.grad is not None:
                assert p.ours.grad is not None and not p.ours.grad.requires_grad
                self._same(f"p{i}.grad", p.ours.grad, p.grad)
            assert p.ours.requires_grad is (not p.frozen)
        self._same("buffer", self.buffer.ours, self.buffer.theirs)
        for i, v in enumerate(self.values):
            assert bool(v.ours.requires_grad) == v.theirs.requires_grad, (
                f"v{i}.requires_grad is {v.ours.requires_grad}"
            )
            self._same(f"v{i}", v.ours, v.theirs)
        for i, x in enumerate(self.losses):
            self._same(f"l{i}", x.ours, x.theirs)


def run(seed: int, device: str, length: int = 12) -> None:
    """Run one program. Raises AssertionError that shows it."""
    program = TrainingProgram(seed, device, length)
    try:
        program.run()
    except Exception as error:
        lines = "\n  ".join(program.log)
        raise AssertionError(
            f"program {seed} on {device}: {type(error).__name__}: {error}\n  {lines}"
        ) from error
