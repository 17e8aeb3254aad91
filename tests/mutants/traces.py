"""Which functions of polygrad each test runs: a mutant is shown first to the tests that run its function.

Tests are traced in random order, for some time. What polygrad remembers of an earlier test is not run again,
so a test alone may run more than its trace says.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType

import pytest

from mutants.change import Mutant

Function = tuple[str, int]  # a path in the tree, and the first line of a function there


@dataclass(frozen=True)
class Trace:
    """What a test of polygrad ran, and how long it took while it was traced."""

    test: str
    seconds: float  # of a processor
    functions: frozenset[Function]


def trace(item: pytest.Item, tree: Path) -> Trace:
    """Run a test and write down what it runs."""
    codes: set[CodeType] = set()

    def see(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            codes.add(frame.f_code)

    start = time.process_time()
    sys.setprofile(see)
    try:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    finally:
        sys.setprofile(None)
    seconds = round(time.process_time() - start, 3)
    ours = (c for c in codes if c.co_filename.startswith(f"{tree}/polygrad/"))
    functions = frozenset((c.co_filename[len(f"{tree}/") :], c.co_firstlineno) for c in ours)
    return Trace(item.nodeid, seconds, functions)


def digest_of(tree: Path) -> str:
    """A digest of the sources that decide which functions a test runs."""
    digest = hashlib.sha256()
    for folder in ("polygrad", "tests"):
        for path in sorted((tree / folder).rglob("*.py")):
            digest.update(f"{path.relative_to(tree)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def likeness(m: Mutant, file: Path, text: str) -> int:
    """How much a file of tests seems to be of a mutant's function: by its name, its folder, and its text."""
    module = Path(m.path)
    has_stem = (module.stem in file.stem) + (file.stem == f"test_{module.stem}")
    has_name = re.search(rf"\b{re.escape(m.change.name.strip('_') or module.stem)}\b", text)
    return 2 * has_stem + 2 * (file.parts[1] == module.parts[1]) + bool(has_name)


@dataclass(frozen=True)
class Traces:
    """All tests by their names, and traces of some."""

    tests: Sequence[str]
    traces: Sequence[Trace]

    def to_json(self) -> str:
        numbers: dict[Function, int] = {}
        traces = [
            (t.test, t.seconds, [numbers.setdefault(f, len(numbers)) for f in t.functions])
            for t in self.traces
        ]
        return json.dumps([self.tests, list(numbers), traces])

    @classmethod
    def from_json(cls, text: str) -> Traces:
        tests, places, traces = json.loads(text)
        functions = [(path, line) for path, line in places]
        return cls(tests, [Trace(name, s, frozenset(functions[i] for i in n)) for name, s, n in traces])

    def in_order(self, m: Mutant, files: Mapping[Path, str]) -> list[str]:
        """First the tests that run the mutant's function (of the code of a module: any function of it), then
        other cases of these, then all others. Of each, first those whose files are like the mutant, one case
        of each test before the second of any, and what takes less time before what takes more.

        files: the text of each file of tests
        """
        where = (m.path, m.change.function)
        covering = {
            t.test
            for t in self.traces
            if (where in t.functions if where[1] else any(path == m.path for path, _ in t.functions))
        }
        covering_tests = {x.partition("[")[0] for x in covering}
        seconds = {t.test: t.seconds for t in self.traces}
        likenesses = {str(file): likeness(m, file, text) for file, text in files.items()}
        tests = list(self.tests)
        random.Random(m.number).shuffle(tests)
        tests.sort(key=lambda x: seconds.get(x, 0.0))
        cases: defaultdict[tuple[int, str], int] = defaultdict(int)
        keys = {}
        for x in tests:
            test = x.partition("[")[0]
            group = 0 if x in covering else 1 if test in covering_tests else 2
            cases[group, test] += 1
            keys[x] = (group, -likenesses[x.partition("::")[0]], cases[group, test])
        return sorted(tests, key=keys.__getitem__)
