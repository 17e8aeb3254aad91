"""Functions that the other side of a `Session` defines, as functions that Python can call."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from polygrad import TinyJit
from polygrad.errors import InternalError
from polygrad.tensor.core.trees import flatten_tensors

if TYPE_CHECKING:
    from polygrad.bridge import Session


class Function:
    """A function that the other side defines, as something that Python can call.

    Its arguments are Tensors, or lists, tuples and dicts of them. `$argument` gives the Tensors among them by
    number, in order. `body` is either a function of the other side, which runs in this thread and returns the
    result as text for `decode`; or all that the function does, recorded: (operations, that text). A recorded
    function keeps the entries that it uses, as a closure does: the other side may release them before Python
    calls it.
    """

    def __init__(self, session: Session, body: Any) -> None:
        self._session, self._run = session, body
        self._kept: dict[int, Any] = {}
        if not callable(body):
            operations, text = plain(body)
            table = session.table
            self._kept = {h: table[h] for h in _handles_in(operations, text) if h in table}
            self._run = functools.partial(self._play, operations, text)

    def _play(self, operations: Sequence[Sequence[Any]], text: str) -> str:
        self._session.play(operations)
        return text

    def __call__(self, *args: Any) -> Any:
        session = self._session
        outer, session.arguments = session.arguments, flatten_tensors(args, "function")
        released = {h: x for h, x in self._kept.items() if h not in session.table}
        session.table.update(released)
        try:
            return session.decode(self._run())
        finally:
            session.arguments = outer
            for h in released:
                session.table.pop(h, None)


def _handles_in(operations: Sequence[Sequence[Any]], text: str) -> list[int]:
    """The numbers of the entries that recorded operations, and the text of their result, refer to."""
    handles_found: list[int] = []
    for method, *args in operations:
        if method == "call":
            _, _, handles, _, *values = args
            handles_found += [value for i, value in enumerate(values) if handles >> i & 1]
        elif method == "call_packed":
            _, _, packed, _, bodies = args
            handles_found += _handles_in((), packed)
            for body in bodies:
                handles_found += _handles_in(*body)
    json.loads(text, object_hook=lambda x: handles_found.extend(n for kind, n in x.items() if kind == "$"))
    return handles_found


class CapturedFunction:
    """A TinyJit whose function comes with each call that runs it."""

    def __init__(self) -> None:
        self.function: Function | None = None
        self.jit = TinyJit(self._run)

    def _run(self, *args: Any) -> Any:
        if self.function is None:
            raise InternalError("bridge: a function that was to be captured came without its body")
        return self.function()

    def __call__(self, *args: Any) -> Any:
        try:
            return self.jit(*args)
        finally:
            self.function = None

    def reset(self) -> None:
        self.jit.reset()

    @property
    def captured(self) -> bool:
        return self.jit.captured


def plain(x: Any) -> Any:
    """A JavaScript array as Python's lists; anything else is itself."""
    return x.to_py() if hasattr(x, "to_py") else x
