"""`python -m tests.parity [dump CASE | counts [PROGRAM...]]`: the recorded cases' table, one case's kernels
beside the recorded ones, or the kernel counts of the comparison programs beside those of tinygrad 0.14.
"""

from __future__ import annotations

import difflib
import sys

from tests.parity.compare import DIVERGENCES, compare, kernels_of, load_cases, names_of, outputs_of
from tests.parity.counts import HEADER, rows, totals
from tests.parity.programs import PROGRAMS


def table() -> int:
    """Print a row per case; how many failed."""
    failed = exact = 0
    print(f"{'case':32} values kernels structure sequence")
    for name, case in load_cases().items():
        r = compare(case)
        marks = [("ok" if x else "DIFF") for x in (r.values, r.kernels, r.structure, r.sequence)]
        print(f"{name:32} {marks[0]:6} {marks[1]:7} {marks[2]:9} {marks[3]:8} {'; '.join(r.why)}"[:180])
        failed += not r.passed
        exact += r.structure and r.sequence
    total = len(load_cases())
    print(f"{exact}/{total} in full mode")
    for name, reason in DIVERGENCES.items():
        print(f"documented divergence: {name}: {reason}")
    return failed


def dump(name: str) -> None:
    """Print a case's linear kernels beside the recorded ones, differences marked."""
    cases = load_cases()
    if name not in cases:
        raise SystemExit(f"dump: expected one of {', '.join(cases)}, got {name!r}")
    case = cases[name]
    ours = [names_of(k) for k in kernels_of(outputs_of(case))]
    theirs = case["kernels"]
    for i in range(max(len(ours), len(theirs))):
        a, b = (theirs[i] if i < len(theirs) else []), (ours[i] if i < len(ours) else [])
        print(f"kernel {i}: {'recorded':24} polygrad")
        for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
            for k in range(max(a1 - a0, b1 - b0)):
                left = a[a0 + k] if a0 + k < a1 else ""
                right = b[b0 + k] if b0 + k < b1 else ""
                print(f"{'  ' if tag == 'equal' else '* '}{left:24} {right}")


def counts(names: list[str]) -> int:
    """Print a row per program (of all, if none is named); how many are wrong."""
    unknown = set(names).difference(PROGRAMS)
    if unknown:
        raise SystemExit(f"counts: expected names in tests/parity/programs, got {', '.join(sorted(unknown))}")
    done = []
    print(HEADER)
    for row in rows(names or PROGRAMS):
        print(row, flush=True)
        done.append(row)
    print(totals(done))
    return sum(bool(r.why) for r in done)


if __name__ == "__main__":
    if sys.argv[1:2] == ["counts"]:
        sys.exit(1 if counts(sys.argv[2:]) else 0)
    elif sys.argv[1:2] == ["dump"]:
        dump(sys.argv[2])
    else:
        sys.exit(1 if table() else 0)
