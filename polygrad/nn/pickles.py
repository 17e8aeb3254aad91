"""A safe unpickler: it makes plain data, and calls only the functions that the caller provides.

A pickle is a program for a stack machine (Python's `pickletools` lists its operations). Python's unpickler
imports and calls any function. This one has only the operations that make data; a global must be in the
caller's table. It makes no cycles, and nothing that is nested deeper than `_MAX_DEPTH`, because freeing
deeply nested objects overflows a small C stack. Knows no Tensors.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from polygrad.errors import ArgumentError

_MAX_DEPTH = 100
_MARK = object()


class Pickle:
    """One pickle: `load` returns its object, and `end` the position of its end.

    globals: by `module.name`, a value or a function; all other names are refused. persistent: maps a
    persistent id to its object. Errors are ArgumentErrors that begin with `what`.
    """

    def __init__(
        self,
        data: bytes | memoryview,
        globals_: Mapping[str, Any],
        persistent: Callable[[Any], Any],
        what: str,
        start: int = 0,
    ) -> None:
        self._data, self._at, self._what = memoryview(data).cast("B"), start, what
        self._globals, self._persistent = globals_, persistent
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        # By identity, the depth of each container, and the containers that are parts of others. `_made` keeps
        # all of them alive.
        self._depths: dict[int, int] = {}
        self._placed: set[int] = set()
        self._made: list[Any] = []

    @property
    def end(self) -> int:
        """The position of its end."""
        return self._at

    def load(self) -> Any:
        """The object. Raises ArgumentError."""
        while True:
            code = self._take(1)[0]
            if code == 0x2E:  # STOP
                out = self._pop()
                if self._stack:
                    self._refuse(f"it ends with {len(self._stack)} more objects on the stack")
                return out
            operation = _OPERATIONS.get(code)
            if operation is None:
                return self._refuse(f"operation {code:#04x} is not one of plain data")
            operation(self)

    def _refuse(self, problem: str) -> Any:
        raise ArgumentError(f"{self._what}: byte {self._at} of a pickle: {problem}")

    # --- bytes

    def _take(self, n: int) -> memoryview:
        if n < 0 or self._at + n > len(self._data):
            self._refuse(f"of {n} bytes, {len(self._data) - self._at} are there")
        out = self._data[self._at : self._at + n]
        self._at += n
        return out

    def _int(self, n: int, signed: bool = False) -> int:
        return int.from_bytes(self._take(n), "little", signed=signed)

    def _long(self, n: int) -> int:
        if n > 1024:  # converting a longer one takes quadratic time
            self._refuse(f"an integer has {n} bytes, more than 1024")
        return self._int(n, True)

    def _line(self) -> str:
        line_bytes = bytes(self._data[self._at : self._at + 4096])
        length = line_bytes.find(b"\n")
        if length < 0:
            self._refuse("a line does not end")
        return self._text(self._take(length + 1)[:-1])

    def _text(self, raw: memoryview) -> str:
        try:
            return str(raw, "utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return str(self._refuse(f"the text {bytes(raw[:40])!r} is not UTF-8"))

    # --- the stack

    def _push(self, x: Any) -> None:
        self._stack.append(x)

    def _pop(self) -> Any:
        if not self._stack or self._stack[-1] is _MARK:
            self._refuse("the stack is empty")
        return self._stack.pop()

    def _top(self, kind: type | tuple[type, ...]) -> Any:
        x = self._stack[-1] if self._stack else _MARK
        if not isinstance(x, kind):
            self._refuse(f"the object on the stack is not a container, but of type {type(x).__name__}")
        return x

    def _pop_mark(self) -> list[Any]:
        for i in range(len(self._stack) - 1, -1, -1):
            if self._stack[i] is _MARK:
                out = self._stack[i + 1 :]
                del self._stack[i:]
                return out
        return list(self._refuse("the stack has no mark"))

    # --- containers

    def _container(self, x: Any, parts: list[Any]) -> None:
        """Push a new container that holds `parts`."""
        self._made.append(x)
        self._depths[id(x)] = 1
        self._hold(x, parts)
        self._push(x)

    def _hold(self, x: Any, parts: list[Any]) -> None:
        """Record that `x` holds `parts`. A container that is part of another may not grow, so there are no
        cycles."""
        if id(x) in self._placed and parts:
            self._refuse("a container that is part of another grows")
        depth = self._depths.get(id(x), 1)
        for part in parts:
            if id(part) in self._depths:
                if part is x:
                    self._refuse("a container holds itself")
                self._placed.add(id(part))
                depth = max(depth, self._depths[id(part)] + 1)
        if depth > _MAX_DEPTH:
            self._refuse(f"more than {_MAX_DEPTH} containers are inside of each other")
        self._depths[id(x)] = depth

    def _append(self, items: list[Any]) -> None:
        x = self._top((list, set))
        self._hold(x, items)
        if isinstance(x, list):
            x.extend(items)
        else:
            x.update(map(self._key, items))

    def _set_items(self, items: list[Any]) -> None:
        x = self._top(dict)
        if len(items) % 2:
            self._refuse("a key has no value")
        self._hold(x, items)
        for key, value in zip(items[::2], items[1::2], strict=True):
            x[self._key(key)] = value

    def _key(self, key: Any) -> Any:
        """`key` of a dict, or element of a set: a scalar, or a tuple of them."""
        parts = key if isinstance(key, tuple) else (key,)
        if not all(x is None or isinstance(x, (str, bytes, int, float)) for x in parts):
            self._refuse(f"a key of type {type(key).__name__} is not text, a number, or a tuple of them")
        return key

    # --- globals

    def _find(self, name: str) -> None:
        if name not in self._globals:
            raise ArgumentError(
                f"{self._what}: the file calls {name[:200]!r}, and only what is known to be harmless is "
                "called: save a state dict"
            )
        self._push(self._globals[name])

    def _reduce(self) -> None:
        args, function = self._pop(), self._pop()
        if not callable(function) or not isinstance(args, tuple):
            kinds = type(function).__name__, type(args).__name__
            self._refuse("an object of type {} is called with one of type {}".format(*kinds))
        try:
            out = function(*args)
        except ArgumentError:
            raise
        except (TypeError, ValueError, KeyError, AttributeError) as e:
            self._refuse(f"arguments do not fit: {str(e)[:200]}")
        if isinstance(out, (list, dict, tuple, set)) and id(out) not in self._depths:
            self._container(out, [*out, *out.values()] if isinstance(out, dict) else list(out))
        else:
            self._push(out)

    def _store_in_memo(self, i: int) -> None:
        if not self._stack:
            self._refuse("there is no object to remember")
        self._memo[i] = self._stack[-1]

    def _get(self, i: int) -> None:
        if i not in self._memo or self._memo[i] is _MARK:
            self._refuse(f"no object was remembered as number {i}")
        self._push(self._memo[i])

    def _number(self, text: str, kind: type) -> Any:
        try:
            return kind(text) if len(text) < 1000 else self._refuse(f"{text[:20]!r} is not a number")
        except ValueError:
            return self._refuse(f"{text[:40]!r} is not a number")

    def _build(self) -> None:
        """Ignore the state of an object: attributes of an OrderedDict, as `_metadata`, are not data."""
        self._pop()
        self._push(self._pop())

    def _tuple(self, parts: list[Any]) -> None:
        self._container(tuple(parts), parts)

    def _dict(self, items: list[Any]) -> None:
        self._container({}, [])
        self._set_items(items)

    def _int_line(self) -> Any:
        text = self._line()
        return {"00": False, "01": True}[text] if text in ("00", "01") else self._number(text, int)


def _several(n: int) -> Callable[[Pickle], None]:
    return lambda p: p._tuple([p._pop() for _ in range(n)][::-1])


def _stack_global(p: Pickle) -> None:
    name, module = p._pop(), p._pop()
    p._find(f"{module}.{name}")


def _global(p: Pickle) -> None:
    module = p._line()
    p._find(f"{module}.{p._line()}")


def _float(p: Pickle) -> None:
    p._push(struct.unpack(">d", p._take(8))[0])


def _quoted(p: Pickle) -> None:
    """A string of Python 2, as its `repr` wrote it."""
    line = p._line()
    if len(line) < 2 or line[0] != line[-1] or line[0] not in "'\"" or "\\" in line:
        p._refuse(f"{line[:40]!r} is not a quoted string without escapes")
    p._push(line[1:-1])


# The operations by code. Names are those of `pickletools`.
_OPERATIONS: dict[int, Callable[[Pickle], Any]] = {
    0x80: lambda p: p._take(1),  # PROTO
    0x95: lambda p: p._take(8),  # FRAME
    ord("("): lambda p: p._push(_MARK),  # MARK
    ord("0"): lambda p: p._pop(),  # POP
    ord("1"): lambda p: p._pop_mark(),  # POP_MARK
    ord("N"): lambda p: p._push(None),  # NONE
    0x88: lambda p: p._push(True),  # NEWTRUE
    0x89: lambda p: p._push(False),  # NEWFALSE
    ord("J"): lambda p: p._push(p._int(4, True)),  # BININT
    ord("K"): lambda p: p._push(p._int(1)),  # BININT1
    ord("M"): lambda p: p._push(p._int(2)),  # BININT2
    0x8A: lambda p: p._push(p._long(p._int(1))),  # LONG1
    0x8B: lambda p: p._push(p._long(p._int(4, True))),  # LONG4
    ord("I"): lambda p: p._push(p._int_line()),  # INT
    ord("L"): lambda p: p._push(p._number(p._line().rstrip("L"), int)),  # LONG
    ord("F"): lambda p: p._push(p._number(p._line(), float)),  # FLOAT
    ord("G"): _float,  # BINFLOAT
    ord("S"): _quoted,  # STRING
    ord("U"): lambda p: p._push(p._text(p._take(p._int(1)))),  # SHORT_BINSTRING
    ord("T"): lambda p: p._push(p._text(p._take(p._int(4, True)))),  # BINSTRING
    ord("V"): lambda p: p._push(p._line()),  # UNICODE
    0x8C: lambda p: p._push(p._text(p._take(p._int(1)))),  # SHORT_BINUNICODE
    ord("X"): lambda p: p._push(p._text(p._take(p._int(4)))),  # BINUNICODE
    0x8D: lambda p: p._push(p._text(p._take(p._int(8)))),  # BINUNICODE8
    ord("C"): lambda p: p._push(bytes(p._take(p._int(1)))),  # SHORT_BINBYTES
    ord("B"): lambda p: p._push(bytes(p._take(p._int(4)))),  # BINBYTES
    0x8E: lambda p: p._push(bytes(p._take(p._int(8)))),  # BINBYTES8
    ord(")"): lambda p: p._tuple([]),  # EMPTY_TUPLE
    0x85: _several(1),  # TUPLE1
    0x86: _several(2),  # TUPLE2
    0x87: _several(3),  # TUPLE3
    ord("t"): lambda p: p._tuple(p._pop_mark()),  # TUPLE
    ord("]"): lambda p: p._container([], []),  # EMPTY_LIST
    ord("l"): lambda p: (lambda parts: p._container(list(parts), parts))(p._pop_mark()),  # LIST
    ord("a"): lambda p: p._append([p._pop()]),  # APPEND
    ord("e"): lambda p: p._append(p._pop_mark()),  # APPENDS
    ord("}"): lambda p: p._container({}, []),  # EMPTY_DICT
    ord("d"): lambda p: p._dict(p._pop_mark()),  # DICT
    ord("s"): lambda p: p._set_items([p._pop(), p._pop()][::-1]),  # SETITEM
    ord("u"): lambda p: p._set_items(p._pop_mark()),  # SETITEMS
    0x8F: lambda p: p._container(set(), []),  # EMPTY_SET
    0x90: lambda p: p._append(p._pop_mark()),  # ADDITEMS
    ord("c"): _global,  # GLOBAL
    0x93: _stack_global,  # STACK_GLOBAL
    ord("R"): lambda p: p._reduce(),  # REDUCE
    0x81: lambda p: p._reduce(),  # NEWOBJ
    ord("b"): lambda p: p._build(),  # BUILD
    ord("Q"): lambda p: p._push(p._persistent(p._pop())),  # BINPERSID
    ord("p"): lambda p: p._store_in_memo(p._number(p._line(), int)),  # PUT
    ord("q"): lambda p: p._store_in_memo(p._int(1)),  # BINPUT
    ord("r"): lambda p: p._store_in_memo(p._int(4)),  # LONG_BINPUT
    0x94: lambda p: p._store_in_memo(len(p._memo)),  # MEMOIZE
    ord("g"): lambda p: p._get(p._number(p._line(), int)),  # GET
    ord("h"): lambda p: p._get(p._int(1)),  # BINGET
    ord("j"): lambda p: p._get(p._int(4)),  # LONG_BINGET
}
