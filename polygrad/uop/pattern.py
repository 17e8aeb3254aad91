"""Patterns over UOps, and tables of them compiled to Python.

A `UPat` describes a node and its sources; a `PatternMatcher` is a table of (pattern, function) rows. Rows are
grouped by the op they can match, and each op's group is written out as one Python function on its first use:
plain `if`s over the node, with the ops of the sources tested before anything else is touched.

Knows nodes, not what they mean. The vocabulary (`UPat`, `PatternMatcher`) and the compiling are tinygrad's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import permutations, product
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import InternalError
from polygrad.uop.node import UOp
from polygrad.uop.ops import GroupOp, Ops

Rewriter = Callable[..., "UOp | None"]
Row = tuple["UPat", Rewriter]

_ANY: Any = object()  # `arg` left out: any argument


class UPat:
    """What a node may look like.

    `op`: an Ops or several; None is any. `dtype`: a DType or several. `src`: None for any sources, a tuple
    for sources in this order, a list for sources in any order. `any_len`: more sources may follow those
    given. `arg`: what the node's must equal. `name`: the parameter the node is passed as; a name that stands
    twice must be the same node twice.

    Operators build patterns (`x + c`, `(x < c)`, `c.where(a, b)`); commutative ones take their sources in any
    order, unless `ordered()` says otherwise.
    """

    __slots__ = ("any_len", "any_order", "arg", "dtype", "name", "op", "src")

    def __init__(
        self,
        op: Ops | Iterable[Ops] | None = None,
        dtype: DType | tuple[DType, ...] | None = None,
        src: tuple[UPat, ...] | list[UPat] | None = None,
        arg: Any = _ANY,
        name: str | None = None,
        any_len: bool = False,
    ) -> None:
        self.op: tuple[Ops, ...] | None = None if op is None else (op,) if isinstance(op, Ops) else tuple(op)
        self.dtype: tuple[DType, ...] | None = (dtype,) if isinstance(dtype, DType) else dtype
        self.src: tuple[UPat, ...] | None = None if src is None else tuple(src)
        self.any_order = isinstance(src, list)
        self.arg, self.name, self.any_len = arg, name, any_len

    @staticmethod
    def var(name: str | None = None, dtype: DType | tuple[DType, ...] | None = None) -> UPat:
        """Any node."""
        return UPat(None, dtype, name=name)

    @staticmethod
    def cvar(name: str | None = None, dtype: DType | tuple[DType, ...] | None = None) -> UPat:
        """Any CONST."""
        return UPat(Ops.CONST, dtype, name=name)

    @staticmethod
    def const(dtype: DType | tuple[DType, ...] | None, value: Any) -> UPat:
        """The CONST `value`, by Python's equality: without `dtype`, 0 is also 0.0 and False (never -0.0)."""
        return UPat(Ops.CONST, dtype, arg=value)

    def named(self, name: str) -> UPat:
        """This pattern, its node passed as `name`."""
        out = UPat(self.op, self.dtype, self.src, self.arg, name, self.any_len)
        out.any_order = self.any_order
        return out

    def ordered(self) -> UPat:
        """This pattern, with its own sources in the order written."""
        return UPat(self.op, self.dtype, self.src, self.arg, self.name, self.any_len)

    def _other(self, x: Any) -> UPat:
        return x if isinstance(x, UPat) else UPat.const(None, x)

    def alu(self, op: Ops, *others: Any) -> UPat:
        """The pattern of `op` over this one and `others`."""
        src = (self, *(self._other(o) for o in others))
        return UPat(op, src=list(src) if op in GroupOp.Commutative else src)

    def __add__(self, x: Any) -> UPat:
        return self.alu(Ops.ADD, x)

    def __radd__(self, x: Any) -> UPat:
        return self._other(x).alu(Ops.ADD, self)

    def __mul__(self, x: Any) -> UPat:
        return self.alu(Ops.MUL, x)

    def __rmul__(self, x: Any) -> UPat:
        return self._other(x).alu(Ops.MUL, self)

    def __sub__(self, x: Any) -> UPat:
        return self.alu(Ops.SUB, x)

    def __neg__(self) -> UPat:
        return self.alu(Ops.NEG)

    def __floordiv__(self, x: Any) -> UPat:
        return self.alu(Ops.IDIV, x)

    def __mod__(self, x: Any) -> UPat:
        return self.alu(Ops.MOD, x)

    def __truediv__(self, x: Any) -> UPat:
        return self.alu(Ops.FDIV, x)

    def __and__(self, x: Any) -> UPat:
        return self.alu(Ops.AND, x)

    def __or__(self, x: Any) -> UPat:
        return self.alu(Ops.OR, x)

    def __xor__(self, x: Any) -> UPat:
        return self.alu(Ops.XOR, x)

    def __lshift__(self, x: Any) -> UPat:
        return self.alu(Ops.SHL, x)

    def __rshift__(self, x: Any) -> UPat:
        return self.alu(Ops.SHR, x)

    def __lt__(self, x: Any) -> UPat:
        return self.alu(Ops.CMPLT, x)

    def __gt__(self, x: Any) -> UPat:
        return self._other(x).alu(Ops.CMPLT, self)

    def ne(self, x: Any) -> UPat:
        return self.alu(Ops.CMPNE, x)

    def eq(self, x: Any) -> UPat:
        return self.alu(Ops.CMPEQ, x)

    def logical_not(self) -> UPat:
        return UPat(Ops.CMPNE, dtypes.bool, [self, UPat.const(dtypes.bool, True)])

    def maximum(self, x: Any) -> UPat:
        return self.alu(Ops.MAX, x)

    def where(self, a: Any, b: Any) -> UPat:
        return self.alu(Ops.WHERE, a, b)

    def cast(self, dtype: DType | tuple[DType, ...] | None = None) -> UPat:
        return UPat(Ops.CAST, dtype, (self,))

    def bitcast(self, dtype: DType | tuple[DType, ...] | None = None) -> UPat:
        return UPat(Ops.BITCAST, dtype, (self,))

    def reciprocal(self) -> UPat:
        return self.alu(Ops.RECIPROCAL)


