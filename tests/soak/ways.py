"""The ways in which a program is run on Tensors. Each returns the outputs as arrays, and the gradients by
input, or None."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from polygrad import Tensor, TinyJit, export
from soak.judge import Truth, weights
from soak.program import NAMES, Program

Gradients = dict[int, np.ndarray]
Result = tuple[list[np.ndarray], Gradients | None]
Way = Callable[[Program, str, list[np.ndarray]], Result]
PLAIN_SLACK = 10.0  # without Opts, a sum is added up in one variable
OURS = {**NAMES, "Tensor": Tensor}


def _tensors(arrays: list[np.ndarray], device: str, grad: bool = False) -> list[Tensor]:
    return [Tensor(a, device=device, requires_grad=grad and a.dtype.kind == "f").realize() for a in arrays]


def _loss(outputs: list[Tensor]) -> Tensor:
    terms = [(o * Tensor(weights(o.shape, i), device=o.device)).sum() for i, o in enumerate(outputs)]
    return sum(terms[1:], terms[0])


def eager(p: Program, device: str, arrays: list[np.ndarray]) -> Result:
    outputs = p.evaluate(_tensors(arrays, device), OURS, ours=True)
    outputs[0].realize(*outputs[1:])
    return [o.numpy() for o in outputs], None


def in_parts(p: Program, device: str, arrays: list[np.ndarray]) -> Result:
    """Every step computed before the next begins."""
    outputs = p.evaluate(_tensors(arrays, device), OURS, ours=True, after=lambda t: t.realize())
    return [o.numpy() for o in outputs], None


def gradients(p: Program, device: str, arrays: list[np.ndarray]) -> Result:
    leaves = _tensors(arrays, device, grad=True)
    outputs = p.evaluate(leaves, OURS, ours=True)
    loss = _loss(outputs)
    if loss.requires_grad:
        loss.backward()
    found = {i: t.grad.numpy() for i, t in enumerate(leaves) if t.grad is not None}
    return [o.numpy() for o in outputs], found


def captured(p: Program, device: str, arrays: list[np.ndarray]) -> Result:
    """A captured step with gradients, run before on other numbers."""
    used = [i for i, a in enumerate(arrays) if a.dtype.kind == "f"]

    @TinyJit
    def step(*inputs: Tensor) -> list[Tensor]:
        leaves = [t.detach().requires_grad_() if t.dtype.is_float else t for t in inputs]
        outputs = p.evaluate(leaves, OURS, ours=True)
        loss = _loss(outputs)
        grads = loss.gradient(*(leaves[i] for i in used)) if loss.requires_grad else []
        everything = [*outputs, *grads]
        everything[0].realize(*everything[1:])
        return everything

    for salt in (1, 2):
        step(*_tensors(p.arrays(salt), device))
    results = step(*_tensors(arrays, device))
    count = len(p.outputs)
    found = {i: g.numpy() for i, g in zip(used, results[count:], strict=False)}
    return [o.numpy() for o in results[:count]], found


def exported(p: Program, device: str, arrays: list[np.ndarray]) -> Result:
    """A captured function, saved and loaded."""
    names = [f"i{i}" for i in range(len(arrays))]
    scope: dict[str, Callable[[list[Tensor]], dict[str, Tensor]]] = {
        "run": lambda inputs: _named_outputs(p, inputs)
    }
    exec(f"def step({', '.join(names)}): return run([{', '.join(names)}])", scope)
    step = TinyJit(scope["step"])
    for salt in (1, 2):
        step(*_tensors(p.arrays(salt), device))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "step.pgrd")
        step.save(path)
        results = export.load(path, native=True).run(dict(zip(names, arrays, strict=True)))
    return [results[f"o{i}"].numpy() for i in range(len(p.outputs))], None


def _named_outputs(p: Program, inputs: list[Tensor]) -> dict[str, Tensor]:
    outputs = {f"o{i}": o.clone() for i, o in enumerate(p.evaluate(inputs, OURS, ours=True))}
    first, *others = outputs.values()
    first.realize(*others)
    return outputs


def beside_a_thread(p: Program, device: str, arrays: list[np.ndarray]) -> Result:
    """While another thread runs the same program on other numbers, which gets what it gets alone."""
    others = p.arrays(3)
    with ThreadPoolExecutor(1) as thread:
        beside = thread.submit(eager, p, device, others)
        result = gradients(p, device, arrays)
    for got, want in zip(beside.result()[0], eager(p, device, others)[0], strict=True):
        assert np.array_equal(got, want, equal_nan=True), "the other thread has other results than alone"
    return result


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


def plain(p: Program, device: str, arrays: list[np.ndarray]) -> Result:
    """Nothing optimised."""
    with _environment(NOOPT="1"):
        return eager(p, device, arrays)


WAYS: dict[str, Way] = {
    w.__name__: w for w in (eager, in_parts, gradients, captured, exported, beside_a_thread, plain)
}


def check(p: Program, way: str, device: str, judged: Truth, salt: int = 0) -> None:
    """Raises AssertionError where an output or a gradient is not the truth."""
    outputs, found = WAYS[way](p, device, p.arrays(salt))
    slack = PLAIN_SLACK if way == "plain" else 1.0
    for i, (got, want, most) in enumerate(zip(outputs, judged.values, judged.tolerances, strict=True)):
        _same(f"output {i}", got, want, slack * most)
    if found is None or not p.differentiable:
        return
    for i in found.keys() | judged.gradients.keys():
        want = judged.gradients.get(i, np.zeros(p.inputs[i].shape))
        got = found.get(i, np.zeros(p.inputs[i].shape))
        _same(f"gradient of input {i}", got, want, slack * judged.gradient_tolerances.get(i, 0.0))


def _same(what: str, got: np.ndarray, want: np.ndarray, most: float) -> None:
    assert got.shape == want.shape, f"{what}: shape {got.shape}, torch has {want.shape}"
    apart = float(np.abs(got - want).max(initial=0))
    assert apart <= most, f"{what}: {apart:.3g} from torch's, at most {most:.3g} is allowed"
