"""`SourceText`: the body of one function in a language like C, as readable lines.

A builder adds expressions and statements in the order of execution. At the end, an expression that is used
once becomes part of the expression that uses it. All others get a name and a line of their own:
`float x3 = ...;`. An expression moves down to its use. So an expression that reads memory is not moved past a
write, and no expression is moved into a loop. Unused expressions are not written.

Knows operator precedence, blocks and names; must not know dtypes, Builders, or the language: a function
`declare` writes declarations.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from typing import Any

from polygrad.errors import InternalError

# Precedence of operators, as in C, tightest last. An operand of lower precedence than its place needs is
# written in parentheses. Bitwise operators, shifts and comparisons need more than in C, so that a reader need
# not know their order.
ANY, SELECT, BITS, COMPARE, SHIFT, SUM, PRODUCT, UNARY, ATOM = range(9)

_MAX_INLINE = 70  # characters of an expression that is part of another
_INDENT = "  "
_COMPOUND = {"{} + {}": "+=", "{} - {}": "-=", "{} * {}": "*="}  # operators, and what x = x + y is with them

Declare = Callable[[str, str, str | None, bool], str]


class Block:
    """A block of statements between braces: its parent, and which item of the source opens it."""

    __slots__ = ("at", "depth", "parent")

    def __init__(self, parent: Block | None, at: int) -> None:
        self.parent, self.at = parent, at
        self.depth: int = 0 if parent is None else parent.depth + 1


class LocalVariable:
    """A mutable variable; `data` is the builder's."""

    __slots__ = ("data", "first", "hint", "name", "scope", "type", "writes")

    def __init__(self, type_: str, hint: str, data: Any) -> None:
        self.type, self.hint, self.data = type_, hint, data
        self.name = ""
        self.writes: list[int] = []  # the items that assign to it
        self.scope: Block | None = None  # the innermost block that has all its uses
        self.first = -1


class Expression:
    """A value: `template` with the texts of `args`, each of which needs a precedence of `needs`.

    `data` belongs to the builder: its facts about the value. `reads`: the LocalVariable or the memory that it
    reads.
    """

    __slots__ = ("args", "at", "block", "data", "hint", "inline", "is_conditional", "needs", "place",
                 "precedence", "reads", "template", "text", "type", "uses")  # fmt: skip

    def __init__(
        self,
        template: str,
        args: Sequence[Expression],
        needs: Sequence[int],
        precedence: int,
        type_: str,
        hint: str,
        data: Any,
    ) -> None:
        self.template, self.args, self.needs, self.precedence = template, args, needs, precedence
        self.type, self.hint, self.data = type_, hint, data
        self.reads: LocalVariable | str | None = None
        self.text = ""
        self.uses = 0
        self.at = self.place = -1  # its item, and the item that it is written in
        self.block: Block | None = None  # of its item; None: an atom, which is written wherever it is used
        self.inline = False
        self.is_conditional = False  # its use is on one side of `? :`


class _Statement:
    """`template` is a whole line, with its semicolon or brace."""

    __slots__ = ("args", "block", "needs", "target", "template")

    def __init__(self, template: str, args: Sequence[Expression], needs: Sequence[int], block: Block) -> None:
        self.template, self.args, self.needs, self.block = template, args, needs, block
        self.target: LocalVariable | None = None  # of an assignment


