"""Whether a test notices a change of TypeScript.

First the unit tests that load the file, which source maps tell. Then, while there is time, the packages are
built and tests of the JavaScript API run, those of the file's name first. Only hosts in Node are asked.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from mutants.change import Mutant, Note
from mutants.tree import changed, make_tree

_SLOW = 8  # times as long as on a machine of one's own
_UNIT_SECONDS = 60.0  # of all unit tests of a file, and more than ten times what they take
_END_TO_END_SECONDS = 300.0
_MAP = "sourceMappingURL=data:application/json;base64,"
_PYTEST = ("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=line")
_SELECTED = ("-m", "e2e and not slow", "-k", "not chromium and not worker")


def _seconds() -> float:
    """What ended children took of processors."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _run(tree: Path, command: list[str], seconds: float) -> tuple[int | None, str]:
    """The exit status, None if it does not end, and what is written."""
    env = {**os.environ, "PYTHONPATH": str(tree)}
    process = subprocess.Popen(
        command, cwd=tree, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        out, status = process.communicate(timeout=_SLOW * seconds)[0], process.returncode
    except subprocess.TimeoutExpired:
        out, status = b"", None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    return status, out.decode(errors="replace")


def _first(pattern: str, out: str) -> str:
    match = re.search(pattern, out, re.MULTILINE)
    return match.group(1) if match else "\n".join(out.strip().splitlines()[-1:])


def try_mutants(tree: Path, mutants: Sequence[Mutant], seconds: float, note: Note) -> None:
    """Try mutants in a tree, each for `seconds` of a processor. What is tried is noted."""
    tests = _Tests(tree, make_tree(tree.parent / "original"))
    for m in mutants:
        with changed(tree / m.path, m.change):
            note(m, lambda m=m: tests.failure(m.path, seconds))


class _Tests:
    """Tests of `tree`; `original` stays as it is."""

    def __init__(self, tree: Path, original: Path) -> None:
        self._tree, self._original = tree, original
        status, out = _run(original, ["node", "scripts/test.mjs"], _END_TO_END_SECONDS)
        assert status == 0, out[-2000:]
        self._units: dict[str, list[str]] = defaultdict(list)
        built = original / "build/tests"
        for bundle in sorted(built.rglob("*.test.mjs")):
            test = bundle.relative_to(built).as_posix().replace(".mjs", ".ts")
            sources = json.loads(base64.b64decode(bundle.read_text().rpartition(_MAP)[2]))["sources"]
            for source in sources:
                self._units[os.path.relpath(bundle.parent / source, original)].append(test)
        tests = sorted((original / "tests").rglob("test_*.py"))
        self._end_to_end = [p.relative_to(original) for p in tests if "javascript_hosts" in p.read_text()]
        self._kills: dict[Path, int] = defaultdict(int)
        self._spent: dict[Path, float] = defaultdict(float)

    def failure(self, path: str, seconds: float) -> str:
        """The test that fails with a file that has a change, and passes without; nothing if none does."""
        begin, units = _seconds(), self._units[path]
        if units:
            status, out = _run(self._tree, ["node", "scripts/test.mjs", *units], _UNIT_SECONDS)
            if status != 0:
                name = "unit tests do not end" if status is None else _first(r"^\s*✖ (.*?)(?: \(.*)?$", out)
                return f"{units[0] if len(units) == 1 else 'npm test'}: {name}"[:300]
        is_built = False
        for test in self._in_order(path):
            if _seconds() - begin >= seconds:
                break
            if not is_built:
                _build(self._tree)
                is_built = True
            start = _seconds()
            failed = self._end_to_end_failure(test)
            self._kills[test] += bool(failed)
            self._spent[test] += _seconds() - start
            if failed:
                return failed
        return ""

    def _in_order(self, path: str) -> list[Path]:
        def order(test: Path) -> tuple[bool, float]:
            rate = (0.2 + self._kills[test]) / (5 + self._spent[test])
            return Path(path).stem.split("_")[0] not in test.stem, -rate

        return sorted(self._end_to_end, key=order)

    def _end_to_end_failure(self, test: Path) -> str:
        """The first test of a file that fails, and passes in the original."""
        command = [sys.executable, *_PYTEST, *_SELECTED, str(test)]
        status, out = _run(self._tree, command, _END_TO_END_SECONDS)
        if status in (0, 5):
            return ""
        failed = _first(r"^(?:FAILED|ERROR) (\S+(?: \S+\])?)", out)
        if not (self._original / "node/dist/main.js").exists():
            _build(self._original)
        node = failed if failed.startswith("tests/") else str(test)
        status, _ = _run(self._original, [sys.executable, *_PYTEST, node], _END_TO_END_SECONDS)
        return failed if status == 0 else ""


def _build(tree: Path) -> None:
    """The packages; a wheel is made first if there is none."""
    if not list((tree / "dist").glob("*.whl")):
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "dist"]
        _run(tree, [sys.executable, "-m", "pip", "wheel", *options, "."], _END_TO_END_SECONDS)
    _run(tree, ["npm", "run", "build", "--silent"], _END_TO_END_SECONDS)
