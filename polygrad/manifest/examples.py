"""Examples of docstrings as data, from which other languages write their own: one expression, and its value.

An expression is a tree of {"value": plain data}, {"float": a number, or the name of one}, {"list": [...]},
{"new": class, "args", "options"}, {"call": method or function, "on": expression or class, "args", "options"}
and {"get": property, "on"}. What an example reads in the end is `read`: `tolist`, `item` or `shape`; `each`:
of every Tensor of a sequence. Examples of another form are Python's alone.
"""

from __future__ import annotations

import ast
import doctest
import inspect
from typing import Any

READS = ("tolist", "item", "shape")

# Operators, by the methods that do the same.
_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.MatMult: "matmul",
    ast.Pow: "pow",
}


class _Untranslatable(Exception):
    """The example is of a form that only Python has."""


def example_of(x: Any) -> dict[str, Any] | None:
    """The example in the docstring of `x`, or None.

    >>> example_of(Tensor.neg)["result"]
    [-1, 2]
    """
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(x) or "")
    if len(examples) != 1:
        return None
    (example,) = examples
    try:
        return {**_read(ast.parse(example.source, mode="eval").body), "result": _result(example.want)}
    except (_Untranslatable, SyntaxError, ValueError):
        return None


def _result(text: str) -> Any:
    value = ast.literal_eval(text.strip())
    return list(value) if isinstance(value, tuple) else value


def _read(node: ast.expr) -> dict[str, Any]:
    """What is read in the end, and of what."""
    match node:
        case ast.ListComp(
            elt=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=read), args=[]),
            generators=[ast.comprehension(target=ast.Name(id=same), iter=sequence, ifs=[])],
        ) if name == same and read in READS:
            return {"read": read, "each": True, "of": _tree(sequence)}
        case ast.Call(func=ast.Attribute(value=of, attr=read), args=[], keywords=[]) if read in READS:
            return {"read": read, "of": _tree(of)}
        case ast.Attribute(value=of, attr="shape"):
            return {"read": "shape", "of": _tree(of)}
    raise _Untranslatable


def _tree(node: ast.expr) -> dict[str, Any]:
    match node:
        case ast.Constant(value=float() as value):
            return {"float": value}
        case ast.Constant(value=value) if value is None or isinstance(value, (bool, int, str)):
            return {"value": value}
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return {"list": [_tree(item) for item in items]}
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return _tree(ast.Constant(-value))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {"call": "neg", "on": _tree(operand), "args": [], "options": {}}
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)]):
            return {"float": text}
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS and _is_tensor(left):
            return {"call": _OPERATORS[type(op)], "on": _tree(left), "args": [_tree(right)], "options": {}}
        case ast.Call(func=function, args=args, keywords=keywords):
            if any(isinstance(a, ast.Starred) for a in args) or any(k.arg is None for k in keywords):
                raise _Untranslatable
            given = {
                "args": [_tree(a) for a in args],
                "options": {k.arg: _tree(k.value) for k in keywords if k.arg is not None},
            }
            return {**_called(function), **given}
        case ast.Attribute(value=of, attr=name):
            return {"get": name, "on": _tree(of)}
    raise _Untranslatable


def _is_tensor(node: ast.expr) -> bool:
    """Whether an operand is no number, whose operators other languages have themselves."""
    return not isinstance(node, ast.Constant)


def _called(function: ast.expr) -> dict[str, Any]:
    match function:
        case ast.Name(id="Tensor"):
            return {"new": "Tensor"}
        case ast.Attribute(value=ast.Name(id="Tensor"), attr=name):
            return {"call": name, "on": "Tensor"}
        case ast.Attribute(value=ast.Name(id="nn"), attr=name) if name[:1].isupper():
            return {"new": f"nn.{name}"}
        case ast.Attribute(value=of, attr=name):
            return {"call": name, "on": _tree(of)}
        case ast.Call():  # a layer that is called
            return {"call": "__call__", "on": _tree(function)}
    raise _Untranslatable
