"""Examples of docstrings as data, from which other languages write their own: the steps of a short program.

A step is one of

    {"let": names, "be": tree}          a name for a value, or a list of names for the members of a sequence
    {"do": tree}                        a call for what it does
    {"append": tree, "to": name}
    {"within": tree, "body": steps}     a context manager
    {"times": n, "body": steps}         a loop
    {"each": name, "of": tree, "body": steps}
    {"show": tree, "result": data}      a value; "about": its digits end there

A tree is {"value": plain data}, {"float": a number, or the name of one}, {"name": of a value}, {"list":
[...]}, {"object": {...}}, {"new": class, "args", "options"}, {"call": method or function, "on": tree, class
or module, "args", "options"}, {"get": property or key, "on": tree} or {"read": what is read of a Tensor,
"of": tree}, with "each" of every Tensor of a sequence. A docstring whose examples have another form has
none for other languages.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import inspect
import re
from typing import Any

# What is read of a Tensor: methods and properties.
READ_METHODS = ("tolist", "item")
READ_PROPERTIES = ("shape", "dtype", "device", "requires_grad")

# Operators, by the methods that do the same.
_OPERATORS: dict[type[ast.operator | ast.cmpop], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.MatMult: "matmul",
    ast.Pow: "pow",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}

Tree = dict[str, Any]


class _Untranslatable(Exception):
    """The example is of a form that only Python has."""


def example_of(x: Any) -> list[Tree] | None:
    """The steps of the example in the docstring of `x`, or None.

    >>> example_of(Tensor.neg)[-1]["result"]
    [-1, 2]
    """
    examples = doctest.DocTestParser().get_examples(inspect.getdoc(x) or "")
    try:
        steps = [step for example in examples for step in _steps(example)]
    except (_Untranslatable, SyntaxError, ValueError):
        return None
    return steps if steps and "show" in steps[-1] else None


def _steps(example: doctest.Example) -> list[Tree]:
    """The steps of a statement, and what it prints."""
    statements = ast.parse(example.source).body
    if example.exc_msg is not None or len(statements) != 1:
        raise _Untranslatable
    (statement,) = statements
    is_shown = example.want != "" and not example.want.startswith("<Tensor ")
    if not is_shown:
        return [_step(statement)]
    if not isinstance(statement, ast.Expr):
        raise _Untranslatable
    text = re.sub(r"(?<=\d)\.\.\.", "", example.want.strip())
    value, is_rounded = _shown(statement.value)
    about = {"about": True} if is_rounded or text != example.want.strip() else {}
    return [{"show": value, "result": _plain(ast.literal_eval(text)), **about}]


def _plain(value: Any) -> Any:
    return [_plain(x) for x in value] if isinstance(value, (tuple, list)) else value


def _shown(node: ast.expr) -> tuple[Tree, bool]:
    """What is shown, and whether it is rounded."""
    match node:
        case ast.Call(func=ast.Name(id="round"), args=[value, ast.Constant()]):
            return _tree(value), True
        case ast.ListComp(
            elt=ast.Call(func=ast.Name(id="round"), args=[value, ast.Constant()]), generators=loops
        ):
            return _tree(ast.ListComp(value, loops)), True
        case ast.Name(id=name):  # of what was appended, which is rounded
            return {"name": name}, True
    return _tree(node), False


# --- statements


def _step(statement: ast.stmt) -> Tree:
    match statement:
        case ast.Assign(targets=[ast.Name(id="_")], value=value):
            return {"do": _tree(value)}
        case ast.Assign(targets=[target], value=value):
            return {"let": _names(target), "be": _tree(value)}
        case ast.Expr(
            value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[value])
        ):
            return {"append": _shown(value)[0], "to": name}
        case ast.Expr(value=ast.Call() as value):
            return {"do": _tree(value)}
        case ast.With(items=[ast.withitem(context_expr=context, optional_vars=None)], body=body):
            if any(isinstance(s, ast.Assign) for s in body):  # names go with the body elsewhere
                raise _Untranslatable
            return {"within": _tree(context), "body": [_step(s) for s in body]}
        case ast.For(
            target=ast.Name(),
            iter=ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=n)]),
            body=body,
        ):
            return {"times": n, "body": [_step(s) for s in body]}
        case ast.For(target=ast.Name(id=name), iter=sequence, body=body):
            return {"each": name, "of": _tree(sequence), "body": [_step(s) for s in body]}
    raise _Untranslatable


def _names(target: ast.expr) -> Any:
    """A name, or a list of names or lists."""
    match target:
        case ast.Name(id=name):
            return name
        case ast.Tuple(elts=parts):
            return [_names(part) for part in parts]
    raise _Untranslatable


# --- expressions


def _tree(node: ast.expr) -> Tree:
    match node:
        case ast.Constant(value=float() as value):
            return {"float": value}
        case ast.Constant(value=value) if value is None or isinstance(value, (bool, int, str)):
            return {"value": value}
        case ast.Name(id=name) if not hasattr(builtins, name):
            return {"name": name}
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return {"list": [_tree(item) for item in items]}
        case ast.ListComp(
            elt=value,
            generators=[ast.comprehension(target=ast.Name(id=name), iter=sequence, ifs=[])],
        ):
            return _each(value, name, sequence)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return _tree(ast.Constant(-value))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return {"call": "neg", "on": _tree(operand), "args": [], "options": {}}
        case (
            ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right])
        ) if type(op) in _OPERATORS and _is_tensor(left):
            return {"call": _OPERATORS[type(op)], "on": _tree(left), "args": [_tree(right)], "options": {}}
        case ast.Call():
            return _call(node)
        case ast.Dict(keys=keys, values=values):
            return {"object": {_key(k): _tree(v) for k, v in zip(keys, values, strict=True)}}
        case ast.Subscript(value=of, slice=key):
            return {"get": _key(key), "on": _tree(of)}
        case ast.Attribute(value=ast.Attribute(value=of, attr="dtype"), attr="name"):
            return {"read": "dtype", "of": _tree(of)}
        case ast.Attribute(value=of, attr=name):
            return {"read" if name in READ_PROPERTIES else "get": name, _of(name): _tree(of)}
    raise _Untranslatable


def _of(name: str) -> str:
    return "of" if name in READ_PROPERTIES else "on"


def _each(value: ast.expr, name: str, sequence: ast.expr) -> Tree:
    """`[value for name in sequence]`."""
    match value:
        case ast.Name(id=same) if same == name:
            return _tree(sequence)
        case ast.Call(func=ast.Attribute(value=ast.Name(id=same), attr=read), args=[]) if (
            same == name and read in READ_METHODS
        ):
            return {"read": read, "each": True, "of": _tree(sequence)}
    raise _Untranslatable


def _key(node: ast.expr | None) -> str:
    """The key of a dict."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise _Untranslatable


