"""The Python values that a function reads besides its arguments, found in its bytecode without running it.

Chains of names start at closure variables, globals and arguments. They go through attributes, items with a
constant key, local names and elements of lists, and into the functions and methods of the user's code that
they reach. Of objects that are reached only as a whole (an element of a list, an argument of a call), the
attributes count whose names occur in the code. `getattr` with a computed name and `globals()` are not
followed.
"""

from __future__ import annotations

import builtins
import dis
import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from polygrad.dtype import DType
from polygrad.tensor.core.base import TensorBase

PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})

_MAX_FUNCTIONS = 512  # that are searched
_MAX_ELEMENTS = 1024  # of a container
_LIBRARIES = sys.stdlib_module_names | {"polygrad", "numpy", "torch", "tinygrad"}
_READERS = frozenset({"copy", "count", "get", "index", "items", "keys", "values"})  # methods of containers
_SILENT = frozenset({"CACHE", "COPY", "EXTENDED_ARG", "NOP", "NOT_TAKEN", "PRECALL", "PUSH_NULL", "RESUME"})
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Read:
    """A value that is read: attribute or item `key` of `holder`, the contents of a cell, or all elements of a
    container. `label`: the expression in the user's code."""

    kind: str  # "attribute", "item", "cell" or "contents"
    holder: Any
    key: Any
    label: str


@dataclass(frozen=True, slots=True)
class _Reached:
    """A value, and the expression that gives it in the code."""

    value: Any
    label: str


def reads_of(functions: list[tuple[Callable[..., Any], Mapping[str, Any]]]) -> list[Read]:
    """The values that functions read, each called with arguments by name."""
    walk = _Walk()
    for function, arguments in functions:
        walk.function(function, arguments)
    return walk.finish()


