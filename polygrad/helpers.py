"""Small things that every layer uses. Knows nothing of the rest of polygrad but its errors."""

from __future__ import annotations

import contextlib
import functools
import os
import stat
import sys
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Generic, TypeVar

from polygrad.environment import parse_integer
from polygrad.errors import ArgumentError

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class LRU(Generic[K, V]):
    """Values by key, up to `limit` bytes altogether: those least recently used go first.

    A value's bytes are what `put` is told; the newest stays, however large.
    """

    def __init__(self, limit: int) -> None:
        self.limit, self.nbytes = limit, 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value of `key`, used now; None where there is none."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, nbytes: int) -> None:
        """Keep `value`, and drop others while there is no room."""
        _, old = self._entries.pop(key, (None, 0))
        self._entries[key] = value, nbytes
        self.nbytes += nbytes - old
        while self.nbytes > self.limit and len(self._entries) > 1:
            _, (_, freed) = self._entries.popitem(last=False)
            self.nbytes -= freed

    def items(self) -> list[tuple[K, V]]:
        """Keys and values, least recently used first."""
        return [(key, value) for key, (value, _) in self._entries.items()]

    def clear(self) -> None:
        self._entries.clear()
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._entries)


# The variables of a parallel kernel, which whoever runs it gives: the number of the thread and how many there
# are; the number of the part of its work that a call does, and how many parts there are.
THREAD, THREADS, PART, PARTS = "thread", "threads", "part", "parts"
THREAD_VARIABLES = frozenset((THREAD, THREADS, PART, PARTS))
PARTS_PER_THREAD = 4


def prod(xs: Iterable[Any]) -> Any:
    """The product of `xs`; 1 when empty. Symbolic factors are allowed."""
    out: Any = 1
    for x in xs:
        out = out * x
    return out


def argsort(xs: Iterable[Any]) -> tuple[int, ...]:
    """The permutation that sorts `xs`; for a permutation, its inverse."""
    seq = list(xs)
    return tuple(sorted(range(len(seq)), key=seq.__getitem__))


def dedup(xs: Iterable[T]) -> list[T]:
    """`xs` without repeats, first occurrence kept."""
    return list(dict.fromkeys(xs))


def ceildiv(a: int, b: int) -> int:
    return -(-a // b)


def round_up(a: int, b: int) -> int:
    return -(-a // b) * b


def is_pow2(x: int) -> bool:
    return x > 0 and x & (x - 1) == 0


# os.environ encodes a name at every look-up, longer than most of what an eager operation does takes. The
# mapping beneath it, where Python has it, is asked with names that are encoded once.
_environment: Any = getattr(os.environ, "_data", os.environ)


class _Encoded(dict[str, Any]):
    """Names of variables as `_environment` has them."""

    def __missing__(self, name: str) -> Any:
        self[name] = key = name if _environment is os.environ else os.environ.encodekey(name)
        return key


_encoded = _Encoded()
_overrides: dict[str, int | str] = {}  # of Contexts


def env_int(name: str, default: int) -> int:
    """The environment variable `name` as an integer; `default` when unset or empty.

    Raises ArgumentError for what is no integer, or none that the variable takes.
    """
    if name in _overrides:
        return int(_overrides[name])
    if _encoded[name] not in _environment:
        return default
    text = os.environ.get(name, "")
    return parse_integer(name, text, default) if text else default


def env_text(name: str) -> str:
    """The environment variable `name`; empty when unset."""
    if name in _overrides:
        return str(_overrides[name])
    return os.environ.get(name, "") if _encoded[name] in _environment else ""


def getenv(name: str, default: Any = 0) -> Any:
    """The environment variable `name` in the type of `default`, which is what it is when unset or empty.

    Raises ArgumentError for a value that is not of that type.
    """
    if name in _overrides:
        return type(default)(_overrides[name])
    text = os.environ.get(name, "")
    if text and type(default) is int:
        return parse_integer(name, text, default)
    try:
        return type(default)(text) if text else default
    except (TypeError, ValueError):
        kind = type(default).__name__
        raise ArgumentError(
            f"environment variable {name}: expected a {kind}, got {text!r}: unset it for {default}"
        ) from None


class Context(contextlib.ContextDecorator):
    """`with Context(DEBUG=2):` these variables have other values than in the environment, for the process.

    DEBUG: what is printed, see `debug_level`; NOOPT=1: kernels are not optimised; BEAM=n: a search
    for better ones; SPEC=1: graphs are verified after every pass; CHECK=1: indices, class labels and matrices
    are checked on every device; ANOMALY=1: results and gradients are looked at for NaN. KERNEL_OPTS and
    SKIP_PASSES are texts: what is done to the kernels of a graph, and which passes are left out. Raises
    ArgumentError for others.
    """

    NAMES = ("DEBUG", "NOOPT", "BEAM", "SPEC", "CHECK", "ANOMALY")
    TEXTS = ("KERNEL_OPTS", "SKIP_PASSES")
    listeners: ClassVar[list[Callable[[], None]]] = []  # called when a Context has begun or ended

    def __init__(self, **values: int | str) -> None:
        for name, value in values.items():
            if name in self.TEXTS and isinstance(value, str):
                continue
            if name not in self.NAMES or not isinstance(value, int):
                raise ArgumentError(
                    f"Context: expected an int for one of {', '.join(self.NAMES)}, or a text for "
                    f"{' or '.join(self.TEXTS)}, got {name}={value!r}"
                )
        self.values = values
        self._before: list[dict[str, int | str]] = []

    def __enter__(self) -> None:
        self._before.append(dict(_overrides))
        _overrides.update(self.values)
        self._tell()

    def __exit__(self, *_: object) -> None:
        before = self._before.pop()
        _overrides.clear()
        _overrides.update(before)
        self._tell()

    def _tell(self) -> None:
        for listener in self.listeners:
            listener()


def set_all(objects: Iterable[object], names: Iterable[str], values: Iterable[Any]) -> None:
    """Set one attribute of each object: all of them, or none where a signal's handler raises. Where they are
    slots or plain attributes, nothing of Python runs in between."""
    deque(map(setattr, objects, names, values), maxlen=0)


def write_file(path: str | os.PathLike[str], parts: Iterable[bytes | memoryview], sync: bool = False) -> None:
    """Write a file so that there is the old one or the new one at any time, whole. `sync`: it is on the disk
    afterwards, also if the power fails. What is no plain file, a pipe say, is written as it is. Raises
    OSError."""
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:
            file.writelines(parts)
        return
    temporary = f"{target}.{os.urandom(6).hex()}"
    try:
        with open(temporary, "xb") as file:
            file.writelines(parts)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        if os.path.exists(target):
            os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(temporary, target)
    except OSError as e:
        if e.filename == temporary:
            e.filename = os.fspath(path)
        raise
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(temporary)
    if sync and os.name == "posix" and sys.platform != "emscripten":  # elsewhere a folder is no file
        folder = os.open(os.path.dirname(target), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def debug_level() -> int:
    """`DEBUG=n`: what is printed on standard error, see `environment.DEBUG_LEVELS`."""
    return env_int("DEBUG", 0)


_BETWEEN = frozenset({"polygrad", "contextlib", "functools"})  # these two call what polygrad decorates


@functools.cache
def _is_between(module: object) -> bool:
    return str(module).partition(".")[0] in _BETWEEN


def caller() -> tuple[str, int] | None:
    """The file and line of the innermost call that is not polygrad's own; None where there is none."""
    frame = sys._getframe(1)
    while frame is not None and _is_between(frame.f_globals.get("__name__")):
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else (frame.f_code.co_filename, frame.f_lineno)
