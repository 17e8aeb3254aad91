"""That all ranks have the same model and run the same Program: compared once, when a step is captured."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from polygrad.capture.captured_program import BeginStep, CapturedProgram, ProgramStep
from polygrad.distributed.messages import all_gather_json
from polygrad.errors import RankError
from polygrad.runtime.program import Program

T = TypeVar("T")
PATIENCE = 600.0  # seconds for other ranks to compile


def together(what: str, make: Callable[[], T], facts: Callable[[T], dict[str, Any]]) -> T:
    """`make()`, on all ranks, whose `facts` about the result have to be equal.

    Raises RankError where another rank's differ, with the rank and the first difference, or where another
    rank has raised; and what `make` raises.
    """
    try:
        made = make()
        own = {"facts": facts(made)}
    except BaseException as e:
        if isinstance(e, Exception):
            all_gather_json({"error": f"{type(e).__name__}: {e}"}, what, PATIENCE)
        raise
    answers = all_gather_json(own, what, PATIENCE)
    for other, answer in enumerate(answers):
        if "error" in answer:
            raise RankError(f"{what}: rank {other}: {answer['error']}", (other,))
    raise_for_difference(what, [answer["facts"] for answer in answers])
    return made


def raise_for_difference(what: str, facts: Sequence[dict[str, Any]]) -> None:
    """Raises RankError unless all ranks' facts are equal. The ranks that differ are those that most others
    do not agree with. Where targets differ, what is compiled for them is not compared."""
    if len({json.dumps(f.get("target")) for f in facts}) > 1:
        facts = [{**f, "target": None, "code": []} for f in facts]
    texts = [json.dumps(f, sort_keys=True) for f in facts]
    common = Counter(texts).most_common(1)[0][0]
    odd = [i for i, text in enumerate(texts) if text != common]
    if odd:
        majority = texts.index(common)
        raise RankError(
            f"{what}: rank {odd[0]} differs from rank {majority}: "
            f"{_difference(facts[odd[0]], facts[majority])}",
            tuple(odd),
        )


def _difference(odd: dict[str, Any], majority: dict[str, Any]) -> str:
    """The first fact that differs, in words."""
    for name, theirs in majority.items():
        own = odd[name]
        if own == theirs:
            continue
        if not isinstance(theirs, list):
            return f"{name}: {own} instead of {theirs}"
        if len(own) != len(theirs):
            return f"{name}: {len(own)} instead of {len(theirs)}"
        i = next(i for i, (a, b) in enumerate(zip(own, theirs, strict=True)) if a != b)
        return f"{name}, number {i}: {own[i]} instead of {theirs[i]}"
    return "nothing that is known"


def facts_of_program(captured: CapturedProgram) -> dict[str, Any]:
    """What ranks compare: the target, the exchanges, and in the code the kernels and launches of each
    Program, as hashes."""
    programs = [step.unlinked for step in captured.steps if isinstance(step, ProgramStep)]
    return {
        "target": sorted({p.target for p in programs}),
        "exchanges": [step.label for step in captured.steps if isinstance(step, BeginStep)],
        "code": [_digest(p) for p in programs],
    }


def _digest(program: Program) -> str:
    sha = hashlib.sha256(program.to_bytes()).hexdigest()[:16]
    return f"a Program of {len(program.launches)} launches with the hash {sha}"
