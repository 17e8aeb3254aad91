"""Patterns over UOps, and tables of them compiled to Python.

A `UPat` describes a node and its sources; a `PatternMatcher` is a table of (pattern, function) rows. Rows are
grouped by the op that they can match. A group is compiled to one Python function: plain `if`s over the node,
which test the ops of the sources first. Until a group has been used some times it is interpreted, because
compiling it takes longer than that.

Knows nodes, not their meaning. The vocabulary (`UPat`, `PatternMatcher`) and the compilation are tinygrad's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from polygrad.dtype import DType
from polygrad.errors import InternalError
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

Rewriter = Callable[..., "UOp | None"]
Row = tuple["UPat", Rewriter]
Value = TypeVar("Value")

_ANY: Any = object()  # `arg` left out: any argument
INTERPRETED = 16  # uses of an op's rows after which they are compiled


class UPat:
    """A pattern of a node.

    `op`: an Ops or several; None is any. `dtype`: a DType or several. `src`: the patterns of its sources, in
    this order; None for any. `arg`: must equal the node's. `name`: the parameter by which the node is passed;
    a name that occurs twice must match the same node twice.
    """

    __slots__ = ("arg", "dtype", "name", "op", "src")

    def __init__(
        self,
        op: Ops | Iterable[Ops] | None = None,
        dtype: DType | tuple[DType, ...] | None = None,
        src: tuple[UPat, ...] | None = None,
        arg: Any = _ANY,
        name: str | None = None,
    ) -> None:
        self.op: tuple[Ops, ...] | None = None if op is None else (op,) if isinstance(op, Ops) else tuple(op)
        self.dtype: tuple[DType, ...] | None = (dtype,) if isinstance(dtype, DType) else dtype
        self.src, self.arg, self.name = src, arg, name

    @staticmethod
    def var(name: str | None = None, dtype: DType | tuple[DType, ...] | None = None) -> UPat:
        """Any node."""
        return UPat(None, dtype, name=name)

    @staticmethod
    def cvar(name: str) -> UPat:
        """Any CONST."""
        return UPat(Ops.CONST, name=name)

    @staticmethod
    def const(dtype: DType | tuple[DType, ...] | None, value: Any) -> UPat:
        """The CONST `value`, by Python's equality: without `dtype`, 0 is also 0.0 and False (never -0.0)."""
        return UPat(Ops.CONST, dtype, arg=value)

    def named(self, name: str) -> UPat:
        """This pattern, whose node is passed as `name`."""
        return UPat(self.op, self.dtype, self.src, self.arg, name)


class PatternMatcher:
    """Rows (pattern, function), tried in order.

    The parameters of a function are names of nodes in its pattern. It returns the replacement, or None if its
    row does not apply after all. The use of a row with a parameter that no node in the pattern has as its
    name raises InternalError.
    """

    __slots__ = ("matchers", "rows")

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows: list[Row] = list(rows)
        self.matchers: dict[Ops, Rewriter | None] = {}  # by op; None: no row can match it

    def __add__(self, other: PatternMatcher) -> PatternMatcher:
        return PatternMatcher(self.rows + other.rows)

    def rewrite(self, node: UOp) -> UOp | None:
        """The replacement of `node` by the first row that applies; None if none does or nothing changes."""
        op = node.op
        match = self.matchers[op] if op in self.matchers else self.prepare(op)
        return None if match is None else match(node)

    def prepare(self, op: Ops) -> Rewriter | None:
        """The function for nodes of `op`, to be kept in `matchers`: it interprets the rows, and has them
        compiled when it has been used INTERPRETED times. None when no row can match."""
        rows = self._rows(op)
        uses = 0

        def match(node: UOp) -> UOp | None:
            nonlocal uses
            uses += 1
            if uses == INTERPRETED:
                self.compile(op)
            for pattern, function in rows:
                bound: dict[str, UOp] = {}
                if _matches(pattern, node, bound):
                    new = function(*[_argument(p, bound, op, function) for p in _parameters(function)])
                    if new is not None and new is not node:
                        return new
            return None

        self.matchers[op] = match if rows else None
        return self.matchers[op]

    def compile(self, op: Ops) -> Rewriter | None:
        """The compiled function for nodes of `op`, from now on in `matchers`; None when no row can match."""
        match = None
        if rows := self._rows(op):
            source, names = _Writer(op).write(rows)
            exec(compile(source, f"<patterns of {op}>", "exec"), names)
            match = names["match"]
        self.matchers[op] = match
        return match

    def source(self, op: Ops) -> str:
        """The Python text that `compile(op)` runs, for debugging."""
        return _Writer(op).write(self._rows(op))[0]

    def _rows(self, op: Ops) -> list[Row]:
        return [row for row in self.rows if row[0].op is None or op in row[0].op]


def _matches(pattern: UPat, node: UOp, bound: dict[str, UOp]) -> bool:
    """Whether a node whose op is one of `pattern` matches it. `bound` gets the nodes by name."""
    if pattern.src is not None:
        if len(pattern.src) != len(node.src):
            return False
        for sub, source in zip(pattern.src, node.src, strict=True):
            if sub.op is not None and source.op not in sub.op:
                return False
    if pattern.dtype is not None and node.dtype not in pattern.dtype:
        return False
    if pattern.arg is not _ANY and node.arg != pattern.arg:
        return False
    if pattern.name is not None and bound.setdefault(pattern.name, node) is not node:
        return False
    if pattern.src is not None:
        for sub, source in zip(pattern.src, node.src, strict=True):
            if not _matches(sub, source, bound):
                return False
    return True


