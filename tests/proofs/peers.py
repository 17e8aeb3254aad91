"""Evaluates calls here and in the peers (torch, tinygrad), and says how the outcomes differ.

tinygrad runs on its device PYTHON, which needs no compiler. Its modules, and torch's, are loaded only when a
call of theirs is evaluated.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
import warnings
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from proofs.calls import Call
from proofs.kit import Kit, moments, written

import polygrad
from polygrad import Tensor, nn
from polygrad.errors import GradientError, InternalError, PolygradError

os.environ.setdefault("DEV", "PYTHON")
warnings.filterwarnings("ignore", category=UserWarning, module="torch")
DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64",
)  # fmt: skip
ROUGH = {"float16": 1e-2, "bfloat16": 5e-2}


@dataclass
class Outcome:
    """What came of a call: its values, as arrays and numbers, and the gradients of its float operands."""

    refusal: Exception | None = None
    values: list[Any] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)
    gradients: list[np.ndarray] = field(default_factory=list)
    gradient_dtypes: list[str] = field(default_factory=list)


class Peer:
    """One package: how it makes Tensors, reads them and differentiates."""

    package = "polygrad"

    @functools.cached_property
    def tensor(self) -> Any:
        return Tensor

    @functools.cached_property
    def dt(self) -> Any:
        return SimpleNamespace(**{n: getattr(polygrad.dtypes, n) for n in DTYPES})

    def make(self, array: Any, wants_gradient: bool = False) -> Any:
        return Tensor(array, requires_grad=True) if wants_gradient else Tensor(array)

    @functools.cached_property
    def kit(self) -> Kit:
        return Kit(self)

    def training(self, is_training: bool) -> AbstractContextManager[Any]:
        return Tensor.train(is_training)

    def leaf(self, array: np.ndarray) -> Any:
        return self.make(array, wants_gradient=True)

    def state_of(self, model: Any) -> Any:
        return nn.state.get_state_dict(model)

    def sgd(self, parameters: list[Any], rate: float) -> Any:
        return nn.optim.SGD(parameters, lr=rate)

    def derivatives(self, total: Any, leaves: Sequence[Any]) -> list[Any]:
        """The gradients of a number."""
        return list(total.gradient(*leaves))

    def function(self, place: str, name: str) -> Any:
        """The name as the place has it; here, where the page says that it is."""
        owners = {"tinygrad": (polygrad,), "torch.nn.init": (nn.init,), "tinygrad.dtypes": (polygrad.dtypes,)}
        owners |= dict.fromkeys(("tinygrad.nn", "torch.nn"), (nn,))
        owners |= dict.fromkeys(("tinygrad.nn.optim", "torch.optim", "torch.optim.lr_scheduler"), (nn.optim,))
        owners |= {"tinygrad.nn.state": (nn.state,)}
        for owner in owners.get(place, (Tensor, polygrad, nn)):
            if hasattr(owner, name):
                return getattr(owner, name)
        raise AttributeError(f"{place}.{name}")

    def is_tensor(self, x: Any) -> bool:
        return isinstance(x, self.tensor)

    def dtype_of(self, t: Any) -> str:
        return self.dtype_name(t.dtype)

    def dtype_name(self, dtype: Any) -> str:
        return next((n for n in DTYPES if getattr(self.dt, n) == dtype), str(dtype))

    def array(self, t: Any) -> np.ndarray:
        if self.dtype_of(t) == "bfloat16":
            t = t.float()
        return np.asarray(t.numpy())

    def weighted(self, outs: Sequence[Any]) -> Any:
        """A number that depends on each element of the floats among `outs` otherwise."""
        total = None
        for out in outs:
            weights = np.random.default_rng(3).uniform(0.5, 1.5, tuple(out.shape)).astype(np.float32)
            weights = weights.astype(self.dtype_of(out)) if self.dtype_of(out) != "bfloat16" else weights
            term = (out * self.make(weights)).sum()
            total = term if total is None else total + term
        return total

    def differentiate(self, outs: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        try:
            return self.derivatives(self.weighted(outs), leaves)
        except GradientError as e:
            if "no" not in str(e):
                raise
            return [t.zeros_like() for t in leaves]

    def is_limit(self, error: Exception) -> bool:
        """Whether the refusal is of what is not written, rather than of what has no meaning."""
        return False

    def pending(self, call: Call, place: str) -> tuple[Outcome, list[Any]]:
        """An outcome whose values and gradients are not read yet, and the Tensors they are in."""
        outcome = Outcome()
        try:
            bases = [self.make(o.base(), call.gradient and "float" in o.dtype) for o in call.operands]
            views = [o.view(t) for o, t in zip(call.operands, bases, strict=True)]
            scope = {
                "f": self.function(place, call.name), "dt": self.dt, "make": self.make, "kit": self.kit,
                "Tensor": self.tensor, "moments": moments, "written": written,
                "inf": math.inf, "nan": math.nan, "np": np, **dict(zip("xyzw", views, strict=False)),
            }  # fmt: skip
            outs = list(flattened(self.evaluate(call.expression, scope), self.is_tensor))
            outcome.values = outs
            floats = [o for o in outs if self.is_tensor(o) and "float" in self.dtype_of(o)]
            leaves = [t for t, o in zip(bases, call.operands, strict=True) if "float" in o.dtype]
            if call.gradient and floats and leaves:
                outcome.gradients = self.differentiate(floats, leaves)
        except Exception as e:
            return Outcome(refusal=e), []
        return outcome, [t for t in [*outcome.values, *outcome.gradients] if self.is_tensor(t)]

    def evaluate(self, expression: str, scope: dict[str, Any]) -> Any:
        return eval(expression, scope)

    def finish(self, outcome: Outcome) -> Outcome:
        """The outcome with its values read."""
        try:
            outcome.dtypes = [
                self.dtype_of(v) if self.is_tensor(v) else type(v).__name__ for v in outcome.values
            ]
            outcome.values = [self.read(v) for v in outcome.values]
            outcome.gradient_dtypes = [self.dtype_of(g) for g in outcome.gradients]
            outcome.gradients = [self.array(g) for g in outcome.gradients]
        except Exception as e:
            return Outcome(refusal=e)
        return outcome

    def read(self, value: Any) -> Any:
        if self.is_tensor(value):
            return self.array(value)
        return self.dtype_name(value) if type(value) is type(self.dt.float32) else value

    def outcome(self, call: Call, place: str) -> Outcome:
        return self.finish(self.pending(call, place)[0])


class Torch(Peer):
    package = "torch"

    def training(self, is_training: bool) -> AbstractContextManager[Any]:
        return nullcontext()  # it is a state of the layers

    @functools.cached_property
    def torch(self) -> Any:
        return importlib.import_module("torch")

    @functools.cached_property
    def tensor(self) -> Any:
        return self.torch.Tensor

    @functools.cached_property
    def dt(self) -> Any:
        return SimpleNamespace(**{n: getattr(self.torch, n) for n in DTYPES})

    def make(self, array: Any, wants_gradient: bool = False) -> Any:
        return self.torch.tensor(array, requires_grad=wants_gradient)

    def function(self, place: str, name: str) -> Any:
        return getattr(functools.reduce(getattr, place.split(".")[1:], self.torch), name)

    def array(self, t: Any) -> np.ndarray:
        t = t.detach().resolve_neg()
        return np.asarray((t.float() if t.dtype == self.torch.bfloat16 else t).numpy())

    def differentiate(self, outs: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        used = [o for o in outs if o.requires_grad]
        if not used:
            return [self.torch.zeros_like(t) for t in leaves]
        return self.derivatives(self.weighted(used), leaves)

    def sgd(self, parameters: list[Any], rate: float) -> Any:
        return self.torch.optim.SGD(parameters, lr=rate)

    def derivatives(self, total: Any, leaves: Sequence[Any]) -> list[Any]:
        found = self.torch.autograd.grad(total, leaves, allow_unused=True)
        return [self.torch.zeros_like(t) if g is None else g for g, t in zip(found, leaves, strict=True)]

    def is_limit(self, error: Exception) -> bool:
        text = str(error)
        return (
            isinstance(error, NotImplementedError) or "not implemented for" in text or "not supported" in text
        )


class Tinygrad(Peer):
    package = "tinygrad"

    def dtype_name(self, dtype: Any) -> str:
        """What has taken no dtype yet has the default one."""
        name = super().dtype_name(dtype)
        return {"dtypes.weakint": "int32", "dtypes.weakfloat": "float32"}.get(name, name)

    def training(self, is_training: bool) -> AbstractContextManager[Any]:
        made = importlib.import_module("tinygrad").Context(TRAINING=int(is_training))
        return cast("AbstractContextManager[Any]", made)

    @functools.cached_property
    def tensor(self) -> Any:
        return importlib.import_module("tinygrad").Tensor

    @functools.cached_property
    def dt(self) -> Any:
        dtypes = importlib.import_module("tinygrad").dtypes
        return SimpleNamespace(**{n: getattr(dtypes, n) for n in DTYPES})

    def make(self, array: Any, wants_gradient: bool = False) -> Any:
        made = self.tensor(array).realize()
        if wants_gradient:
            made.requires_grad = True
        return made

    def function(self, place: str, name: str) -> Any:
        importlib.import_module("tinygrad.nn.state")
        importlib.import_module("tinygrad.nn.optim")
        root = importlib.import_module("tinygrad")
        return getattr(functools.reduce(getattr, place.split(".")[1:], root), name)

    def differentiate(self, outs: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        try:
            return self.derivatives(self.weighted(outs), leaves)
        except RuntimeError as e:
            if "gradient" not in str(e) and "not found" not in str(e):
                raise
            return [t.zeros_like() for t in leaves]

    def state_of(self, model: Any) -> Any:
        return importlib.import_module("tinygrad").nn.state.get_state_dict(model)

    def sgd(self, parameters: list[Any], rate: float) -> Any:
        return importlib.import_module("tinygrad").nn.optim.SGD(parameters, lr=rate)


OURS, PEERS = Peer(), {"torch": Torch(), "tinygrad": Tinygrad()}


def flattened(found: Any, is_tensor: Any) -> Iterable[Any]:
    """Results one after the other; a shape is one value."""
    if not is_tensor(found) and isinstance(found, (tuple, list)) and any(map(is_tensor, found)):
        for part in found:
            yield from flattened(part, is_tensor)
    else:
        yield found


def differences(call: Call, ours: Outcome, theirs: Outcome) -> list[str]:
    """How two outcomes differ: for each difference its kind, a colon and what it is."""
    if theirs.refusal is not None:
        if ours.refusal is None:
            return ["accepted: theirs is " + short(theirs.refusal)] if call.is_refused else []
        known = isinstance(ours.refusal, (PolygradError, TypeError))  # Python's own, of arguments
        if isinstance(ours.refusal, InternalError) or not known:
            return [f"error: ours is {short(ours.refusal)}, theirs {short(theirs.refusal)}"]
        return []
    if ours.refusal is not None:
        return [f"refused: {short(ours.refusal)}"]
    if len(ours.values) != len(theirs.values):
        return [f"results: {len(ours.values)}, theirs {len(theirs.values)}"]
    found = []
    for a, b, dtype, their_dtype in zip(ours.values, theirs.values, ours.dtypes, theirs.dtypes, strict=True):
        if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
            found += [] if same_value(a, b) else [f"value: {a!r}, theirs {b!r}"]
            continue
        if a.shape != b.shape:
            return [f"shape: {a.shape}, theirs {b.shape}"]
        if dtype != their_dtype:
            found.append(f"dtype: {dtype}, theirs {their_dtype}")
        if not close(a, b, max(call.tolerance, ROUGH.get(dtype, 0), ROUGH.get(their_dtype, 0))):
            found.append(f"value: {shown(a)}, theirs {shown(b)}")
    leaves = [o.base() for o in call.operands if "float" in o.dtype]
    pairs = zip(ours.gradients, theirs.gradients, ours.gradient_dtypes, theirs.gradient_dtypes, strict=False)
    for (a, b, dtype, their_dtype), leaf in zip(pairs, leaves, strict=False):
        if a.shape == b.shape == leaf.shape:  # there is no slope at a NaN: who says 0 there and who says 1
            a, b = np.where(np.isnan(leaf), 0, a), np.where(np.isnan(leaf), 0, b)
        if a.shape != b.shape or dtype != their_dtype:
            found.append(f"gradient dtype: {dtype}{a.shape}, theirs {their_dtype}{b.shape}")
        elif not close(a, b, max(10 * call.tolerance, 2 * ROUGH.get(dtype, 0))):
            found.append(f"gradient: {shown(a)}, theirs {shown(b)}")
    return found


def close(a: np.ndarray, b: np.ndarray, tolerance: float) -> bool:
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        return bool(np.array_equal(a, b))
    with np.errstate(all="ignore"):
        return bool(
            np.allclose(a.astype(np.float64), b.astype(np.float64), tolerance, tolerance, equal_nan=True)
        )


def same_value(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=0.07) or (math.isnan(a) and math.isnan(b))
    if isinstance(a, (tuple, list)) and isinstance(b, (tuple, list)):
        return len(a) == len(b) and all(map(same_value, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return list(a) == list(b) and all(same_value(a[k], b[k]) for k in a)
    numbers = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (a, b))
    return (numbers or type(a) is type(b)) and bool(a == b)


def shown(x: np.ndarray) -> str:
    return np.array2string(x, precision=5, separator=",", threshold=20).replace("\n", "")


def short(e: Exception) -> str:
    return f"{type(e).__name__}: {str(e).splitlines()[0][:150] if str(e) else ''}"


def outcomes(calls: Sequence[tuple[Call, str]], chunk: int = 16) -> list[Outcome]:
    """Ours, many calls in one Program; what fails together is computed one by one."""
    found: list[Outcome] = []
    for start in range(0, len(calls), chunk):
        pending = [OURS.pending(call, place) for call, place in calls[start : start + chunk]]
        tensors = [t.contiguous() for _, ts in pending for t in ts if t.numel()]
        try:
            if tensors:
                Tensor.realize(*tensors)
        except Exception:  # each by itself says which
            pass
        found += [OURS.finish(outcome) for outcome, _ in pending]
    return found
