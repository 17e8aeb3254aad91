"""The changes of a Python file: one operator, condition, constant, statement or result at a time.

Texts, annotations, decorators and arguments of exceptions stay: no test should depend on them. The kinds are
those of mutation tools (PIT, Stryker, mutmut).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from mutants.change import Change

_COMPARISONS: dict[type[ast.cmpop], tuple[str, ...]] = {
    ast.Lt: ("<", "<=", ">="),
    ast.LtE: ("<=", "<", ">"),
    ast.Gt: (">", ">=", "<="),
    ast.GtE: (">=", ">", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "+"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
}
_CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "reversed": "iter"}
_UNCHANGED_FIELDS = {"annotation", "returns", "decorator_list", "type_params"}


def _is_skipped(node: ast.AST) -> bool:
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    names = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(x, ast.Name) and x.id in ("__all__", "__slots__") for x in names)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


class _File:
    def __init__(self, source: str) -> None:
        self.source, self._starts, at = source, [0], 0
        for line in source.splitlines(keepends=True):
            self._starts.append(at := at + len(line))
        self._lines = source.splitlines()

    def at(self, line: int, column: int) -> int:
        """The character at a byte of a line."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.at(node.lineno, node.col_offset), self.at(node.end_lineno, node.end_col_offset)

    def replace(self, node: ast.expr | ast.stmt, kind: str, text: str) -> Change:
        return Change(kind, *self.span(node), text, node.lineno)

    def operator(self, kind: str, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[Change]:
        """The operator `old` between two operands becomes `new`."""
        begin, end = self.span(left)[1], self.span(right)[0]
        pattern = old.replace(" ", r"\s+") if old.isalpha() or " " in old else re.escape(old)
        if match := re.search(pattern, self.source[begin:end]):
            line = left.end_lineno or left.lineno
            yield Change(kind, begin + match.start(), begin + match.end(), new, line)


def _of_expression(f: _File, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare():
            operands = [node.left, *node.comparators]
            for op, left, right in zip(node.ops, operands, operands[1:]):
                old, *others = _COMPARISONS[type(op)]
                for new in others:
                    yield from f.operator("comparison", left, right, old, new)
        case ast.BinOp(left, op, right):
            yield from f.operator("arithmetic", left, right, *_ARITHMETIC[type(op)])
        case ast.BoolOp(op, values):
            old, new = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
            for left, right in pairwise(values):
                yield from f.operator("and, or", left, right, old, new)
        case ast.UnaryOp(op, operand) if isinstance(op, ast.Not | ast.USub | ast.Invert):
            start, end = f.span(operand)
            yield f.replace(node, "not, minus", f.source[start:end])
        case ast.Constant(bool() as value):
            yield f.replace(node, "constant", str(not value))
        case ast.Constant(int() | float() as value):
            yield f.replace(node, "constant", str(value + 1 if value + 1 != value else value * 2))
            yield f.replace(node, "constant", str(value - 1) if value >= 1 else f"({value - 1})")
        case ast.Call(ast.Name(name) as called) if name in _CALLS:
            yield f.replace(called, "call", _CALLS[name])
        case ast.IfExp(test):
            yield from (f.replace(test, "condition", x) for x in ("True", "False"))
        case ast.comprehension(ifs=tests):
            yield from (f.replace(test, "condition", "True") for test in tests)


def _of_statement(f: _File, node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.If(test):
            yield from (f.replace(test, "condition", x) for x in ("True", "False"))
        case ast.While(test) if not isinstance(test, ast.Constant):
            yield f.replace(test, "condition", "False")
        case ast.Expr(ast.Call() | ast.Await() | ast.Yield() | ast.YieldFrom()) | ast.Raise() | ast.Delete():
            yield f.replace(node, "statement", "pass")
        case ast.Assign([ast.Attribute() | ast.Subscript()]) | ast.Break() | ast.Continue():
            yield f.replace(node, "statement", "pass")
        case ast.AugAssign(target, op, value):
            yield f.replace(node, "statement", "pass")
            old, new = _ARITHMETIC[type(op)]
            yield from f.operator("arithmetic", target, value, old + "=", new + "=")
        case ast.Return(ast.expr() as value) if not _is_none(value):
            yield f.replace(value, "result", "None")


def _walk(f: _File, node: ast.AST, function: int, function_name: str) -> Iterator[Change]:
    if _is_skipped(node):
        return
    for c in (*_of_statement(f, node), *_of_expression(f, node)):
        yield replace(c, function=function, name=function_name)
    for name, value in ast.iter_fields(node):
        if name in _UNCHANGED_FIELDS or isinstance(node, ast.Raise | ast.Assert):
            continue
        inner, inner_name = function, function_name
        if name == "body" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            inner_name = function_name if node.name.startswith("__") else node.name
        elif name == "body" and isinstance(node, ast.ClassDef):
            inner_name = node.name
        elif name == "body" and isinstance(node, ast.Lambda):
            inner = node.lineno
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(f, child, inner, inner_name)


def changes(source: str) -> list[Change]:
    """All changes of a file, in order. Few of them may be no valid Python (`is_valid`)."""
    return list(dict.fromkeys(_walk(_File(source), ast.parse(source), 0, "")))


def is_valid(source: str) -> bool:
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True
