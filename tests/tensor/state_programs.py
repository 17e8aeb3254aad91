"""Random programs over all families of Tensor's methods, on Tensors and on torch's at once.

What a program has made stays in a pool, from which the next step takes; between the steps memory is written
through views, values are computed, copied, pickled, captured and differentiated. torch is the model: its
views share memory as ours do, and it does each step at once.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from tensor.tables.state import EXACT, SMOOTH, VIEWS

from polygrad import Tensor, TinyJit

NAMES: dict[str, Any] = {"Tensor": Tensor, "torch": torch, "F": F}


@dataclass
class Pair:
    """A value, ours and torch's."""

    ours: Tensor
    theirs: Any

    def check(self, what: str, tolerance: float = 2e-4) -> None:
        want, got = self.theirs.detach().numpy(), self.ours.numpy()
        assert got.shape == want.shape, f"{what}: shape {got.shape}, torch has {want.shape}"
        size = max(1.0, float(np.abs(want).max(initial=0)))
        tolerance = 0.0 if want.dtype.kind in "iub" else tolerance * size
        same = np.allclose(got, want, rtol=tolerance, atol=tolerance)
        assert same, f"{what}: expected\n{want}\ngot\n{got}"


class Program:
    """One random program; `pick(n)` chooses one of n, and everything follows from what it says."""

    def __init__(self, pick: Callable[[int], int], exact: bool) -> None:
        self.pick, self.exact, self.steps = pick, exact, [""]
        self.rng = np.random.default_rng(pick(1 << 16))
        self.pool = [self._new((2, 3)), self._new((4,)), self._new((2, 3))]

    def _new(self, shape: tuple[int, ...]) -> Pair:
        array = (
            self.rng.integers(-9, 10, shape).astype(np.int32)
            if self.exact
            else self.rng.uniform(-2, 2, shape).astype(np.float32)
        )
        return Pair(Tensor(array), torch.tensor(array))

    def _chosen(self, rows: list[Any]) -> Any:
        return rows[self.pick(len(rows))]

    def _evaluated(self, row: tuple[str, str], x: Pair, y: Pair) -> Pair | None:
        """None where the program cannot go on from it: what is too large, empty, or has no axes left."""
        a, k = self.pick(max(x.ours.ndim, 1)), self.pick(4)
        ours, theirs = row[0], row[1] or row[0]
        self.steps.append(f"{ours}; x {x.ours.shape} a={a} k={k}")
        want = eval(theirs, {**NAMES, "x": x.theirs, "y": y.theirs, "a": a, "k": k})
        got = eval(ours, {**NAMES, "x": x.ours, "y": y.ours, "a": a, "k": k})
        return Pair(got, want)

    def _operands(self) -> tuple[Pair, Pair] | None:
        x = self._chosen(self.pool)
        return (
            (x, self._chosen([p for p in self.pool if p.ours.shape == x.ours.shape])) if x.ours.ndim else None
        )

    def _keep(self, p: Pair) -> None:
        wanted = torch.int32 if self.exact else torch.float32
        if p.theirs.dtype is torch.int64 and self.exact:
            p = Pair(p.ours.cast("int32"), p.theirs.int())
        if p.theirs.dtype is wanted and 0 < p.theirs.numel() <= 64 and 0 < p.theirs.ndim < 4:
            self.pool.append(p)
        else:
            p.check(self.steps[-1])

    def step(self) -> None:
        kinds = [self.compute] * 5 + [self.view, self.write, self.write, self.update, self.read, self.realize,
                 self.copies, self.capture] + ([] if self.exact else [self.differentiate])  # fmt: skip
        self._chosen(kinds)()

    def compute(self) -> None:
        if operands := self._operands():
            # one whose torch refuses, we leave out
            row = self._chosen(EXACT if self.exact else SMOOTH)
            p = self._evaluated(row, *operands)
            if p is not None:
                self._keep(p)

    def view(self) -> None:
        operands = self._operands()
        row = self._chosen(VIEWS)
        if operands and operands[0].theirs.is_contiguous() and 1 < operands[0].theirs.shape[-1]:
            p = self._evaluated(row, *operands)
            if p is not None and p.theirs.ndim and p.theirs.numel():
                self.pool.append(p)

    def write(self) -> None:
        """Into a random slice of a value, and so of all its views."""
        p = self._chosen(self.pool)
        if p.theirs.ndim == 0 or any(
            n > 1 and s == 0 for n, s in zip(p.theirs.shape, p.theirs.stride(), strict=True)
        ):
            return
        index = self._chosen(
            [(slice(0, 1),), (Ellipsis, slice(None, None, 2)), (Ellipsis, 0), (slice(None),), (-1,)]
        )
        value = self._new(tuple(p.theirs[index].shape))
        self.steps.append(f"write {index} of {p.ours.shape}")
        p.ours[index] = value.ours
        p.theirs[index] = value.theirs

    def update(self) -> None:
        p = self._chosen(self.pool)
        if any(n > 1 and s == 0 for n, s in zip(p.theirs.shape, p.theirs.stride(), strict=True)):
            return
        same = self._chosen([q for q in self.pool if q.ours.shape == p.ours.shape])
        self.steps.append(f"update {p.ours.shape}")
        p.ours += same.ours
        p.theirs += same.theirs.clone()

    def read(self) -> None:
        self._chosen(self.pool).check(f"read after {self.steps[-1]}")

    def realize(self) -> None:
        self._chosen(self.pool).ours.realize()

    def copies(self) -> None:
        p = self._chosen(self.pool)
        self.steps.append("copy")
        copied = self._chosen([copy.deepcopy, copy.copy, lambda t: pickle.loads(pickle.dumps(t))])
        if copied is copy.copy:
            self.pool.append(Pair(copy.copy(p.ours), p.theirs))
        else:
            self.pool.append(Pair(copied(p.ours), p.theirs.clone()))

    def capture(self) -> None:
        """A captured function of two values, called with others, and with one that was written to since."""
        operands = self._operands()
        if operands is None:
            return
        row = self._chosen(EXACT if self.exact else SMOOTH)
        if any(w in row[0] for w in ("masked_select", "nonzero", "unique", "Tensor(")):  # they read, or make
            return
        a, k = self.pick(operands[0].ours.ndim), self.pick(4)
        self.steps.append(f"captured {row[0]}; x {operands[0].ours.shape} a={a} k={k}")
        code, theirs = compile(row[0], "row", "eval"), row[1] or row[0]
        step = TinyJit(lambda x, y: (eval(code, {**NAMES, "x": x, "y": y, "a": a, "k": k}) + 0).realize())
        for i in range(4):
            x, y = (self._new(tuple(p.theirs.shape)) for p in operands)
            if i == 3:
                x.ours[:1] = y.ours[:1]
                x.theirs[:1] = y.theirs[:1]
            want = eval(theirs, {**NAMES, "x": x.theirs, "y": y.theirs, "a": a, "k": k})
            Pair(step(x.ours.realize(), y.ours.realize()), want).check(f"call {i} of {self.steps[-1]}")

    def differentiate(self) -> None:
        """Of a chain of a few steps from a fresh leaf, twice: gradients add up."""
        leaf = self._new(self._chosen([(2, 3), (4,), (3, 1)]))
        ours = Tensor(leaf.ours.numpy(), requires_grad=True)
        theirs = leaf.theirs.clone().requires_grad_()
        p = Pair(ours, theirs)
        for _ in range(1 + self.pick(3)):
            if p.theirs.ndim == 0 or p.theirs.numel() == 0 or p.theirs.numel() > 64:
                break
            p = self._evaluated(self._chosen(SMOOTH), p, p) or p
            if self.pick(3) == 0:
                p.ours.realize()
        for i in range(2):
            if not p.theirs.requires_grad:
                return
            p.theirs.square().sum().backward(retain_graph=True)
            p.ours.square().sum().backward()
            want = torch.zeros_like(theirs) if theirs.grad is None else theirs.grad
            got = ours.zeros_like() if ours.grad is None else ours.grad
            Pair(got, want).check(f"gradient {i} after {self.steps[-1]}", 2e-3)

    def run(self, count: int) -> None:
        for _ in range(count):
            self.step()
        for i, p in enumerate(self.pool):
            p.check(f"value {i} of {len(self.pool)} at the end")