class _Walk:
    """The functions searched so far, and the values that they read."""

    def __init__(self) -> None:
        self._reads: dict[tuple[str, int, Any], Read] = {}
        self._written: set[tuple[int, str]] = set()  # attributes that are assigned to before they are read
        self._seen: set[tuple[int, int]] = set()
        self._reached: dict[int, _Reached] = {}
        self._names: set[str] = set()

    def finish(self) -> list[Read]:
        """All reads, with the attributes of objects that were reached as a whole."""
        for reached in self._reached.values():
            for name in self._names & _attributes(reached.value).keys():
                if is_plain(_attributes(reached.value)[name]):
                    self._read("attribute", reached.value, name, f"{reached.label}.{name}")
        return list(self._reads.values())

    def function(self, function: Any, arguments: Mapping[str, Any], owner: Any = _ABSENT) -> None:
        """Search a function, which is called with these arguments."""
        if isinstance(function, functools.partial):
            names = _parameters(function.func)
            partial_arguments = {**dict(zip(names, function.args, strict=False)), **function.keywords}
            self.function(function.func, {**partial_arguments, **arguments})
            return
        if isinstance(function, types.MethodType):
            self.function(function.__func__, arguments, function.__self__)
            return
        if not isinstance(function, types.FunctionType):
            self._reach(_Reached(function, type(function).__name__), arguments)
            return
        wrapped = function.__dict__.get("__wrapped__")
        if wrapped is not None and wrapped is not function:
            self.function(wrapped, arguments, owner)
        root, _, submodule = (function.__module__ or "").partition(".")
        if root in _LIBRARIES and (root, submodule.partition(".")[0]) != ("polygrad", "nn"):
            return
        key = (id(function.__code__), id(owner))
        if key in self._seen or len(self._seen) >= _MAX_FUNCTIONS:
            return
        self._seen.add(key)
        code = function.__code__
        local = {name: [_Reached(value, name)] for name, value in arguments.items()}
        if owner is not _ABSENT and code.co_argcount:
            local[code.co_varnames[0]] = [_Reached(owner, code.co_varnames[0])]
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        globals_ = {} if root == "polygrad" else function.__globals__
        self._code(code, globals_, cells, local)

    def _code(
        self,
        code: types.CodeType,
        names: dict[str, Any],
        cells: Mapping[str, types.CellType],
        local: dict[str, list[_Reached]],
    ) -> None:
        chain: list[_Reached] = []
        constant: Any = _ABSENT
        nested = []
        instructions = [i for i in dis.get_instructions(code) if i.opname not in _SILENT]
        for at, instruction in enumerate(instructions):
            op, name = instruction.opname, instruction.argval
            following = instructions[at + 1] if at + 1 < len(instructions) else instruction
            ended, ending_constant = chain, constant
            chain, constant = [], _ABSENT
            if op.startswith(("LOAD_FAST", "STORE_FAST")):
                stored, loaded = _fast(op, name)
                if stored is not None and ended:
                    local[stored] = [*local.get(stored, ()), *ended][:_MAX_ELEMENTS]
                chain = local.get(loaded, []) if loaded is not None else []
            elif op in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"):
                chain = self._cell(name, cells, local)
            elif op in ("LOAD_GLOBAL", "LOAD_NAME"):
                chain = self._global(name, names)
            elif op in ("LOAD_ATTR", "LOAD_METHOD"):
                self._names.add(name)
                chain = [x for reached in ended for x in self._attribute(reached, name)]
                ended = []
            elif op in ("LOAD_CONST", "LOAD_SMALL_INT"):
                if isinstance(name, types.CodeType):
                    nested.append(name)
                elif ended and _is_subscript(following):
                    chain, constant = ended, name
                    continue
            elif _is_subscript(instruction):
                if ending_constant is not _ABSENT:
                    chain = [x for reached in ended for x in self._item(reached, ending_constant)]
                    ended = []
            elif op == "GET_ITER":
                chain = [x for reached in ended for x in _elements(reached)]
                for reached in ended:
                    self._contents(reached)
                ended = []
            elif op == "FOR_ITER":
                chain, ended = ended, []
            elif op == "STORE_ATTR":
                self._written.update((id(reached.value), name) for reached in ended)
                ended = []
            is_stored = following.opname.startswith("STORE_FAST") or op.startswith("STORE_FAST")
            for reached in ended:
                if not is_stored:
                    self._contents(reached)
                self._reach(reached)
        for inner in nested:
            self._code(inner, names, cells, dict(local))

    # --- links of a chain

    def _cell(
        self, name: str, cells: Mapping[str, types.CellType], local: dict[str, list[_Reached]]
    ) -> list[_Reached]:
        if name not in cells:
            return local.get(name, [])  # of an enclosing function, which is searched, too
        try:
            value = cells[name].cell_contents
        except ValueError:  # not yet assigned
            return []
        self._read("cell", cells[name], None, name)
        return [_Reached(value, name)]

    def _global(self, name: str, names: dict[str, Any]) -> list[_Reached]:
        if name not in names:
            return []
        value = names[name]
        if not isinstance(value, (types.ModuleType, type, types.BuiltinFunctionType)):
            self._read("item", names, name, name)
        return [_Reached(value, name)]

    def _attribute(self, reached: _Reached, name: str) -> Iterator[_Reached]:
        holder, label = reached.value, f"{reached.label}.{name}"
        if isinstance(holder, (dict, list, tuple, set)):
            if name in _READERS:
                self._contents(reached)
            return
        if is_plain(holder) or isinstance(holder, (TensorBase, types.FunctionType, types.MethodType)):
            return
        if isinstance(holder, (types.ModuleType, type)):
            module = holder.__name__ if isinstance(holder, types.ModuleType) else holder.__module__
            if module.partition(".")[0] in _LIBRARIES or module == builtins.__name__:
                return
        attributes = _attributes(holder)
        value = attributes.get(name, _ABSENT)
        if value is _ABSENT:
            value = inspect.getattr_static(holder, name, _ABSENT)
            if isinstance(value, property) and value.fget is not None:
                self.function(value.fget, {}, holder)
                return
            if isinstance(value, functools.cached_property):
                self.function(value.func, {}, holder)
                return
            if isinstance(value, (types.FunctionType, staticmethod, classmethod)) or hasattr(
                value, "__wrapped__"
            ):  # a method
                inner = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
                bound = _ABSENT if isinstance(value, staticmethod) else holder
                self.function(getattr(inner, "__wrapped__", inner), {}, bound)
                return
            if isinstance(value, types.MemberDescriptorType):
                value = getattr(holder, name, _ABSENT)
        is_descriptor = hasattr(type(value), "__get__") and not isinstance(value, types.FunctionType)
        if value is _ABSENT or is_descriptor:
            return
        if (id(holder), name) not in self._written:
            self._read("attribute", holder, name, label)
        yield _Reached(value, label)

    def _item(self, reached: _Reached, key: Any) -> Iterator[_Reached]:
        holder = reached.value
        if not isinstance(holder, (dict, list, tuple)):
            return
        try:
            value = holder[key]
        except (KeyError, IndexError, TypeError):
            return
        label = f"{reached.label}[{key!r}]"
        if isinstance(key, slice):
            self._contents(reached)
        elif not isinstance(holder, tuple):
            self._read("item", holder, key, label)
        yield _Reached(value, label)

    def _contents(self, reached: _Reached) -> None:
        if isinstance(reached.value, (dict, list, set)) and len(reached.value) <= _MAX_ELEMENTS:
            self._read("contents", reached.value, None, reached.label)

    def _read(self, kind: str, holder: Any, key: Any, label: str) -> None:
        self._reads.setdefault((kind, id(holder), _hashable(key)), Read(kind, holder, key, label))

    def _reach(self, reached: _Reached, arguments: Mapping[str, Any] | None = None) -> None:
        """Search the code that a call of an object runs, and keep the object for `finish`."""
        value = reached.value
        if is_plain(value) or isinstance(value, (TensorBase, type, types.ModuleType)):
            return
        if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
            self.function(value, arguments or {})
            return
        if id(value) in self._reached:
            return
        self._reached[id(value)] = reached
        if isinstance(value, (dict, list, tuple, set)):
            for element in _elements(reached):
                self._reach(element)
            return
        wrapped = _attributes(value).get("__wrapped__")
        if wrapped is not None:
            self.function(wrapped, arguments or {})
        call = inspect.getattr_static(type(value), "__call__", None)
        if isinstance(call, types.FunctionType):
            self.function(call, arguments or {}, value)