class PatternMatcher:
    """Rows (pattern, function), tried in order.

    A function takes the pattern's named nodes it wants as parameters, and `ctx` if it names it; it returns
    the replacement, or None to say that its row does not apply after all. Raises InternalError, on the first
    use of an op's rows, for a function that asks for a name its pattern has not.
    """

    __slots__ = ("compiled", "rows")

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows: list[Row] = list(rows)
        self.compiled: dict[Ops, Rewriter | None] = {}  # by op; None: no row can match it

    def __add__(self, other: PatternMatcher) -> PatternMatcher:
        return PatternMatcher(self.rows + other.rows)

    def rewrite(self, node: UOp, ctx: Any = None) -> UOp | None:
        """What the first row that applies makes of `node`; None when none does or nothing changes."""
        op = node.op
        match = self.compiled[op] if op in self.compiled else self.compile(op)
        return None if match is None else match(node, ctx)

    def compile(self, op: Ops) -> Rewriter | None:
        """The function for nodes of `op`, written, compiled and kept; None when no row can match."""
        rows = [row for row in self.rows if row[0].op is None or op in row[0].op]
        found = None
        if rows:
            source, names = _Writer(op).write(rows)
            exec(compile(source, f"<patterns of {op}>", "exec"), names)
            found = names["match"]
        self.compiled[op] = found
        return found

    def source(self, op: Ops) -> str:
        """The Python text that `compile(op)` runs; for whoever debugs a pattern."""
        return _Writer(op).write([row for row in self.rows if row[0].op is None or op in row[0].op])[0]