def _is_tensor(node: ast.expr) -> bool:
    """Whether an operand is no number, whose operators other languages have themselves."""
    return not isinstance(node, ast.Constant)


def _call(node: ast.Call) -> Tree:
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        raise _Untranslatable
    match node:
        case ast.Call(func=ast.Name(id="float"), args=[ast.Constant(value=str() as text)]):
            return {"float": text}
        case ast.Call(func=ast.Attribute(value=of, attr=read), args=[], keywords=[]) if read in READ_METHODS:
            return {"read": read, "of": _tree(of)}
    given = {
        "args": [_tree(a) for a in node.args],
        "options": {k.arg: _tree(k.value) for k in node.keywords if k.arg is not None},
    }
    match node.func:
        case ast.Name(id="Tensor"):
            return {"new": "Tensor", **given}
        case ast.Attribute(value=of, attr=name) if (place := _place(of)) is not None:
            is_class = place.startswith("nn") and name[:1].isupper()
            return {"new": f"{place}.{name}", **given} if is_class else {"call": name, "on": place, **given}
        case ast.Attribute(value=of, attr=name):
            return {"call": name, "on": _tree(of), **given}
        case ast.Call() | ast.Name():  # a layer that is called
            return {"call": "__call__", "on": _tree(node.func), **given}
    raise _Untranslatable


def _place(node: ast.expr) -> str | None:
    """The dotted name of `Tensor`, or of `nn` or a module in it."""
    match node:
        case ast.Name(id="Tensor" | "nn" as name):
            return name
        case ast.Attribute(value=ast.Name(id="nn"), attr="optim" | "init" | "state" as name):
            return f"nn.{name}"
    return None
