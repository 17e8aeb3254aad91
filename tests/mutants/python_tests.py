"""Whether a quick test notices a change of Python.

The tests are collected once. A mutant is a fork of that process in which the changed function has its new
code, and which runs tests until one fails, those first that run the function (`traces.py`). Where the code of
a module changes, which runs when it is imported, a process imports all modules anew, and collects some tests
after others. A test that fails is tried without the change, too. What is compiled is kept by a digest of the
tree's code, so that no mutant finds what another compiled.
"""

from __future__ import annotations

import importlib
import itertools
import os
import random
import sys
import time
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType

import pytest

from mutants.change import Mutant, Note
from mutants.forks import in_fork
from mutants.new_code import Codes, functions_of, new_codes, replace_codes
from mutants.traces import Traces, digest_of, trace
from mutants.tree import BUILD, changed

_IMPORTED = ("numpy", "torch", "hypothesis", "llvmlite.binding", "wasmtime", "safetensors")
# WEBGPU has threads, which do not survive a fork.
_ARGUMENTS = ("-q", "-p", "no:cacheprovider", "--tb=line", "-m", "not slow and not e2e and not needs_adapter")
# Tests of programs around the library: few of them are quick, and none looks closely.
_PROGRAMS = (
    "bench",
    "browser",
    "cli",
    "distributed",
    "examples",
    "javascript",
    "libpolygrad",
    "node",
    "serve",
)
_AT_ONCE = 30  # tests that are collected for a mutant that needs all modules anew
_TRACED = 900.0  # seconds of a processor for traces


def enter_tree(tree: Path) -> None:
    """Make this process one that runs in a tree."""
    own = {os.getcwd(), f"{os.getcwd()}/tests", ""}
    sys.path[:] = [str(tree), *(p for p in sys.path if p not in own)]
    temporary = tree.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    # Bytecode of a mutant would be taken for its module's where size and second are the same.
    sys.dont_write_bytecode = True
    os.environ |= {
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(tree),
        "POLYGRAD_CACHE": str(BUILD / "cache"),
        "TMPDIR": str(temporary),
        "DEVICE": "CPU",
    }
    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}  # threads of OpenMP do not survive a fork
    os.chdir(tree)
    for name in _IMPORTED:
        importlib.import_module(name)


def test_files(tree: Path) -> dict[Path, str]:
    """The text of each file of tests, by its path in a tree."""
    files = sorted(p.relative_to(tree) for p in (tree / "tests").rglob("test_*.py"))
    return {p: (tree / p).read_text(encoding="utf-8") for p in files if p.parts[1] not in _PROGRAMS}


