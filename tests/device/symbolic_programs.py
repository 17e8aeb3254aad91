"""Random programs over arrays with symbolic sizes, and the same in numpy with numbers in their place.

A program is a list of steps, each of which turns one array into the next. A step is a pair of functions: one
of a Tensor and the Variables (bound, or their values: the program with concrete sizes), one of an array and
the values. Steps are drawn with the arrays at hand for several bindings, and kept if they are valid for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import assume
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view

from polygrad import Tensor, Variable

I, J = Variable("i", 1, 7), Variable("j", 2, 5)
BASE = (np.arange(7 * 2 * 5, dtype=np.float32).reshape(7, 2, 5) * 5 % 11 - 4).astype(np.float32)
MOST = 1000  # elements that an intermediate may have

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Step:
    text: str
    tensor: Callable[[Any, Values], Any]
    array: Callable[[Any, Values], Any]
    # no jump that a rounding error could take; others need arrays of whole numbers
    smooth: bool = True  # of the value
    smooth_gradient: bool = True  # which has one where elements are equal


@dataclass
class Program:
    """`bindings` of the Variables; `arrays[k]` is what the program is worth for `bindings[k]`."""

    bindings: list[dict[str, int]]
    steps: list[Step] = field(default_factory=list)
    arrays: list[Any] = field(default_factory=list)

    def start(self, base: Tensor, values: Values) -> Tensor:
        return base[: values["i"], :, : values["j"]]

    def run(self, x: Tensor, values: Values) -> Tensor:
        for step in self.steps:
            x = step.tensor(x, values)
        return x

    def __repr__(self) -> str:
        return f"{self.bindings}: " + "; ".join(s.text for s in self.steps)


def bound(binding: Mapping[str, int]) -> dict[str, Any]:
    return {"i": I.bind(binding["i"]), "j": J.bind(binding["j"])}


def read(x: Tensor, shape: tuple[int, ...]) -> np.ndarray:
    """The elements of a Tensor that is as large as `shape`."""
    return x.shrink([(0, n) for n in shape]).numpy()


# --- sizes: functions of the Variables -------------------------------------------------------------------

SIZES: dict[str, Callable[[Values], Any]] = {
    "i": lambda v: v["i"],
    "j": lambda v: v["j"],
    "j - 1": lambda v: v["j"] - 1,
    "-i": lambda v: -v["i"],
    "i*2": lambda v: 2 * v["i"],
    "i + j": lambda v: v["j"] + v["i"],
    "i//2": lambda v: v["i"] // 2,
}


@st.composite
def numbers(
    draw: Any, least: int = -4, most: int = 8, symbolic: bool = True
) -> tuple[str, Callable[[Values], Any]]:
    if symbolic and draw(st.integers(0, 2)) == 0:
        text = draw(st.sampled_from(sorted(SIZES)))
        return text, SIZES[text]
    n = draw(st.integers(least, most))
    return str(n), lambda v: n


# --- steps -----------------------------------------------------------------------------------------------


def _axis(draw: Any, x: Any) -> int:
    return draw(st.integers(0, x.ndim - 1))


def _at(x: Any, axis: int, index: Any) -> Any:
    return x[(*[slice(None)] * axis, index)]


def slices(draw: Any, x: Any) -> Step:
    axis = _axis(draw, x)
    ends = [draw(st.none() | numbers()) for _ in range(2)]
    step = draw(st.sampled_from([1, 1, 1, 2, -1, -2, 3]))
    cut = lambda v: slice(*[None if e is None else e[1](v) for e in ends], step)
    text = ":".join("" if e is None else e[0] for e in ends)
    both = lambda t, v: _at(t, axis, cut(v))
    return Step(f"[{text}:{step}] of {axis}", both, both)


def index(draw: Any, x: Any) -> Step:
    axis = _axis(draw, x)
    text, at = draw(numbers(-3, 3))
    both = lambda t, v: _at(t, axis, at(v))
    return Step(f"[{text}] of {axis}", both, both)


def take(draw: Any, x: Any) -> Step:
    axis = _axis(draw, x)
    places = draw(st.lists(st.integers(-2, 2), min_size=1, max_size=3))
    return Step(
        f"[{places}] of {axis}",
        lambda t, v: _at(t, axis, Tensor(places, device=t.device)),
        lambda a, v: np.take(a, places, axis),
    )


def flip(draw: Any, x: Any) -> Step:
    axis = _axis(draw, x)
    return Step(f"flip {axis}", lambda t, v: t.flip(axis), lambda a, v: np.flip(a, axis))


def roll(draw: Any, x: Any) -> Step:
    axis, shift = _axis(draw, x), draw(st.integers(-4, 9))
    return Step(
        f"roll {axis} by {shift}", lambda t, v: t.roll(shift, axis), lambda a, v: np.roll(a, shift, axis)
    )


def permute(draw: Any, x: Any) -> Step:
    order = draw(st.permutations(range(x.ndim)))
    return Step(f"permute {order}", lambda t, v: t.permute(order), lambda a, v: a.transpose(order))


def pad(draw: Any, x: Any) -> Step:
    axis, value = _axis(draw, x), draw(st.sampled_from([0, 2.0]))
    (before, lo), (after, hi) = draw(numbers(0, 2)), draw(numbers(0, 2))
    return Step(
        f"pad {axis} by {before}, {after} with {value}",
        lambda t, v: t.pad([(lo(v), hi(v)) if k == axis else None for k in range(t.ndim)], value=value),
        lambda a, v: np.pad(
            a, [(lo(v), hi(v)) if k == axis else (0, 0) for k in range(a.ndim)], constant_values=value
        ),
    )


def reduce(draw: Any, x: Any) -> Step:
    kind = draw(st.sampled_from(["sum", "mean", "max", "min", "argmax", "argmin", "var"]))
    axis, keep = _axis(draw, x), draw(st.booleans())
    array = {
        "argmax": lambda a, v: np.argmax(a, axis, keepdims=keep).astype(np.float32),
        "argmin": lambda a, v: np.argmin(a, axis, keepdims=keep).astype(np.float32),
        "var": lambda a, v: np.var(a, axis, keepdims=keep, ddof=0),
    }
    more = {"correction": 0} if kind == "var" else {}
    return Step(
        f"{kind} {axis} {keep}",
        lambda t, v: getattr(t, kind)(axis, keepdim=keep, **more).float(),
        array.get(kind, lambda a, v: getattr(np, kind)(a, axis, keepdims=keep)),
        smooth=not kind.startswith("arg"),
        smooth_gradient=kind not in ("max", "min"),
    )


def cumulative(draw: Any, x: Any) -> Step:
    axis = _axis(draw, x)
    return Step(
        f"cumsum {axis}", lambda t, v: t.cumsum(axis), lambda a, v: np.cumsum(a, axis, dtype=np.float32)
    )


def softmax(draw: Any, x: Any) -> Step:
    axis = _axis(draw, x)

    def array(a: Any, v: Values) -> Any:
        e = np.exp(a - a.max(axis, keepdims=True))
        return e / e.sum(axis, keepdims=True)

    return Step(f"softmax {axis}", lambda t, v: t.softmax(axis), array)


def join(draw: Any, x: Any) -> Step:
    axis, kind = _axis(draw, x), draw(st.sampled_from(["cat", "stack"]))
    return Step(
        f"{kind} {axis}",
        lambda t, v: getattr(t, kind)(t.flip(axis), t * 2, dim=axis),
        lambda a, v: (np.concatenate if kind == "cat" else np.stack)([a, np.flip(a, axis), a * 2], axis),
    )


def merge(draw: Any, x: Any) -> Step:
    first = draw(st.integers(0, x.ndim - 1))
    last = draw(st.integers(first, x.ndim - 1))
    minus = draw(st.booleans())

    def array(a: Any, v: Values) -> Any:
        return a.reshape(*a.shape[:first], int(np.prod(a.shape[first : last + 1])), *a.shape[last + 1 :])

    return Step(
        f"merge {first} to {last}",
        lambda t, v: (
            t.reshape(*t.shape[:first], -1, *t.shape[last + 1 :]) if minus else t.flatten(first, last)
        ),
        array,
    )


def split(draw: Any, x: Any) -> Step:
    """An axis that was repeated, split again another way."""
    axis, n, back = _axis(draw, x), draw(st.integers(2, 3)), draw(st.booleans())
    counts = lambda t: [n if k == axis else 1 for k in range(t.ndim)]

    def shape(t: Any, size: Any) -> tuple[Any, ...]:
        return (*t.shape[:axis], *((size, n) if back else (n, size)), *t.shape[axis + 1 :])

    return Step(
        f"repeat and split {axis} by {n}",
        lambda t, v: t.repeat(counts(t)).reshape(shape(t, t.shape[axis])),
        lambda a, v: np.tile(a, counts(a)).reshape(shape(a, a.shape[axis])),
    )


def expand(draw: Any, x: Any) -> Step:
    text, size = draw(numbers(1, 3))
    return Step(
        f"expand to {text}",
        lambda t, v: t.unsqueeze(0).expand(size(v), *t.shape),
        lambda a, v: np.broadcast_to(a, (size(v), *a.shape)),
    )


def arithmetic(draw: Any, x: Any) -> Step:
    table: dict[str, Callable[[Any, Values], Any]] = {
        "x * i": lambda t, v: t * v["i"] / 7,
        "x * i % 13": lambda t, v: t * v["i"] % 13,
        "j - x": lambda t, v: v["j"] - t,
        "x / (i + j)": lambda t, v: t / (v["j"] + v["i"]),
        "6 / i + x": lambda t, v: 6 / v["i"] + t,
        "x // j % 5": lambda t, v: t // v["j"] % 5,
        "i > x": lambda t, v: (v["i"] > t) * t,
        "(x*x / 16 + 1) ** (1 / j)": lambda t, v: (t * t / 16 + 1) ** (1 / v["j"]),
        "x + x.sum": lambda t, v: t + t.sum(0, True) / v["j"],
    }
    text = draw(st.sampled_from(sorted(table)))
    return Step(text, table[text], lambda a, v: _keepdims(table[text], a, v), not set(text) & set("%>"))


def _keepdims(f: Callable[[Any, Values], Any], a: Any, v: Values) -> Any:
    class Array(np.ndarray):
        def sum(self, axis: int, keep: bool) -> Any:  # type: ignore[override]
            return np.add.reduce(self, axis, keepdims=keep)

    return np.asarray(f(a.view(Array), v), dtype=np.float32)


def position(draw: Any, x: Any) -> Step:
    axis, start = _axis(draw, x), draw(st.sampled_from(["i", "j"]))

    def tensor(t: Any, v: Values) -> Any:
        n = t.shape[axis]
        return t + Tensor.arange(v[start], v[start] + 2 * n, 2, device=t.device).reshape(
            [n if k == axis else 1 for k in range(t.ndim)]
        )

    def array(a: Any, v: Values) -> Any:
        n = a.shape[axis]
        return a + np.arange(v[start], v[start] + 2 * n, 2).astype(np.float32).reshape(
            [n if k == axis else 1 for k in range(a.ndim)]
        )

    return Step(f"positions of {axis} from {start}", tensor, array)


def product(draw: Any, x: Any) -> Step:
    return Step(
        "x @ x.T",
        lambda t, v: t @ t.transpose(-1, -2) / 8,
        lambda a, v: a @ a.swapaxes(-1, -2) / np.float32(8),
    )


def windows(draw: Any, x: Any) -> Step:
    axis, size, step = _axis(draw, x), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    return Step(
        f"windows of {size} every {step} along {axis}",
        lambda t, v: t.unfold(axis, size, step),
        lambda a, v: _at(sliding_window_view(a, size, axis), axis, slice(None, None, step)),
    )


def convolve(draw: Any, x: Any) -> Step:
    """A convolution along the last axis, all others images."""
    stride, border, size = draw(st.integers(1, 2)), draw(st.integers(0, 2)), draw(st.integers(1, 3))
    weight = [float(k + 1) for k in range(size)]

    def tensor(t: Any, v: Values) -> Any:
        images = t.reshape(-1, 1, t.shape[-1])
        w = Tensor(weight, device=t.device).reshape(1, 1, size)
        out = images.conv2d(w, stride=stride, padding=border)
        return out.reshape(*t.shape[:-1], out.shape[-1]) / 4

    def array(a: Any, v: Values) -> Any:
        grown = np.pad(a, [(0, 0)] * (a.ndim - 1) + [(border, border)])
        return sliding_window_view(grown, size, -1)[..., ::stride, :] @ np.array(weight, np.float32) / 4

    return Step(f"convolution of {size}, stride {stride}, padding {border}", tensor, array)


def maxima(draw: Any, x: Any) -> Step:
    return Step(
        "max_pool2d",
        lambda t, v: t.max_pool2d((2, 2), stride=1),
        lambda a, v: sliding_window_view(a, (2, 2), (-2, -1)).max((-2, -1)),
        smooth_gradient=False,
    )


def pieces(draw: Any, x: Any) -> Step:
    axis, which = _axis(draw, x), draw(st.sampled_from([0, -1]))
    size = draw(st.integers(1, 4))
    return Step(
        f"piece {which} of {size} along {axis}",
        lambda t, v: t.split(size, axis)[which],
        lambda a, v: np.split(a, range(size, a.shape[axis], size), axis)[which],
    )


STEPS = [
    slices, slices, index, take, flip, roll, permute, pad, reduce, cumulative, softmax, join, merge, split,
    expand, arithmetic, arithmetic, position, product, windows, convolve, maxima, pieces,
]  # fmt: skip


@st.composite
def programs(draw: Any, bindings: int = 4, differentiable: bool = False) -> Program:
    each = st.fixed_dictionaries({"i": st.integers(1, 7), "j": st.integers(2, 5)})
    program = Program(draw(st.lists(each, min_size=bindings, max_size=bindings)))
    program.arrays = [BASE[: b["i"], :, : b["j"]] for b in program.bindings]
    wanted = draw(st.integers(1, 6))
    for _ in range(2 * wanted):
        x = program.arrays[0]
        if not x.ndim or len(program.steps) == wanted:
            break
        step = draw(st.sampled_from(STEPS))(draw, x)
        grown = _grown(program, step, whole=not step.smooth or (differentiable and not step.smooth_gradient))
        if grown is not None:
            program.steps.append(step)
            program.arrays = grown
    assume(program.steps)
    return program


def _grown(program: Program, step: Step, whole: bool) -> list[Any] | None:
    """The arrays after one more step; None where it is not valid, or the results too large or not finite.

    `whole`: nor where the arrays are not of whole numbers.
    """
    out = []
    for a, b in zip(program.arrays, program.bindings, strict=True):
        if 0 in a.shape or (whole and not np.array_equal(a, np.round(a))):
            return None
        try:
            with np.errstate(all="raise"):
                grown = np.asarray(step.array(a, b), dtype=np.float32)
        except (ValueError, IndexError, FloatingPointError):
            return None
        if grown.size == 0 or grown.ndim > 4 or grown.size > MOST or np.abs(grown).max() > 1e6:
            return None
        out.append(grown)
    return out if len({a.ndim for a in out}) == 1 else None