def _argument(parameter: str, bound: dict[str, Value], op: Ops, function: Rewriter) -> Value:
    """What is passed as a parameter. Raises InternalError for one that is no name of the pattern."""
    if parameter not in bound:
        where = f"{function.__module__}.{function.__qualname__}"
        raise InternalError(f"pattern for {op}: {where} takes {parameter!r}, expected one of {sorted(bound)}")
    return bound[parameter]


class _Writer:
    """Writes the text of the function for one op."""

    def __init__(self, op: Ops) -> None:
        self.op = op
        self.names: dict[str, Any] = {}
        self.ids: dict[Any, str] = {}

    def write(self, rows: list[Row]) -> tuple[str, dict[str, Any]]:
        body: list[str] = []
        arity, guard = 0, None
        for i, (pattern, function) in enumerate(rows):
            if self.op in GroupOp.ALU and not _has_arity(pattern, _arity(self.op)):
                continue
            parameters = _parameters(function)
            row = _Row(self, pattern)
            arity = max(arity, row.arity)
            # consecutive rows with the same guard share one `if`
            if row.guard != guard and row.guard:
                body.append(f" if {row.guard}:")
            guard = row.guard
            indent = "  " if guard else " "
            for line in row.lines:
                body.append(indent + line)
                indent += " " if line.endswith(":") else ""
            values = [_argument(p, row.bound, self.op, function) for p in parameters]
            body.append(f"{indent}r = {self.name('f', function, i)}({', '.join(values)})")
            body.append(f"{indent}if r is not None and r is not u: return r")
        head = ["def match(u):"]
        ops_read = {k for k in range(arity) if any(f"o{k} " in line for line in body)}
        if self.op in GroupOp.ALU:  # no source is missing
            head.append(f" {''.join(f's{k}, ' for k in range(_arity(self.op)))}= u.src")
            head += [f" o{k} = s{k}.op" for k in sorted(ops_read)]
        elif arity:
            head += [" src = u.src", " n = len(src)"]
            for k in range(arity):
                head.append(f" s{k} = src[{k}] if n > {k} else None")
                if k in ops_read:
                    head.append(f" o{k} = s{k}.op if n > {k} else None")
        return "\n".join([*head, *body, " return None"]) + "\n", self.names

    def name(self, prefix: str, value: Any, key: Any) -> str:
        """The name of a global with `value` in the written function."""
        name = self.ids.get((prefix, key))
        if name is None:
            name = self.ids[(prefix, key)] = f"{prefix}{len(self.ids)}"
            self.names[name] = value
        return name

    def test_op(self, expression: str, ops: tuple[Ops, ...]) -> str:
        if len(ops) == 1:
            return f"{expression} is {self.name('op_', ops[0], ops[0])}"
        return f"{expression} in {self.name('ops_', frozenset(ops), ops)}"

    def test_dtype(self, expression: str, ds: tuple[DType, ...]) -> str:
        if len(ds) == 1:
            return f"{expression} is {self.name('dt_', ds[0], ds[0])}"
        return f"{expression} in {self.name('dts_', frozenset(ds), ds)}"


def _arity(op: Ops) -> int:
    return 1 if op in GroupOp.Unary else 2 if op in GroupOp.Binary else 3


def _has_arity(pattern: UPat, n: int) -> bool:
    return pattern.src is None or len(pattern.src) == n


class _Row:
    """The code that matches one row: `guard`, a condition on the sources' ops, then `lines`. `bound`: names
    of nodes."""

    def __init__(self, writer: _Writer, pattern: UPat) -> None:
        self.writer = writer
        self.lines: list[str] = []
        self.bound: dict[str, str] = {}
        self.conditions: list[str] = []  # tested last: they are rarely false
        self.arity = len(pattern.src or ())
        guard = []
        if pattern.src is not None:
            if writer.op not in GroupOp.ALU:
                guard.append(f"n == {self.arity}")
            # constants are right operands: test those first
            for k in range(self.arity - 1, -1, -1):
                ops = pattern.src[k].op
                if ops is not None:
                    guard.append(writer.test_op(f"o{k}", ops))
        self.guard = " and ".join(guard)
        self._own(pattern, "u")
        work = [(source, f"s{k}", True) for k, source in enumerate(pattern.src or ())]
        while work:
            next_work = []
            for sub, variable, op_tested in work:
                if not op_tested and sub.op is not None:
                    self.lines.append(f"if {writer.test_op(variable + '.op', sub.op)}:")
                self._own(sub, variable)
                if sub.src is not None:
                    count = len(sub.src)
                    if sub.op is None or any(o not in GroupOp.ALU or _arity(o) != count for o in sub.op):
                        self.lines.append(f"if len({variable}.src) == {count}:")
                    names = [f"{variable}_{k}" for k in range(count)]
                    if names:
                        self.lines.append(f"{', '.join(names)}, = {variable}.src")
                    next_work += [(source, name, False) for source, name in zip(sub.src, names, strict=True)]
            work = next_work
        if self.conditions:
            self.lines.append(f"if {' and '.join(self.conditions)}:")

    def _own(self, pattern: UPat, variable: str) -> None:
        """The conditions of `pattern` on its node, other than those on the op and the sources."""
        if pattern.dtype is not None:
            self.conditions.append(self.writer.test_dtype(f"{variable}.dtype", pattern.dtype))
        if pattern.arg is not _ANY:
            value = pattern.arg
            self.conditions.append(
                f"{variable}.arg == {self.writer.name('a', value, (type(value), repr(value)))}"
            )
        if pattern.name is not None:
            first = self.bound.setdefault(pattern.name, variable)
            if first != variable:
                self.conditions.append(f"{first} is {variable}")


def _parameters(function: Rewriter) -> tuple[str, ...]:
    code = function.__code__  # type: ignore[attr-defined]
    return code.co_varnames[: code.co_argcount]