class _FirstFailure:
    """Writes down which test runs, and keeps the first one that failed, with a line that says how."""

    def __init__(self, current: Path) -> None:
        self.failed, self._current = "", current

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._current.write_text(nodeid)

    def _see(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            lines = str(crash.message if crash else report.longrepr).strip().splitlines()
            self.failed = f"{report.nodeid}\n{lines[0][:300] if lines else ''}"

    pytest_runtest_logreport = pytest_collectreport = _see


@dataclass(frozen=True)
class Collection:
    """A session of pytest that has collected its tests, in this process. Forks of it run some."""

    session: pytest.Session
    current: Path  # a file that says which test runs

    def run(self, tests: Iterable[str], seconds: float) -> str:
        """The first test that fails, and how, a line each; nothing where all pass, or the time is over."""
        by_name = {x.nodeid: x for x in self.session.items}
        items = [by_name[x] for x in tests]
        first = _FirstFailure(self.current)
        self.session.config.pluginmanager.register(first)
        for item, following in zip(items, [*items[1:], None]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if first.failed or time.process_time() > seconds:
                break
        return first.failed


class _Use:
    def __init__(self, tree: Path, use: Callable[[Collection], object]) -> None:
        self._tree, self._use = tree, use

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        self._use(Collection(session, Path(f"{self._tree}.current")))
        return True


def collect(tree: Path, paths: Iterable[str], use: Callable[[Collection], object]) -> str:
    """Collect tests, import polygrad for it, and `use` them; how that failed, if it did."""
    first = _FirstFailure(Path(f"{tree}.current"))
    status = pytest.main([*_ARGUMENTS, *paths], plugins=[first, _Use(tree, use)])
    is_good = status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
    return first.failed or ("" if is_good else f"{tree}\npytest ends with {status}")


class _Judge:
    """Runs tests in forks, and knows which ones fail without a change."""

    def __init__(self, tree: Path, seconds: float) -> None:
        self.tree, self.seconds = tree, seconds
        self._good: set[str] = set()
        self._bad: set[str] = set()

    def _fork(self, work: Callable[[], str]) -> str:
        """What `work` says in a fork, or how that ended."""
        done = in_fork(work, self.seconds, self.tree)
        if done.status == 0:
            return str(done.answer)
        how = "it does not end" if done.status is None else f"its process ends with {done.status}"
        return f"{Path(f'{self.tree}.current').read_text()}\n{how}"

    def judge(self, m: Mutant, run: Callable[[Container[str]], str], run_one: Callable[[str], str]) -> str:
        """The test that fails with a change and passes without. `run` runs tests but some, `run_one` one of
        them."""
        while True:
            with changed(self.tree / m.path, m.change):
                failed = self._fork(lambda: run(self._bad))
            test, _, how = failed.partition("\n")
            if "::" in test and test not in self._good:
                (self._bad if self._fork(lambda: run_one(test)) else self._good).add(test)  # noqa: B023
            if test not in self._bad:
                return f"{test}: {how}" if failed else ""


def _try_anew(judge: _Judge, m: Mutant, tests: Sequence[str]) -> str:
    """Collect some tests after others, in a process that imports all modules."""

    def run(names: Sequence[str]) -> str:
        failures = []

        def use(c: Collection) -> None:
            failures.append(c.run(names, judge.seconds))

        return collect(judge.tree, names, use) or failures[0]

    def run_some(without: Container[str]) -> str:
        names = [x for x in tests if x not in without]
        for i in range(0, len(names), _AT_ONCE):
            failed = run(names[i : i + _AT_ONCE])
            if failed or time.process_time() > judge.seconds:
                return failed
        return ""

    return judge.judge(m, run_some, lambda test: run([test]))


def _try_collected(
    judge: _Judge,
    m: Mutant,
    tests: Sequence[str],
    c: Collection,
    functions: list[FunctionType],
    codes: Codes,
) -> str:
    """Give the functions of a module their new code, where all tests are collected."""

    def run(without: Container[str]) -> str:
        replace_codes(functions, codes)
        if (cache := sys.modules.get("polygrad.engine.cache")) is not None:
            cache.code_digest.cache_clear()
        return c.run([x for x in tests if x not in without], judge.seconds)

    return judge.judge(m, run, lambda test: c.run([test], judge.seconds))


def _traces(tree: Path, files: Iterable[Path]) -> Traces:
    """Traces of the tests of a tree. They are kept."""
    kept = BUILD / f"traces-{digest_of(tree)}.json"
    if kept.exists():
        return Traces.from_json(kept.read_text())

    def work() -> str:
        traces: list[Traces] = []

        def use(c: Collection) -> None:
            items = list(c.session.items)
            random.Random(0).shuffle(items)
            timely = itertools.takewhile(lambda _: time.process_time() < _TRACED, items)
            traces.append(Traces([x.nodeid for x in items], [trace(x, tree) for x in timely]))

        collect(tree, map(str, files), use)
        return traces[0].to_json()

    done = in_fork(work, 2 * _TRACED, tree)
    if done.status != 0:
        raise RuntimeError(f"the process that traces tests ends with {done.status}: see {tree}.log")
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(done.answer)
    return Traces.from_json(done.answer)


def try_mutants(tree: Path, mutants: Sequence[Mutant], seconds: float, note: Note) -> None:
    """Try mutants in a tree, each for `seconds` of a processor. What is tried is noted."""
    enter_tree(tree)
    judge, files = _Judge(tree, seconds), test_files(tree)
    traces = _traces(tree, files)
    collected: list[tuple[Mutant, Codes]] = []
    for m in mutants:
        source = (tree / m.path).read_text(encoding="utf-8")
        codes = new_codes(f"{tree}/{m.path}", source, m.change.apply(source))
        if codes is None:
            note(m, lambda m=m: _try_anew(judge, m, traces.in_order(m, files)))
        else:
            collected.append((m, codes))

    def use(c: Collection) -> None:
        functions = functions_of(tree)
        for m, codes in collected:
            of_module, tests = functions[f"{tree}/{m.path}"], traces.in_order(m, files)
            note(
                m,
                lambda m=m, f=of_module, codes=codes, t=tests: _try_collected(judge, m, t, c, f, codes),
            )

    if collected:
        collect(tree, map(str, files), use)
