"""Runs rows of a table: ours and torch's, many rows in one Program, and says which rows differ."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from tensor.tables.rows import Row

from polygrad import Tensor

warnings.filterwarnings("ignore", category=UserWarning, module="torch")
CHUNK = 24  # rows in one Program


def _put(t: Any, index: Any, value: Any) -> Any:
    """t with t[index] = value, ours or torch's."""
    t = t * 1 if t.dtype not in (torch.bool,) else t.clone()
    t[index] = value
    return t


NAMES = {"Tensor": Tensor, "torch": torch, "F": F, "put": _put, "inf": math.inf, "nan": math.nan}


def of_tensors(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (tuple, list)) else [x]


def _weights(shape: Any, dtype: str) -> np.ndarray:
    return np.random.default_rng(3).uniform(0.5, 1.5, tuple(shape)).astype("float32").astype(dtype)


def _weighted(outs: list[Any], weights: list[Any]) -> Any:
    total = None
    for out, w in zip(outs, weights, strict=True):
        term = (out * w).sum()
        total = term if total is None else total + term
    return total


class Comparison:
    """One row's lazy results, and torch's values: its outputs, its gradients, their gradients."""

    def __init__(self, row: Row) -> None:
        self.row = row
        bases = [o.base() for o in row.operands]
        is_half = any(o.dtype == "float16" for o in row.operands)
        self.ours: list[tuple[str, Any, float]] = []
        self.wanted: list[np.ndarray] = []
        xs = [Tensor(b) for b in bases]
        # torch computes in float32 what it would round to 16 bits more often, or has no 16-bit kernel for
        ts = [torch.tensor(b.astype("float32") if b.dtype == "float16" else b) for b in bases]
        floats = [i for i, b in enumerate(bases) if b.dtype.kind == "f"]
        wants_gradient = row.gradient and bool(floats)
        if wants_gradient:
            for i in floats:
                ts[i].requires_grad_()
        outs = of_tensors(self._evaluate(row.ours, xs))
        wants = of_tensors(self._evaluate(row.theirs, ts))
        assert len(outs) == len(wants), f"{len(outs)} results, torch has {len(wants)}"
        for out, want in zip(outs, wants, strict=True):
            self._compare("value", out, want, row.tolerance)
            if out.dtype.is_float and not is_half:
                assert str(want.dtype) == f"torch.{out.dtype}", f"{out.dtype}, torch has {want.dtype}"
            assert out.dtype.is_bool == (want.dtype == torch.bool), f"{out.dtype}, torch has {want.dtype}"
        if wants_gradient:
            outs = [o for o in outs if o.dtype.is_float]
            wants = [o for o in wants if o.is_floating_point()]
        if wants_gradient and outs:
            self._gradients(outs, wants, [xs[i] for i in floats], [ts[i] for i in floats])

    def _evaluate(self, expression: str, tensors: list[Any]) -> Any:
        views = [o.view(t) for o, t in zip(self.row.operands, tensors, strict=True)]
        return eval(expression, {**NAMES, **dict(zip("xyzw", views, strict=False))})

    def _gradients(self, outs: list[Any], wants: list[Any], xs: list[Any], ts: list[Any]) -> None:
        weights = [_weights(o.shape, str(o.dtype)) for o in outs]
        total = _weighted(outs, [Tensor(w) for w in weights])
        got = total.gradient(*xs)
        theirs = [torch.tensor(w.astype("float32") if w.dtype == "float16" else w) for w in weights]
        if not any(w.requires_grad for w in wants):
            found: list[Any] = [None] * len(ts)
        else:
            found = list(
                torch.autograd.grad(
                    _weighted(wants, theirs), ts, create_graph=self.row.second, allow_unused=True
                )
            )
        found = [torch.zeros_like(t) if g is None else g for g, t in zip(found, ts, strict=True)]
        for g, want in zip(got, found, strict=True):
            self._compare("gradient", g, want, 10 * self.row.tolerance)
        if self.row.second:
            again = _weighted([g * g for g in got], [1.0] * len(got)).gradient(*xs)
            squares = sum((g * g).sum() for g in found)
            constant = not squares.requires_grad
            expected = [None] * len(ts) if constant else torch.autograd.grad(squares, ts, allow_unused=True)
            for g, want, t in zip(again, expected, ts, strict=True):
                want = torch.zeros_like(t) if want is None else want
                self._compare("second gradient", g, want, 50 * self.row.tolerance)

    def _compare(self, what: str, got: Any, want: Any, tolerance: float) -> None:
        assert got.shape == tuple(want.shape), f"{what}: shape {got.shape}, torch has {tuple(want.shape)}"
        self.ours.append((what, got.contiguous(), tolerance))
        self.wanted.append(want.detach().resolve_neg().numpy())

    def difference(self) -> str:
        """What differs; empty if nothing does."""
        for (what, got, tolerance), want in zip(self.ours, self.wanted, strict=True):
            have = got.numpy()
            if not np.allclose(have, want, rtol=tolerance, atol=tolerance, equal_nan=True):
                return f"{what}: expected\n{want}\ngot\n{have}"
            zeros = (want == 0) & (have == 0) if want.dtype.kind == "f" else np.zeros_like(want, bool)
            if self.row.signs and (np.signbit(have) != np.signbit(want))[zeros].any():
                return f"{what}: a zero's sign: expected\n{want}\ngot\n{have}"
        return ""


def failures(rows: list[Row]) -> list[str]:
    """The rows that differ from torch on the default device, and how."""
    out: list[str] = []
    for chunk in _chunks(rows):
        ready: list[Comparison] = []
        for row in chunk:
            try:
                ready.append(Comparison(row))
            except Exception as e:  # which row it was is what the reader needs
                out.append(f"{row.name}\n  {type(e).__name__}: {e}")
        results = [t for c in ready for _, t, _ in c.ours]
        try:
            Tensor.realize(*results) if results else None
        except Exception:  # one of them: each by itself says which
            pass
        for c in ready:
            try:
                different = c.difference()
            except Exception as e:
                different = f"{type(e).__name__}: {e}"
            if different:
                out.append(f"{c.row.name}\n  {different}")
    return out


def _chunks(rows: list[Row]) -> Iterator[list[Row]]:
    left = iter(rows)
    while chunk := list(islice(left, CHUNK)):
        yield chunk
