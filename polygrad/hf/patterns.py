"""Regular expressions of tokenizer files: one that could take exponential time is refused before it runs.

A backtracking engine takes exponential time where a repetition is itself repeated, `(a+)+`, or repeats a
choice, `(a|ab)*`, and on references to groups. No tokenizer needs them: they split text at categories of
characters. Knows the syntax that Oniguruma and JavaScript share, and no more of it than finding groups and
repetitions takes.
"""

from __future__ import annotations

import re

from polygrad.errors import ModelError

MAX_LENGTH = 20_000
_MAX_DEPTH = 100
_MAX_REPEATS = 1000
_COUNTED = re.compile(r"\{(\d*)(,?)(\d*)\}")
_OPENING = re.compile(r"\(\?(?:[:=!>]|<[=!]|i:|<[A-Za-z_]\w*>)")


def check_pattern(pattern: str, where: str) -> None:
    """Raises ModelError, beginning with `where`, for a regular expression that could run for ever."""
    if len(pattern) > MAX_LENGTH:
        raise ModelError(f"{where}: a pattern of {len(pattern)} characters, expected at most {MAX_LENGTH}")
    # For each group that is open: whether anything in it repeats without end, or is a choice.
    groups = [False]
    closed: bool | None = None  # of the group that ends here
    at = 0
    while at < len(pattern):
        char = pattern[at]
        unbounded, at_next = _repetition(pattern, at, where)
        if at_next > at:
            if unbounded and closed:
                raise ModelError(
                    f"{where}: pattern {_shortened(pattern)} repeats a group that repeats or chooses "
                    f"(character {at}), which can take exponential time"
                )
            groups[-1] |= unbounded
            at = at_next
            closed = closed if unbounded is False else None
            continue
        closed = None
        if char == "\\":
            if re.match(r"\\[1-9kg]", pattern[at:]):
                raise ModelError(f"{where}: pattern {_shortened(pattern)} refers to a group (character {at})")
            at += 2
        elif char == "[":
            at = _class_end(pattern, at, where)
        elif char == "(":
            opening = _OPENING.match(pattern, at)
            if pattern.startswith("(?", at) and not opening:
                raise ModelError(
                    f"{where}: pattern {_shortened(pattern)} has a kind of group that is not read "
                    f"(character {at})"
                )
            groups.append(False)
            if len(groups) > _MAX_DEPTH:
                raise ModelError(f"{where}: a pattern of more than {_MAX_DEPTH} groups in one another")
            at = opening.end() if opening else at + 1
        elif char == ")":
            if len(groups) == 1:
                raise ModelError(
                    f"{where}: pattern {_shortened(pattern)} closes a group that it did not open"
                )
            closed = groups.pop()
            groups[-1] |= closed
            at += 1
        else:
            groups[-1] |= char == "|"
            at += 1
    if len(groups) > 1:
        raise ModelError(f"{where}: pattern {_shortened(pattern)} opens a group that it does not close")


def _repetition(pattern: str, at: int, where: str) -> tuple[bool, int]:
    """Whether a quantifier at `at` repeats without end (or very often), and where it ends: `at` if there is
    none.
    """
    if pattern[at] in "*+":
        return True, at + 1
    if pattern[at] == "?":
        return False, at + 1
    counted = _COUNTED.match(pattern, at)
    if not counted or counted[0] in ("{}", "{,}"):
        return False, at
    least, comma, most = counted.groups()
    largest = max(int(x or 0) for x in (least[:9], most[:9]))
    if largest > _MAX_REPEATS:
        raise ModelError(
            f"{where}: pattern {_shortened(pattern)} repeats {largest} times, expected at most {_MAX_REPEATS}"
        )
    fixed = not comma or least == most
    return bool(comma and not most) or (largest > 1 and not fixed), counted.end()


def _class_end(pattern: str, at: int, where: str) -> int:
    """Where the class of characters ends that begins at `at`; classes may be nested."""
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
        f"{where}: pattern {_shortened(pattern)} has a class that does not end (character {start})"
    )


def _shortened(pattern: str) -> str:
    return repr(pattern if len(pattern) <= 80 else pattern[:77] + "...")