def is_plain(value: Any) -> bool:
    """Whether a value is a number, text, a dtype, or a tuple of these."""
    if type(value) is tuple:
        return all(is_plain(v) for v in value)
    return type(value) in PLAIN or isinstance(value, (DType, slice, range))


def _attributes(value: Any) -> dict[str, Any]:
    attributes = getattr(value, "__dict__", None)
    return attributes if type(attributes) is dict else {}


def _elements(reached: _Reached) -> Iterator[_Reached]:
    value = reached.value
    if isinstance(value, (dict, list, tuple, set)) and len(value) <= _MAX_ELEMENTS:
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, element in pairs:
            if not is_plain(element):
                yield _Reached(element, f"{reached.label}[{key!r}]")


def _fast(op: str, name: Any) -> tuple[str | None, str | None]:
    """The local name that an instruction stores, and the name whose value is on top of the stack after it."""
    names = name if isinstance(name, tuple) else (name,)
    if op.startswith("STORE_FAST"):
        return names[0], names[1] if op.startswith("STORE_FAST_LOAD") else None
    return None, names[-1]


def _is_subscript(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_SUBSCR" or (
        instruction.opname == "BINARY_OP" and instruction.argrepr == "[]"
    )


def _hashable(key: Any) -> Any:
    return (key.start, key.stop, key.step) if isinstance(key, slice) else key


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # built in
        return []