class SourceText:
    """`declare(type, name, value, mutable)`: the line that declares a variable; value None: undefined yet.
    `data`: of expressions for which the builder gives none. `conditional_loads`: whether a read of memory may
    be moved into one side of `? :`."""

    def __init__(self, declare: Declare, data: Any = None, conditional_loads: bool = True) -> None:
        self._declare, self._data, self._conditional_loads = declare, data, conditional_loads
        self._items: list[Expression | _Statement] = []
        self._block = Block(None, -1)
        self._writes: list[int] = []  # the items that write memory
        self._names: dict[str, int] = {}

    # --- writing, in the order of execution

    def atom(self, text: str, type_: str, data: Any = None, precedence: int = ATOM) -> Expression:
        """A name or literal: written wherever it is used."""
        out = Expression(text, (), (), precedence, type_, "", self._data if data is None else data)
        out.text, out.inline = text, True
        return out

    def value(
        self,
        template: str,
        args: Sequence[Expression],
        type_: str,
        *,
        needs: Sequence[int] | int = ANY,
        precedence: int = ATOM,
        hint: str = "x",
        data: Any = None,
        reads: LocalVariable | str | None = None,
    ) -> Expression:
        """An expression; `needs` is the same for all args if it is a number. Its name begins with `hint`."""
        data = self._data if data is None else data
        out = Expression(template, args, _each(needs, args), precedence, type_, hint, data)
        out.reads, out.block, out.at = reads, self._block, len(self._items)
        self._items.append(out)
        return out

    def statement(self, template: str, args: Sequence[Expression], needs: Sequence[int] | int = ANY) -> None:
        """A line of its own, which may write any memory."""
        self._writes.append(len(self._items))
        self._items.append(_Statement(template, args, _each(needs, args), self._block))

    def open(self, template: str, args: Sequence[Expression], needs: Sequence[int] | int = ANY) -> None:
        """A line that opens a block, which stands for its brace."""
        item = _Statement(template, args, _each(needs, args), self._block)
        self._block = Block(self._block, len(self._items))
        self._items.append(item)

    def close(self) -> None:
        """Close the innermost block."""
        if self._block.parent is None:
            raise InternalError("SourceText.close: no block is open")
        item = _Statement("}}", (), (), self._block.parent)
        self._items.append(item)
        self._block = self._block.parent

    def variable(self, type_: str, hint: str, data: Any = None) -> LocalVariable:
        return LocalVariable(type_, hint, self._data if data is None else data)

    def read(self, variable: LocalVariable) -> Expression:
        """The variable's present value."""
        if not variable.writes:
            raise InternalError("SourceText.read: a variable is read before it is set")
        return self.value("", (), variable.type, hint=variable.hint, data=variable.data, reads=variable)

    def assign(self, variable: LocalVariable, value: Expression) -> None:
        variable.writes.append(len(self._items))
        item = _Statement("", (value,), (ANY,), self._block)
        item.target = variable
        self._items.append(item)

    def name(self, hint: str) -> str:
        """A new name: `x0`, `x1`, ..."""
        number = self._names.get(hint, 0)
        self._names[hint] = number + 1
        return f"{hint}{number}"

    # --- the text

    def lines(self, depth: int = 1) -> list[str]:
        """The function's body, indented."""
        if self._block.parent is not None:
            raise InternalError("SourceText.lines: a block is still open")
        self._find_uses()
        declared = self._find_scopes()
        out: list[str] = []
        for at, item in enumerate(self._items):
            if isinstance(item, Expression):
                if item.uses:
                    self._write_value(item, out, depth)
                continue
            indent = _INDENT * (depth + item.block.depth)
            for variable in declared.get(at, ()):
                variable.name = self.name(variable.hint)
                out.append(indent + self._declare(variable.type, variable.name, None, True))
            out.append(indent + self._statement(item))
        return out

    def _find_uses(self) -> None:
        """Count the uses of each value, from the last item to the first; decide which values are written as
        part of the expression that uses them, and in which item that is."""
        for at in range(len(self._items) - 1, -1, -1):
            item = self._items[at]
            place, block = at, item.block
            if isinstance(item, Expression):
                if not item.uses:
                    continue
                item.inline = item.uses == 1 and self._can_move(item)
                if item.inline:
                    place = item.place
            is_conditional = isinstance(item, Expression) and item.inline and item.is_conditional
            is_choice = isinstance(item, Expression) and item.precedence == SELECT
            for i, arg in enumerate(item.args):
                arg.is_conditional = is_conditional or (is_choice and i > 0)
                arg.uses += 1
                if arg.block is not None:
                    # A use in another block counts twice: the value keeps a line of its own in its block.
                    arg.uses += arg.block is not block
                    arg.place = place

    def _can_move(self, value: Expression) -> bool:
        """Whether nothing between a value and its use changes what it reads, and the use may read memory."""
        if value.reads is None:
            return True
        if value.reads == "memory" and value.is_conditional and not self._conditional_loads:
            return False
        writes = value.reads.writes if isinstance(value.reads, LocalVariable) else self._writes
        return bisect.bisect_right(writes, value.at) == bisect.bisect_left(writes, value.place)

    def _find_scopes(self) -> dict[int, list[LocalVariable]]:
        """Set the scope of each LocalVariable. Return, by item, the variables to declare before it, without a
        value."""
        variables: dict[LocalVariable, None] = {}
        for at, item in enumerate(self._items):
            if isinstance(item, Expression):
                variable = item.reads if item.uses and isinstance(item.reads, LocalVariable) else None
            else:
                variable = item.target
            if variable is None:
                continue
            assert item.block is not None
            if variable not in variables:
                variables[variable] = None
                variable.scope, variable.first = item.block, at
            else:
                assert variable.scope is not None
                variable.scope = _common_block(variable.scope, item.block)
        declared: dict[int, list[LocalVariable]] = {}
        for variable in variables:
            block = self._items[variable.first].block
            assert block is not None
            if block is variable.scope:
                continue  # its first assignment declares it
            while block.parent is not variable.scope:
                assert block.parent is not None
                block = block.parent
            declared.setdefault(block.at, []).append(variable)
        return declared

    def _write_value(self, value: Expression, out: list[str], depth: int) -> None:
        assert value.block is not None
        text = value.reads.name if isinstance(value.reads, LocalVariable) else _text_of(value)
        if value.inline and len(text) <= _MAX_INLINE:
            value.text = text
            return
        value.text, value.precedence, value.inline = self.name(value.hint), ATOM, False
        line = self._declare(value.type, value.text, text, False)
        out.append(_INDENT * (depth + value.block.depth) + line)

    def _statement(self, item: _Statement) -> str:
        variable = item.target
        if variable is None:
            return _text_of(item)
        text = item.args[0].text
        if not variable.name:
            variable.name = self.name(variable.hint)
            return self._declare(variable.type, variable.name, text, True)
        value = item.args[0]
        if value.inline and value.template in _COMPOUND and value.args[0].reads is variable:
            if value.args[0].text == variable.name:
                return f"{variable.name} {_COMPOUND[value.template]} {value.args[1].text};"
        return f"{variable.name} = {text};"


def _each(needs: Sequence[int] | int, args: Sequence[Expression]) -> Sequence[int]:
    """The precedence that each argument needs; `needs` may be one for all."""
    return [needs] * len(args) if isinstance(needs, int) else needs


def _text_of(item: Expression | _Statement) -> str:
    """The template with the texts of the arguments, in parentheses where they need them."""
    texts = [
        a.text if a.precedence >= need else f"({a.text})"
        for a, need in zip(item.args, item.needs, strict=True)
    ]
    return item.template.format(*texts)


def _common_block(a: Block, b: Block) -> Block:
    """The innermost block that contains both."""
    while a is not b:
        if a.depth >= b.depth:
            assert a.parent is not None
            a = a.parent
        else:
            assert b.parent is not None
            b = b.parent
    return a
