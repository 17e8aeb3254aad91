"""Guards: whether the Python values that a captured function read have changed since the capture.

A replay runs no Python, so the numbers, modes and objects that the function read are frozen in it. `reads`
finds them once, and each call compares them: by identity first, as values rarely change. Objects are held
weakly, except lists and dicts, which have no weak references.
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from polygrad.capture.reads import Read, is_plain, reads_of
from polygrad.dtype import dtypes
from polygrad.engine.devices import Device
from polygrad.errors import CaptureError
from polygrad.helpers import env_int
from polygrad.tensor.core.base import TensorBase
from polygrad.tensor.core.modes import TensorType, modes

# The errors of reading an attribute, an item or a cell's contents that does not exist any more.
GONE = (AttributeError, KeyError, IndexError, ValueError)
_NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Change:
    """The value `label` changed from `old` to `new`. `is_contents`: it is the contents of a list, dict or
    set. `remedy`: advice for a value that changes in each call."""

    label: str
    old: Any
    new: Any
    is_contents: bool = False
    remedy: str = (
        "pass a Tensor or a bound Variable, keep it in a Tensor that is assigned to, or use a TinyJit for "
        "each value"
    )

    def __str__(self) -> str:
        if self.is_contents:
            return f"what {self.label} holds"
        return f"{self.label} ({_text(self.old)}, then {_text(self.new)})"


class _Group:
    """Values of one holder: `read(holder())` returns all of them. `seen`: the values at the capture, objects
    as weak references."""

    __slots__ = ("holder", "is_contents", "keys", "kind", "labels", "read", "seen")

    def __init__(self, kind: str, reads: list[Read]) -> None:
        self.kind, self.is_contents = kind, kind == "contents"
        self.keys, self.labels = [r.key for r in reads], [r.label for r in reads]
        self.holder, self.read = _holder(reads[0].holder), _reader(kind, reads[0].holder, self.keys)
        self.seen = [_make_reference(v) for v in self.read(self.holder())]


class Guards:
    """The current Python values that functions read when they are called with these arguments by name.

    `is_same()`: whether modes are equal to these, and each value is identical. Raises one of `GONE`.
    """

    def __init__(self, functions: list[tuple[Callable[..., Any], Mapping[str, Any]]]) -> None:
        groups: dict[tuple[str, int], list[Read]] = {}
        for read in reads_of(functions):
            groups.setdefault((read.kind, id(read.holder)), []).append(read)
        self._groups = [_Group(kind, reads) for (kind, _), reads in groups.items()]
        self._checks = {name: env_int(name, 0) for name in ("CHECK", "ANOMALY")}
        self.is_same = _identity_check(self._groups)

    def missing_check(self) -> str | None:
        """The environment variable of a mode of checks that was switched on since the capture."""
        now = {name: env_int(name, 0) for name in self._checks}
        return next((name for name in now if now[name] and not self._checks[name]), None)

    def change(self) -> Change | None:
        """The first value that differs from the capture's, if there is one. Values of dead objects are
        skipped: nobody can have set them."""
        self._groups = [g for g in self._groups if g.holder() is not None]
        change = self._find_change()
        if change is None:
            self.is_same = _identity_check(self._groups)
        return change

    def _find_change(self) -> Change | None:
        for group in self._groups:
            try:
                values = group.read(group.holder())
            except GONE:
                return Change(group.labels[0], group.seen[0], _NOTHING, group.is_contents)
            if len(values) != len(group.seen):
                return Change(group.labels[0], None, None, True)
            if (change := _settle_group(group, values)) is not None:
                return change
        return None

    def check_unchanged(self, subject: str) -> None:
        """After the functions were called: raises CaptureError when they themselves changed what they read.

        Not for lists, dicts and sets, which are often logs: those that changed are not compared any more.
        """
        self._groups = [g for g in self._groups if not (g.is_contents and _is_other(g))]
        change = self.change()
        if change is not None:
            raise CaptureError(
                f"{subject}: expected the Python values that it reads to stay, but each call itself changes "
                f"{change}, which a replay, that runs no Python, would not: keep it in a Tensor and assign() "
                "to that, or change it outside"
            )


def _is_other(group: _Group) -> bool:
    values = group.read(group.holder())
    return len(values) != len(group.seen) or _settle_group(group, values) is not None


def _settle_group(group: _Group, values: Any) -> Change | None:
    """The first difference. If there is none, the current values replace the equal ones in `seen`."""
    for i, (value, old) in enumerate(zip(values, group.seen, strict=True)):
        before = old
        if old.__class__ is weakref.ref:
            before = _NOTHING if old() is None else old()
        if value is not before and not _is_equal(value, before):
            label = group.labels[0 if group.is_contents else i]
            return Change(label, before, value, group.is_contents)
    group.seen = [_make_reference(v) for v in values]
    return None


def _identity_check(groups: list[_Group]) -> Callable[[], bool]:
    """Whether modes and values are those that were seen: one expression, as it is evaluated at each call.

    grad_enabled is ... and h0['k'] is v0_0 and h0['w'] is v0_1() is not None and h1().p is v1_0
    """
    training, grad_enabled, default_float, default_int, device, checks, anomaly = modes_now()
    names: dict[str, Any] = {
        "modes": modes, "Base": TensorType, "dtypes": dtypes, "Device": Device, "training": training,
        "grad_enabled": grad_enabled, "floats": default_float, "ints": default_int, "device": device,
        "env_int": env_int, "checks": checks, "anomaly": anomaly,
    }  # fmt: skip
    terms = [
        "(Base._training if modes.training is None else modes.training) is training",
        "modes.grad_enabled is grad_enabled", "dtypes.default_float is floats",
        "dtypes.default_int is ints", "Device.DEFAULT == device",
        "env_int('CHECK', 0) == checks", "env_int('ANOMALY', 0) == anomaly",
    ]  # fmt: skip
    for n, group in enumerate(groups):
        if group.is_contents:
            names[f"c{n}"] = functools.partial(_has_same, group)
            terms.append(f"c{n}()")
            continue
        holder = group.holder()
        is_weak = group.holder.__class__ is weakref.ref
        names[f"h{n}"] = group.holder if is_weak else holder
        for i, (key, old) in enumerate(zip(group.keys, group.seen, strict=True)):
            names[f"v{n}_{i}"] = old
            names[f"k{n}_{i}"] = key
            access = {"attribute": f".{key}", "item": f"[k{n}_{i}]", "cell": ".cell_contents"}[group.kind]
            value = f"v{n}_{i}() is not None" if old.__class__ is weakref.ref else f"v{n}_{i}"
            terms.append(f"h{n}{'()' if is_weak else ''}{access} is {value}")
    check: Callable[[], bool] = eval(f"lambda: {' and '.join(terms)}", names)
    return check


def _has_same(group: _Group) -> bool:
    values, seen = group.read(group.holder()), group.seen
    return len(values) == len(seen) and all(
        v is old or (old.__class__ is weakref.ref and old() is v is not None)
        for v, old in zip(values, seen, strict=True)
    )


def modes_now() -> tuple[Any, ...]:
    """The modes that a capture depends on, besides values."""
    training = modes.training
    return (
        TensorType._training if training is None else training,
        modes.grad_enabled,
        dtypes.default_float,
        dtypes.default_int,
        Device.DEFAULT,
        env_int("CHECK", 0),
        env_int("ANOMALY", 0),
    )


def _is_equal(a: Any, b: Any) -> bool:
    """Whether plain values are one: by type, and floats by sign and NaN too."""
    if type(a) is not type(b) or not is_plain(a):
        return False
    return repr(a) == repr(b) if isinstance(a, (float, complex, tuple)) else bool(a == b)


def _make_reference(value: Any) -> Any:
    if is_plain(value):
        return value
    try:
        return weakref.ref(value)
    except TypeError:  # a list, a dict: cannot be referred to weakly
        return value


def _holder(holder: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(holder)
    except TypeError:
        return functools.partial(_same, holder)


def _same(value: Any) -> Any:
    return value


def _reader(kind: str, holder: Any, keys: list[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that reads all the values of one holder."""
    if kind == "cell":
        return _cell
    if kind == "contents":
        return _entries if isinstance(holder, dict) else tuple
    of_one = operator.attrgetter if kind == "attribute" else operator.itemgetter
    return of_one(*keys) if len(keys) > 1 else functools.partial(_read_one, of_one(*keys))


def _read_one(read: Callable[[Any], Any], holder: Any) -> tuple[Any]:
    return (read(holder),)


def _cell(cell: Any) -> tuple[Any]:
    return (cell.cell_contents,)


def _entries(mapping: Mapping[Any, Any]) -> tuple[Any, ...]:
    return (*mapping, *mapping.values())


def _text(value: Any) -> str:
    if isinstance(value, TensorBase):
        return f"a Tensor of shape {value.shape}"
    return repr(value) if is_plain(value) or value == _NOTHING else f"another {type(value).__name__}"
