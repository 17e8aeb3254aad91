"""Makes a program that fails smaller: fewer steps, fewer outputs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from soak.program import Program


def kind_of(message: str) -> str:
    """By which failures are told apart: the message up to its first number."""
    return re.split(r"\d", message, maxsplit=1)[0]


def reduced(p: Program, message: str, failure: Callable[[Program], str]) -> tuple[Program, str]:
    """The smallest program found that fails in the same way, and its message. `failure` gives a program's."""
    while True:
        for q in smaller(p):
            found = failure(q)
            if found and kind_of(found) == kind_of(message):
                p, message = q, found
                break
        else:
            return p, message


def smaller(p: Program) -> list[Program]:
    """Simpler programs than `p`, the simplest first: fewer steps, fewer outputs."""
    out = []
    first = len(p.roots)
    for i in range(len(p.steps)):  # step i gives what it reads
        number = first + i

        def renamed(v: int, number: int = number, source: int = p.steps[i].x) -> int:
            return source if v == number else v - (v > number)

        steps = tuple(replace(s, x=renamed(s.x)) for j, s in enumerate(p.steps) if j != i)
        out.append(replace(p, steps=steps, outputs=tuple(sorted({renamed(v) for v in p.outputs}))))
    for i in range(len(p.steps)):  # nothing after step i
        out.append(replace(p, steps=p.steps[: i + 1], outputs=(first + i,)))
    if len(p.outputs) > 1:
        out += [replace(p, outputs=(o,)) for o in p.outputs]
    return sorted((q for q in out if _size(q) < _size(p)), key=_size)


def _size(p: Program) -> tuple[int, int]:
    return len(p.steps), len(p.outputs)
