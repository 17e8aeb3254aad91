"""Which quick tests enter a function, and whether one of them fails.

`record` runs a file of tests with the source as it is, and notes which tests enter which functions of
polygrad. The tests of a mutant are the files that enter the changed function, and the tests of a file that
enter it come first. Each file runs in a fork of this process, which has imported what tests need besides
polygrad. Nothing compiled is kept from one to the next (`POLYGRAD_CACHE=off`).
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import re
import resource
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

from mutants.change import Change

_IMPORTED = ("numpy", "torch", "hypothesis", "llvmlite.binding", "wasmtime", "safetensors")
_ARGUMENTS = ("-q", "-p", "no:cacheprovider", "-m", "not slow and not e2e")
_RECORDED = 8.0  # seconds of a processor, for a file of tests
_ENTERING = 60  # tests of a file that are noted for a function; no more run for it
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
_DATA_BYTES = 8 << 30
_SLOW = 8  # times as long as on a machine of one's own
_PATIENCE = 15.0  # seconds for any test; ten times what its file's longest takes come on top


@dataclass
class FileOfTests:
    """How a file of tests went with the source as it is."""

    path: str
    longest: float = 0.0  # of its tests, in seconds
    tests: list[str] = field(default_factory=list)  # node ids
    failed: list[str] = field(default_factory=list)
    is_whole: bool = True  # it had time for all of them
    functions: dict[str, list[int]] = field(default_factory=dict)  # "path:first line" -> places in `tests`


class _Recorder:
    """Notes which tests enter which functions. What is entered before the first test counts for the file."""

    def __init__(self, tree: Path, file: FileOfTests, seconds: float) -> None:
        self._prefix, self.file, self._seconds = f"{tree}/", file, seconds
        self._codes: dict[int, CodeType] = {}  # they stay alive, so that none has the number of another
        self._entered: set[int] = set()

    def enter(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if id(code) not in self._entered:
            self._entered.add(id(code))
            self._codes[id(code)] = code

    def _note(self, test: list[int]) -> None:
        for number in list(self._entered):
            code = self._codes[number]
            if code.co_filename.startswith(f"{self._prefix}polygrad/"):
                line = 0 if code.co_name == "<module>" else code.co_firstlineno
                tests = self.file.functions.setdefault(
                    f"{code.co_filename.removeprefix(self._prefix)}:{line}", []
                )
                tests += test[: _ENTERING - len(tests)]
        self._entered.clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Any:
        self._note([])
        self.file.tests = [item.nodeid for item in session.items]
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        start = time.monotonic()
        try:
            return (yield)
        finally:
            sys.settrace(self.enter)  # a test may have set another
            self._note([self.file.tests.index(item.nodeid)])
            self.file.longest = max(self.file.longest, round(time.monotonic() - start, 2))
            if time.process_time() > self._seconds:
                self.file.is_whole, item.session.shouldstop = False, "the time for this file is over"

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and report.nodeid not in self.file.failed:
            self.file.failed.append(report.nodeid)


class _Judge:
    """Runs the tests that enter a function, or all if none is known to; keeps the first failure."""

    def __init__(self, file: FileOfTests, function: str, seconds: float) -> None:
        self._seconds, self.failed, self.has_time = seconds, "", True
        self._chosen = {file.tests[i] for i in file.functions.get(function, ())} or set(file.tests)
        self._chosen -= set(file.failed)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [x for x in items if x.nodeid in self._chosen]

    def _see(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            lines = str(crash.message if crash else report.longrepr).strip().splitlines()
            self.failed = f"{report.nodeid}: {lines[0] if lines else ''}"[:300]

    pytest_runtest_logreport = pytest_collectreport = _see

    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        if nextitem is not None and time.process_time() > self._seconds:
            self.has_time, item.session.shouldstop = False, "the time for this mutant is over"


def _as_in_tree(tree: Path) -> None:
    """Make this process, a fork, one that runs in a tree."""
    own = {os.getcwd(), f"{os.getcwd()}/tests", ""}
    sys.path[:] = [str(tree), *(p for p in sys.path if p not in own)]
    temporary = tree.parent / "temporary"
    temporary.mkdir(exist_ok=True)
    os.environ |= {
        "PYTHONPATH": str(tree),
        "POLYGRAD_CACHE": "off",
        "TMPDIR": str(temporary),
        "DEVICE": "CPU",
    }
    os.chdir(tree)
    resource.setrlimit(resource.RLIMIT_DATA, (_DATA_BYTES, _DATA_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@dataclass(frozen=True)
class _Done:
    """How a fork ended: None for a status if it took too long, a negative one for a signal."""

    status: int | None
    answer: Any
    seconds: float  # of processors


def _in_fork(tree: Path, work: Callable[[], Any], patience: float) -> _Done:
    """Do `work`, which gives JSON, in a process that begins where this one is."""
    for name in _IMPORTED:
        importlib.import_module(name)
    log, answer = Path(f"{tree}.log"), Path(f"{tree}.answer")
    answer.unlink(missing_ok=True)
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        os.setsid()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        status = 1
        try:
            _as_in_tree(tree)
            answer.write_text(json.dumps(work()))
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    end, done = time.monotonic() + patience, 0
    while not done and time.monotonic() < end:
        time.sleep(0.01)
        done, code, usage = os.wait4(pid, os.WNOHANG)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # also what its tests started
    if not done:
        _, code, usage = os.wait4(pid, 0)
    status = os.waitstatus_to_exitcode(code) if done else None
    seconds = usage.ru_utime + usage.ru_stime
    return _Done(status, json.loads(answer.read_text()) if status == 0 else None, seconds)


def record(tree: Path, path: str, seconds: float) -> FileOfTests | None:
    """How a file of tests goes in `seconds` of a processor; None if its process ends or takes far longer."""

    def work() -> dict[str, Any]:
        recorder = _Recorder(tree, FileOfTests(path), seconds)
        threading.settrace(recorder.enter)
        sys.settrace(recorder.enter)
        pytest.main([*_ARGUMENTS, path], plugins=[recorder])
        sys.settrace(None)
        return asdict(recorder.file)

    answer = _in_fork(tree, work, _SLOW * seconds + 60).answer
    return None if answer is None else FileOfTests(**answer)


def run(tree: Path, file: FileOfTests, function: str, seconds: float) -> tuple[str, float]:
    """The first test that fails, and how (nothing where all pass, or the time is over); the time it took."""
    patience = _PATIENCE + 10 * file.longest

    def work() -> str:
        judge = _Judge(file, function, seconds)
        options = ["-x", "--tb=line", f"--timeout={patience}"]
        status = pytest.main([*_ARGUMENTS, *options, file.path], plugins=[judge])
        if status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED) or not judge.has_time:
            return judge.failed
        return judge.failed or f"{file.path}: pytest ended with {status}"

    done = _in_fork(tree, work, _SLOW * seconds + patience)
    if done.status == 0:
        return str(done.answer), done.seconds
    how = "it does not end" if done.status is None else f"its process ended with {done.status}"
    return f"{file.path}: {how}", done.seconds


def _digest(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class PythonTests:
    """Tries mutants in `tree`; `original` is one that stays as it is. Records are kept in a folder."""

    def __init__(self, tree: Path, original: Path, folder: Path) -> None:
        self._tree, self._original, self._kept = tree, original, folder / "tests.json"
        self._records = json.loads(self._kept.read_text()) if self._kept.exists() else {}
        self._source = _digest(sorted((original / "polygrad").rglob("*.py")))
        found = (p.relative_to(original) for p in (original / "tests").rglob("test_*.py"))
        self._paths = sorted(p for p in found if p.parts[1] not in _PROGRAMS)
        self._texts = {p: (original / p).read_text(encoding="utf-8") for p in self._paths}
        self._kills: dict[Path, int] = defaultdict(int)
        self._spent: dict[Path, float] = defaultdict(float)

    def _record(self, path: Path) -> FileOfTests:
        """What is known of a file of tests; it runs if nothing is."""
        name, digest = str(path), f"{self._source} {_digest([self._original / path])}"
        if name not in self._records or self._records[name][0] != digest:
            file = record(self._original, name, _RECORDED) or FileOfTests(name)
            self._records[name] = digest, asdict(file)
            self._kept.write_text(json.dumps(self._records))
        return FileOfTests(**self._records[name][1])

    def _in_order(self, module: Path, name: str) -> Iterator[tuple[Path, bool]]:
        """Files of tests, and whether they seem to be of a function: those of its module's name, those in its
        folder that have its name, those with either; then what has killed most in a second."""
        word = re.compile(rf"\b{re.escape(name.strip('_'))}\b")

        def order(test: Path) -> tuple[int, float]:
            named, beside = bool(word.search(self._texts[test])), test.parts[1] == module.parts[1]
            rank = 0 if module.stem in test.stem else 3 - 1 * beside - 1 * (named and bool(name))
            return rank, -(0.2 + self._kills[test]) / (5 + self._spent[test])

        return ((t, order(t)[0] < 3) for t in sorted(self._paths, key=order))

    def judge(self, path: str, change: Change, seconds: float) -> tuple[str, int]:
        """What kills a mutant, and how many files of tests ran, for `seconds` of a processor."""
        function, count = f"{path}:{change.function}", 0
        for test, is_near in self._in_order(Path(path), change.name):
            if seconds <= 0:
                break
            file = self._record(test)
            if function not in file.functions and (file.is_whole or not is_near):
                continue
            failed, taken = run(self._tree, file, function, seconds)
            seconds, count = seconds - taken, count + 1
            self._kills[test] += bool(failed)
            self._spent[test] += taken
            if failed:
                return failed, count
        return "", count
