"""Chat templates by the package `jinja2`, for CPython: in its sandbox, with limits of time and memory.

A template is a program in an untrusted file. The sandbox blocks access to Python's internals, and there is no
loader, so it reads no files. This module adds limits: loops and macros count their iterations, every value is
measured, and operations with too large results are refused before they run. Templates get the environment of
`transformers`: `tojson` without HTML escapes, `raise_exception`, `strftime_now`, the `generation` tag.
"""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace

from polygrad.errors import ModelError

_SECONDS = 10.0
_ROUNDS = 500_000  # of loops, and calls
_LARGEST = 8_000_000  # characters of one value
_ELEMENT = 16  # the cost of an element besides its characters
_ALL = 64_000_000  # of all values together
_INTEGER = 100_000  # the largest integer argument of methods and filters
_BITS = 100_000  # of an integer
_WIDE = re.compile(r"\d{5}|[*]|\{[^{}]*\{")  # widths in formats


class _ExceededError(Exception):
    """A template exceeded its limits."""


class _Budget:
    """The remaining budget of one rendering."""

    def __init__(self) -> None:
        self.rounds, self.size = _ROUNDS, _ALL
        self.deadline = time.monotonic() + _SECONDS

    def tick(self) -> None:
        self.rounds -= 1
        if self.rounds < 0:
            raise _ExceededError(f"more than {_ROUNDS} rounds of loops and calls")
        if time.monotonic() > self.deadline:
            raise _ExceededError(f"more than {_SECONDS:.0f} seconds")

    def measure(self, value: Any) -> Any:
        """`value`, if it fits the budget."""
        self.tick()
        size = _size(value)
        self.size -= size
        if size > _LARGEST or self.size < 0:
            raise _ExceededError(
                f"values of more than {_LARGEST if size > _LARGEST else _ALL} characters and elements"
            )
        return value


_budget: ContextVar[_Budget] = ContextVar("polygrad_template_budget")


def _size(value: Any) -> int:
    """The number of characters of a value as written out; counting ends at the limit."""
    size, stack = 0, [value]
    while stack and size <= _LARGEST:
        x = stack.pop()
        if isinstance(x, str):
            size += 1 + len(x)
        elif isinstance(x, int):
            size += 1 + x.bit_length() // 8
        elif isinstance(x, range):
            size += len(x)
        elif isinstance(x, Mapping):
            size += _ELEMENT * (1 + 2 * len(x))
            if size <= _LARGEST:
                stack += [*x.keys(), *x.values()]
        elif isinstance(x, (list, tuple, set, frozenset)):
            size += _ELEMENT * (1 + len(x))
            if size <= _LARGEST:
                stack += x
        else:
            size += 1
    return size


