"""Regular expressions of tokenizer files: one that could take exponential time is refused before it runs.

A backtracking engine takes exponential time where a repetition is itself repeated, `(a+)+`, or repeats a
choice, `(a|ab)*`, where many optional parts follow each other, `a?a?a?aaa`, and on references to groups. No
tokenizer needs them: they split text at categories of characters. Knows the syntax that Oniguruma and
JavaScript share, and no more of it than finding groups and repetitions takes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from polygrad.errors import ModelError

MAX_LENGTH = 20_000
_MAX_DEPTH = 100
_MAX_REPEATS = 1000
_MAX_VARIABLE = 8  # quantifiers in one alternative
_MAX_UNBOUNDED = 3  # of them without an end: the time is a power of the length
_COUNTED = re.compile(r"\{(\d*)(,?)(\d*)\}")
_OPENING = re.compile(r"\(\?(?:[:=!>]|<[=!]|i:|<[A-Za-z_]\w*>)")


@dataclass(slots=True)
class _RegexGroup:
    """The facts about a group while it is read: of its current alternative, and of the worst earlier one."""

    repeats: bool = False  # something in it repeats, or it is a choice
    variable: int = 0
    unbounded: int = 0
    worst_variable: int = 0
    worst_unbounded: int = 0

    def end_alternative(self) -> None:
        self.worst_variable = max(self.worst_variable, self.variable)
        self.worst_unbounded = max(self.worst_unbounded, self.unbounded)
        self.variable = self.unbounded = 0


@dataclass(frozen=True, slots=True)
class _Quantifier:
    """A quantifier: the range of repetitions (`largest` None: unbounded), and its `end` in the pattern."""

    least: int
    largest: int | None
    end: int


def check_pattern(pattern: str, where: str) -> None:
    """Raises ModelError, which begins with `where`, for a regular expression that could take exponential
    time."""
    if len(pattern) > MAX_LENGTH:
        raise ModelError(f"{where}: a pattern of {len(pattern)} characters, expected at most {MAX_LENGTH}")
    groups = [_RegexGroup()]
    closed: _RegexGroup | None = None  # the group that ends here
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if quantifier := _quantifier(pattern, at, where):
            _repeat(groups[-1], closed, quantifier, f"{where}: pattern {_shorten(pattern)}", at)
            at = quantifier.end
            continue
        closed = None
        if char == "\\":
            if re.match(r"\\[1-9kg]", pattern[at:]):
                raise ModelError(f"{where}: pattern {_shorten(pattern)} refers to a group (character {at})")
            at += 2
        elif char == "[":
            at = _class_end(pattern, at, where)
        elif char == "(":
            opening = _OPENING.match(pattern, at)
            if pattern.startswith("(?", at) and not opening:
                raise ModelError(
                    f"{where}: pattern {_shorten(pattern)} has a kind of group that is not read "
                    f"(character {at})"
                )
            groups.append(_RegexGroup())
            if len(groups) > _MAX_DEPTH:
                raise ModelError(f"{where}: a pattern of more than {_MAX_DEPTH} groups in one another")
            at = opening.end() if opening else at + 1
        elif char == ")":
            if len(groups) == 1:
                raise ModelError(f"{where}: pattern {_shorten(pattern)} closes a group that it did not open")
            closed = groups.pop()
            closed.end_alternative()
            groups[-1].repeats |= closed.repeats
            groups[-1].variable += closed.worst_variable
            groups[-1].unbounded += closed.worst_unbounded
            at += 1
        else:
            if char == "|":
                groups[-1].repeats = True
                groups[-1].end_alternative()
            at += 1
    if len(groups) > 1:
        raise ModelError(f"{where}: pattern {_shorten(pattern)} opens a group that it does not close")


def _repeat(
    group: _RegexGroup, closed: _RegexGroup | None, quantifier: _Quantifier, what: str, at: int
) -> None:
    """Count a quantifier of `group`, of a single character or of the group `closed`."""
    least, largest = quantifier.least, quantifier.largest
    if least != largest:
        if largest != 1 and closed and closed.repeats:
            raise ModelError(
                f"{what} repeats a group that repeats or chooses (character {at}), "
                "which can take exponential time"
            )
        group.variable += 1
        group.unbounded += largest is None
        group.repeats |= largest != 1
    elif closed:
        group.variable += (least - 1) * closed.worst_variable
        group.unbounded += (least - 1) * closed.worst_unbounded
    if group.variable > _MAX_VARIABLE or group.unbounded > _MAX_UNBOUNDED:
        raise ModelError(
            f"{what} has too many repetitions and options after one another (character {at}), which can take "
            "exponential time"
        )


def _quantifier(pattern: str, at: int, where: str) -> _Quantifier | None:
    """The quantifier at `at`, if there is one."""
    if pattern[at] in "*+?":
        return _Quantifier(int(pattern[at] == "+"), 1 if pattern[at] == "?" else None, at + 1)
    counted = _COUNTED.match(pattern, at)
    if not counted or counted[0] in ("{}", "{,}"):
        return None
    least, comma, largest = counted.groups()
    first = int(least[:9] or 0)
    last = (int(largest[:9]) if largest else None) if comma else first
    if max(first, last or 0) > _MAX_REPEATS:
        raise ModelError(
            f"{where}: pattern {_shorten(pattern)} repeats {max(first, last or 0)} times, expected at most "
            f"{_MAX_REPEATS}"
        )
    return _Quantifier(first, last, counted.end())


def _class_end(pattern: str, at: int, where: str) -> int:
    """The end of the character class that begins at `at`; classes may be nested."""
    depth, start = 0, at
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 2
            continue
        if pattern.startswith("[:", at) and (end := pattern.find(":]", at)) > 0:
            at = end + 2
            continue
        if pattern[at] == "[":
            depth += 1
            # A bracket that comes first is a character.
            first = at + 2 if pattern.startswith("[^", at) else at + 1
            at = first + 1 if pattern.startswith("]", first) else first
            continue
        if pattern[at] == "]":
            depth -= 1
            if not depth:
                return at + 1
        at += 1
    raise ModelError(
        f"{where}: pattern {_shorten(pattern)} has a class that does not end (character {start})"
    )


def _shorten(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 80 else pattern[:77] + "...")
