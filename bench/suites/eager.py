"""What runs as it is written, nothing captured, and the first call of a product: rows of suite breadth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bench.contest import Case, Contest, agrees
from bench.goals import milliseconds, times_best_peer
from bench.hosts import CHROMIUM, CPYTHON, DEVICES, NODE, Unavailable, pyodide_node
from bench.report import Result

SUITE = "breadth"
FIRST_CALLS, PRODUCT = 3, {"m": 1024, "k": 1024, "n": 1024}
TIMES_STEADY = 3.0  # what a first call may take
LEAST = 0.8  # of the best peer's speed, as of every row


@dataclass(frozen=True)
class Eager:
    """A program, and the milliseconds that a step of it may take on each host."""

    name: str
    kind: str
    limits: dict[str, float]


EAGER = [
    Eager("eager: y * 1.0001 + x, four elements", "eager-update", {CPYTHON: 0.040, NODE: 0.060}),
    Eager("eager: MLP 64×784→128→10, SGD", "eager-mlp", {CPYTHON: 1.0, NODE: 1.43}),
]
SELECTIONS = {
    "algorithm: masked_select of 1 M": "masked_select",
    "algorithm: nonzero of 1 M": "nonzero",
    "algorithm: unique of 1 M": "unique",
    "algorithm: searchsorted, 1 M in 1 M": "searchsorted",
}
MILLION = 1 << 20
FIRST_CALL = "first call: product 1024"


def run(contest: Contest, wanted: Callable[[str, str], bool]) -> Iterator[Result]:
    """The rows whose (name, host) are wanted."""
    for row in EAGER:
        if wanted(row.name, CPYTHON):
            goals = (milliseconds(row.limits[CPYTHON]),)
            yield contest.measure(Case(row.name, row.kind, {}, CPYTHON, 1, ("torch",), goals))
        if wanted(row.name, NODE):
            yield in_node(contest, row)
    for name, op in SELECTIONS.items():
        if wanted(name, CPYTHON):
            sizes, goals = {"op": op, "size": MILLION}, (times_best_peer(LEAST, "lower"),)
            yield contest.measure(Case(name, "eager-selection", sizes, CPYTHON, 1, ("numpy", "torch"), goals))
    if wanted(FIRST_CALL, CHROMIUM):
        yield first_call(contest)


def in_node(contest: Contest, row: Eager) -> Result:
    """Alone: no peer runs there."""
    limit, skipped, value = row.limits[NODE], {}, None
    try:
        measured = pyodide_node("polygrad", row.kind)
        if not agrees(measured["check"], sum(contest.reference(row.kind, {}))):
            raise Unavailable(f"wrong result: the check is {measured['check']}")
        value = measured["value"]
    except Unavailable as reason:
        skipped["polygrad"] = str(reason)
    return result(row.name, NODE, value, "ms", f"≤ {limit:g} ms", limit, skipped)


def first_call(contest: Contest) -> Result:
    """How many times as long as later calls the first one takes, in a page that has computed nothing."""
    firsts, steadies, skipped = [], [], {}
    try:
        for _ in range(FIRST_CALLS):
            first, steady = contest.in_fresh_page("polygrad", 1, "first-call", PRODUCT)
            firsts.append(first)
            steadies.append(steady)
    except Unavailable as reason:
        skipped["polygrad"] = str(reason)
        return result(FIRST_CALL, CHROMIUM, None, "×", "-", 0.0, skipped)
    words = f"≤ {TIMES_STEADY:g}× later ones; {min(firsts) * 1e3:.3g} ms, later {min(steadies) * 1e3:.3g} ms"
    return result(FIRST_CALL, CHROMIUM, min(firsts) / min(steadies), "×", words, TIMES_STEADY, skipped)


def result(
    case: str, host: str, value: float | None, unit: str, target: str, limit: float, skipped: dict[str, str]
) -> Result:
    return Result(
        suite=SUITE,
        case=case,
        host=host,
        device=DEVICES[host],
        value=value,
        unit=unit,
        better="lower",
        target=target,
        met=value is not None and value <= limit,
        skipped=skipped,
    )