class _Writer:
    """Writes the matching function of one op."""

    def __init__(self, op: Ops) -> None:
        self.op = op
        self.names: dict[str, Any] = {}
        self.ids: dict[Any, str] = {}

    def write(self, rows: list[Row]) -> tuple[str, dict[str, Any]]:
        body: list[str] = []
        arity, last = 0, None
        for i, (pattern, function) in enumerate(rows):
            if self.op in GroupOp.ALU and not _has_arity(pattern, _arity(self.op)):
                continue
            parameters = _parameters(function)
            for plan in _orders(pattern):
                found = _Plan(self, plan)
                arity = max(arity, found.top)
                # consecutive rows that first ask the same of the sources share one `if`
                if found.guard != last and found.guard:
                    body.append(f" if {found.guard}:")
                last = found.guard
                indent = "  " if found.guard else " "
                for line in found.lines:
                    body.append(indent + line)
                    indent += " " if line.endswith(":") else ""
                values = [self._argument(p, found.bound, function) for p in parameters]
                body.append(f"{indent}r = {self.name('f', function, i)}({', '.join(values)})")
                body.append(f"{indent}if r is not None and r is not u: return r")
        head = ["def match(u, ctx):"]
        asked = {k for k in range(arity) if any(f"o{k} " in line for line in body)}
        if self.op in GroupOp.ALU:  # every source is there
            head.append(f" {''.join(f's{k}, ' for k in range(_arity(self.op)))}= u.src")
            head += [f" o{k} = s{k}.op" for k in sorted(asked)]
        elif arity:
            head += [" src = u.src", " n = len(src)"]
            for k in range(arity):
                head.append(f" s{k} = src[{k}] if n > {k} else None")
                if k in asked:
                    head.append(f" o{k} = s{k}.op if n > {k} else None")
        return "\n".join([*head, *body, " return None"]) + "\n", self.names

    def _argument(self, parameter: str, bound: dict[str, str], function: Rewriter) -> str:
        if parameter == "ctx":
            return "ctx"
        if parameter not in bound:
            where = f"{function.__module__}.{function.__qualname__}"
            raise InternalError(
                f"pattern for {self.op}: {where} takes {parameter!r}, "
                f"expected one of {sorted(bound)} or 'ctx'"
            )
        return bound[parameter]

    def name(self, prefix: str, value: Any, key: Any) -> str:
        """A global of the written function that holds `value`."""
        found = self.ids.get((prefix, key))
        if found is None:
            found = self.ids[(prefix, key)] = f"{prefix}{len(self.ids)}"
            self.names[found] = value
        return found

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
    return pattern.src is None or len(pattern.src) == n or (pattern.any_len and len(pattern.src) < n)


class _Plan:
    """How one row matches with its sources in one order: `guard` over the sources' ops, then `lines`."""

    def __init__(self, writer: _Writer, plan: tuple[UPat, Any]) -> None:
        self.writer = writer
        self.lines: list[str] = []
        self.bound: dict[str, str] = {}
        self.late: list[str] = []
        pattern, sources = plan
        self.top = len(sources or ())
        guard = []
        if sources is not None:
            if writer.op not in GroupOp.ALU:
                guard.append(f"n >= {self.top}" if pattern.any_len else f"n == {self.top}")
            # constants stand right: ask there first
            for k in range(self.top - 1, -1, -1):
                if sources[k][0].op is not None:
                    guard.append(writer.test_op(f"o{k}", sources[k][0].op))
        self.guard = " and ".join(guard)
        self._own(pattern, "u")
        work = [(source, f"s{k}", True) for k, source in enumerate(sources or ())]
        while work:
            below = []
            for (sub, inner), variable, op_tested in work:
                if not op_tested and sub.op is not None:
                    self.lines.append(f"if {writer.test_op(variable + '.op', sub.op)}:")
                self._own(sub, variable)
                if inner is not None:
                    size = f"{'>=' if sub.any_len else '=='} {len(inner)}"
                    if sub.op is None or any(o not in GroupOp.ALU or _arity(o) != len(inner) for o in sub.op):
                        self.lines.append(f"if len({variable}.src) {size}:")
                    names = [f"{variable}_{k}" for k in range(len(inner))]
                    tail = f"[:{len(inner)}]" if sub.any_len else ""
                    if names:
                        self.lines.append(f"{', '.join(names)}, = {variable}.src{tail}")
                    below += [(source, name, False) for source, name in zip(inner, names, strict=True)]
            work = below
        if self.late:
            self.lines.append(f"if {' and '.join(self.late)}:")

    def _own(self, pattern: UPat, variable: str) -> None:
        """What `pattern` asks of its node besides its op and sources."""
        if pattern.dtype is not None:
            self.late.append(self.writer.test_dtype(f"{variable}.dtype", pattern.dtype))
        if pattern.arg is not _ANY:
            value = pattern.arg
            self.late.append(f"{variable}.arg == {self.writer.name('a', value, (type(value), repr(value)))}")
        if pattern.name is not None:
            before = self.bound.setdefault(pattern.name, variable)
            if before != variable:
                self.late.append(f"{before} is {variable}")


def _orders(pattern: UPat) -> list[tuple[UPat, Any]]:
    """Every way to order the sources of `pattern`'s any-order nodes: (pattern, its sources alike or None)."""
    if pattern.src is None:
        return [(pattern, None)]
    arrangements = list(dict.fromkeys(permutations(pattern.src))) if pattern.any_order else [pattern.src]
    return [(pattern, combo) for order in arrangements for combo in product(*(_orders(s) for s in order))]


def _parameters(function: Rewriter) -> tuple[str, ...]:
    code = function.__code__  # type: ignore[attr-defined]
    return code.co_varnames[: code.co_argcount]