def _check_work(name: str, value: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
    """Raises _ExceededError for a method or filter `name` of `value` whose result could be far larger than
    its arguments.
    """
    values = [*args, *keywords.values()]
    if any(isinstance(x, int) and abs(x) > _INTEGER for x in values):
        raise _ExceededError(f"{name} of a number above {_INTEGER}")
    if name == "format" and isinstance(value, str) and _WIDE.search(value):
        raise _ExceededError("a format with a width of five digits or of an argument")
    longest = max([4, *(len(x) for x in values if isinstance(x, str))])
    if name == "join":
        # Of a method the separator is the text, of a filter the argument.
        lengths = [len(x) for x in values if isinstance(x, (list, tuple, range))]
        size = len(value) * max(lengths, default=0) if isinstance(value, str) else _size(value) * longest
    elif name == "replace" and isinstance(value, str) and values and isinstance(values[0], str):
        size = value.count(values[0]) * longest
    elif name in ("indent", "expandtabs") and isinstance(value, str):
        widest = max([longest, 8, *(abs(x) for x in values if isinstance(x, int))])
        size = (value.count("\n" if name == "indent" else "\t") + 1) * widest
    else:
        return
    if size > 4 * _LARGEST:
        raise _ExceededError(f"{name} that could make {size} characters")


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, which measures every value."""

    intercepted_binops = frozenset({"+", "*", "**", "%", "-", "//", "/"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "*" and (counts := [x for x in (left, right) if isinstance(x, int)]):
            size = _size(right if left is counts[0] else left)
            if len(counts) == 2:
                if left.bit_length() + right.bit_length() > _BITS:
                    raise _ExceededError(f"an integer of more than {_BITS} bits")
            elif size * max(counts[0], 0) > _LARGEST:
                raise _ExceededError(f"a repetition of {size} elements {counts[0]} times")
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            if right > _BITS or left.bit_length() * max(right, 1) > _BITS:
                raise _ExceededError(f"an integer of more than {_BITS} bits")
        if operator == "%" and isinstance(left, str) and _WIDE.search(left):
            raise _ExceededError("a format with a width of five digits or of an argument")
        return _budget.get().measure(super().call_binop(context, operator, left, right))

    def call(self, context: Any, function: Any, *args: Any, **keywords: Any) -> Any:
        if function in (_tick, _measure, _join):
            return function(*args)
        receiver = getattr(function, "__self__", None)
        name = getattr(function, "__name__", "")
        if name != "range":  # the sandbox bounds range itself
            _check_work(name, receiver if receiver is not None else "", args, keywords)
        _budget.get().tick()
        return _budget.get().measure(super().call(context, function, *args, **keywords))

    # Nodes that `_bound_template` adds call these.
    @property
    def polygrad_tick(self) -> Callable[[], str]:
        return _tick

    @property
    def polygrad_measure(self) -> Callable[[Any], Any]:
        return _measure

    @property
    def polygrad_join(self) -> Callable[..., str]:
        return _join


def _tick() -> str:
    _budget.get().tick()
    return ""


def _measure(value: Any) -> Any:
    return _budget.get().measure(value)


def _join(*parts: Any) -> str:
    texts = [str(_measure(part)) for part in parts]
    if sum(map(len, texts)) > _LARGEST:
        raise _ExceededError(f"text of more than {_LARGEST} characters")
    return str(_measure("".join(texts)))


def _finalize(value: Any) -> Any:
    """The value of an expression between `{{` and `}}`."""
    return _measure(value)


def _bound_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        _check_work(name, args[first] if len(args) > first else "", args[first + 1 :], keywords)
        return _measure(function(*args, **keywords))

    return call


class _Generation(Extension):
    """`{% generation %}` marks the text of the model; its text is that of its body."""

    tags = {"generation"}

    def parse(self, parser: Any) -> Any:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_error_text"), [], [], body).set_lineno(line)

    def _error_text(self, caller: Callable[[], str]) -> str:
        return caller()


class _Namespace(Namespace):
    """A namespace without Python's attributes, which is written without its contents."""

    def __init__(*args: Any, **keywords: Any) -> None:
        self, attributes = args[0], dict(*args[1:], **keywords)
        for name in attributes:
            _check_name(name)
        Namespace.__init__(self, attributes)

    def __setitem__(self, name: str, value: Any) -> None:
        _check_name(name)
        super().__setitem__(name, value)

    def __repr__(self) -> str:
        return "<Namespace>"


def _check_name(name: Any) -> None:
    if isinstance(name, str) and name.startswith("_"):
        raise jinja2.exceptions.SecurityError(f"a namespace with an attribute {name[:80]!r}")


def _make_dict(*args: Any, **keywords: Any) -> dict[Any, Any]:
    return dict(*args, **keywords)


def _raise_exception(message: Any) -> None:
    raise jinja2.exceptions.TemplateError(str(message))


def _tojson(
    x: Any, ensure_ascii: bool = False, indent: Any = None, separators: Any = None, sort_keys: bool = False
) -> str:
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _strftime_now(format: str) -> str:
    if re.search(r"%[^a-zA-Z]*\d{3}", format) or len(format) > 1000:
        raise _ExceededError("a date wider than 99 characters")
    return datetime.now().strftime(format)


def _bound_template(tree: nodes.Template, environment: jinja2.Environment) -> nodes.Template:
    """The template with rounds that are counted and values that are measured."""

    def call(name: str, args: list[nodes.Expr], like: nodes.Node) -> nodes.Call:
        function = nodes.EnvironmentAttribute(f"polygrad_{name}")
        call_node = nodes.Call(function, args, [], None, None)
        call_node.set_lineno(like.lineno)
        return call_node

    def replaced(node: nodes.Node, assigned: bool) -> nodes.Node:
        for field, value in node.iter_fields():
            is_target = assigned or field == "target"
            if isinstance(value, list):
                value[:] = [replaced(x, is_target) if isinstance(x, nodes.Node) else x for x in value]
            elif isinstance(value, nodes.Node):
                setattr(node, field, replaced(value, is_target))
        if isinstance(node, (nodes.For, nodes.Macro, nodes.CallBlock)):
            node.body.insert(0, nodes.ExprStmt(call("tick", [], node)).set_lineno(node.lineno))
        if isinstance(node, nodes.Concat):
            return call("join", node.nodes, node)
        if isinstance(node, (nodes.List, nodes.Tuple, nodes.Dict)) and not assigned:
            return call("measure", [node], node)
        return node

    replaced(tree, False)
    tree.set_environment(environment)
    return tree


@functools.lru_cache(maxsize=32)
def _compile(source: str) -> jinja2.Template:
    environment = _Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[_Generation, loopcontrols],
        finalize=_finalize,
        optimized=False,  # no constant folding: nothing runs at compile time
        loader=None,
    )
    environment.filters["tojson"] = _tojson
    environment.filters = {name: _bound_filter(name, f) for name, f in environment.filters.items()}
    environment.globals.pop("lipsum")
    environment.globals.update(raise_exception=_raise_exception, strftime_now=_strftime_now)
    environment.globals.update(dict=_make_dict, namespace=_Namespace)
    return environment.from_string(_bound_template(environment.parse(source), environment))


@contextmanager
def _limit_budget() -> Iterator[None]:
    token = _budget.set(_Budget())
    try:
        yield
    finally:
        _budget.reset(token)


class NativeTemplates:
    """Templates by jinja2."""

    def render(self, template: str, variables: dict[str, object], where: str) -> str:
        try:
            with _limit_budget():
                return _compile(template).render(variables)
        except _ExceededError as e:
            raise ModelError(f"{where}: the template takes too much: {e}") from None
        except jinja2.TemplateSyntaxError as e:
            raise ModelError(f"{where}: line {e.lineno}: {e.message}") from None
        except jinja2.TemplateError as e:
            raise ModelError(f"{where}: {e.message}") from None
        except RecursionError:
            raise ModelError(f"{where}: the template nests or calls itself too deep") from None
        except Exception as e:  # the template's operations may raise anything
            raise ModelError(f"{where}: {type(e).__name__}: {e}") from e


def open_templates() -> NativeTemplates:
    return NativeTemplates()
