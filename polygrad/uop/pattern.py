"""Patterns over UOps, and tables of them compiled to Python.

A `UPat` describes a node and its sources; a `PatternMatcher` is a table of (pattern, function) rows. Rows are
grouped by the op that they can match. On its first use, each group is compiled to one Python function: plain
`if`s over the node, which test the ops of the sources first.

Knows nodes, not their meaning. The vocabulary (`UPat`, `PatternMatcher`) and the compilation are tinygrad's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from polygrad.dtype import DType
from polygrad.errors import InternalError
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

Rewriter = Callable[..., "UOp | None"]
Row = tuple["UPat", Rewriter]

_ANY: Any = object()  # `arg` left out: any argument


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
    row does not apply after all. The first use of an op's rows raises InternalError for a parameter that no
    node in the pattern has as its name.
    """

    __slots__ = ("compiled", "rows")

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows: list[Row] = list(rows)
        self.compiled: dict[Ops, Rewriter | None] = {}  # by op; None: no row can match it

    def __add__(self, other: PatternMatcher) -> PatternMatcher:
        return PatternMatcher(self.rows + other.rows)

    def rewrite(self, node: UOp) -> UOp | None:
        """The replacement of `node` by the first row that applies; None if none does or nothing changes."""
        op = node.op
        match = self.compiled[op] if op in self.compiled else self.compile(op)
        return None if match is None else match(node)

    def compile(self, op: Ops) -> Rewriter | None:
        """The compiled function for nodes of `op`, from the cache if it is there; None when no row can
        match."""
        rows = [row for row in self.rows if row[0].op is None or op in row[0].op]
        match = None
        if rows:
            source, names = _Writer(op).write(rows)
            exec(compile(source, f"<patterns of {op}>", "exec"), names)
            match = names["match"]
        self.compiled[op] = match
        return match

    def source(self, op: Ops) -> str:
        """The Python text that `compile(op)` runs, for debugging."""
        return _Writer(op).write([row for row in self.rows if row[0].op is None or op in row[0].op])[0]


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
            values = [self._argument(p, row.bound, function) for p in parameters]
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

    def _argument(self, parameter: str, bound: dict[str, str], function: Rewriter) -> str:
        if parameter not in bound:
            where = f"{function.__module__}.{function.__qualname__}"
            raise InternalError(
                f"pattern for {self.op}: {where} takes {parameter!r}, expected one of {sorted(bound)}"
            )
        return bound[parameter]

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
