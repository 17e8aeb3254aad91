"""The changes of small sources, the copy in which they are made, and what is seen of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mutants.__main__ import Result, read, report, sample
from mutants.change import Change, Mutant
from mutants.languages import LANGUAGES
from mutants.python_changes import changes, is_valid
from mutants.traces import Trace, Traces
from mutants.tree import ROOT, changed, make_tree

HERE = Path(__file__).parent
_PAIRS = ((3, 4), (1, 4), (2, 5), (2, 3))


def changed_lines(source: str, kind: str) -> list[str]:
    """The lines that the changes of a kind make."""
    return [c.apply(source).splitlines()[c.line - 1].strip() for c in changes(source) if c.kind == kind]


@pytest.mark.parametrize(
    ("source", "kind", "expected"),
    [
        ("a < (b)", "comparison", ["a <= (b)", "a >= (b)"]),
        ("(a) is not b", "comparison", ["(a) is b"]),
        ("a not  in b", "comparison", ["a in b"]),
        ("a < b < c", "comparison", ["a <= b < c", "a >= b < c", "a < b <= c", "a < b >= c"]),
        ("x = a // b", "arithmetic", ["x = a * b"]),
        ("x += y", "arithmetic", ["x -= y"]),
        ("x += y", "statement", ["pass"]),
        ("a and b and c", "and, or", ["a or b and c", "a and b or c"]),
        ("x = not a", "not, minus", ["x = a"]),
        ("x = -a", "not, minus", ["x = a"]),
        ("x = 0", "constant", ["x = 1", "x = (-1)"]),
        ("x = 0.5, True", "constant", ["x = 1.5, True", "x = (-0.5), True", "x = 0.5, False"]),
        ("x = 1e300", "constant", ["x = 2e+300", "x = 1e+300"]),
        ("max(a)", "call", ["min(a)"]),
        ("x.max(a)", "call", []),
        ("if a: b()", "condition", ["if True: b()", "if False: b()"]),
        ("while a: b()", "condition", ["while False: b()"]),
        ("x = [a for a in b if a]", "condition", ["x = [a for a in b if True]"]),
        ("a.b = c", "statement", ["pass"]),
        ("a = b()", "statement", []),
        ("raise A(1 + 2)", "statement", ["pass"]),
        ("raise A(1 + 2)", "constant", []),
        ("def f(): return a", "result", ["def f(): return None"]),
        ("def f(): return None", "result", []),
        ("def f(x: 1 = 2) -> 3: 4", "constant", [f"def f(x: 1 = {x}) -> 3: {y}" for x, y in _PAIRS]),
        ("x = f'{1}'", "constant", []),
        ("@f(1)\ndef g(): pass", "constant", []),
        ("y = 'äö'; x = 'ü' if a else 1", "constant", [f"y = 'äö'; x = 'ü' if a else {x}" for x in (2, 0)]),
        ("assert 1", "constant", []),
        ("if TYPE_CHECKING: x = 1", "condition", []),
    ],
)  # fmt: skip
def test_a_change_is_of_one_expression_or_statement(source: str, kind: str, expected: list[str]) -> None:
    assert changed_lines(source, kind) == expected
    assert all(is_valid(c.apply(source)) for c in changes(source))


def test_a_change_knows_its_function_by_the_line_that_its_code_object_has() -> None:
    source = textwrap.dedent("""\
        x = 1
        class A:
            y = 2
            @a
            @b
            def f(self, z=3):
                def g():
                    return [i + 4 for i in self.z]
                return lambda: (
                    5)
        """)
    found = {source[c.start : c.end]: (c.function, c.name) for c in changes(source) if c.kind == "constant"}
    assert found == {"1": (0, ""), "2": (0, "A"), "3": (0, "A"), "4": (7, "g"), "5": (9, "f")}


@pytest.mark.slow
def test_a_seed_draws_one_sample_which_is_valid() -> None:
    mutants = sample(LANGUAGES["python"], 3, 40)
    assert mutants == sample(LANGUAGES["python"], 3, 40) and mutants[:10] == sample(
        LANGUAGES["python"], 3, 10
    )
    assert len({m.path for m in mutants}) > 20
    for m in mutants:
        source = (ROOT / m.path).read_text()
        assert m.change.apply(source) != source and is_valid(m.change.apply(source))


@pytest.mark.e2e
def test_a_changed_module_is_imported_though_size_and_second_are_the_same(tmp_path: Path) -> None:
    tree = make_tree(tmp_path)
    file = tree / "polygrad" / "shared_words.py"
    file.write_text("X = 1\n")

    def value() -> str:
        os.utime(file, (1, 1))
        code = "import polygrad.shared_words as s; print(s.X)"
        return subprocess.run([sys.executable, "-c", code], cwd=tree, capture_output=True, text=True).stdout

    subprocess.run([sys.executable, "-m", "compileall", "-q", "--invalidation-mode", "checked-hash", file])
    assert value() == "1\n"
    with changed(file, Change("constant", 4, 5, "2", 1)):
        assert value() == "2\n"
    assert value() == "1\n" and file.read_text() == "X = 1\n"


def test_the_last_result_of_a_mutant_counts(tmp_path: Path) -> None:
    change = {"kind": "result", "start": 0, "end": 1, "text": "None", "line": 1}
    line = {
        "number": 1,
        "path": "polygrad/uop/a.py",
        "change": change,
        "killed": "",
        "seconds": 2.0,
    }
    lines = [line, line | {"number": 0, "killed": "a"}, line | {"killed": "b"}, line | {"number": 2}]
    (tmp_path / "a").write_text("".join(json.dumps(x) + "\n" for x in lines))
    results = read(tmp_path / "a")
    assert [(r.number, r.killed) for r in results] == [(0, "a"), (1, "b"), (2, "")]
    assert report(results).splitlines()[0] == "2 of 3 mutants were killed"
    assert read(tmp_path / "none") == [] and isinstance(results[0], Result)


def test_tests_that_run_the_function_come_first() -> None:
    f, g = ("polygrad/uop/a.py", 3), ("polygrad/uop/a.py", 9)
    names = ["b[0]", "b[1]", "b[2]", "c", "like", "other", "third"]
    tests = [f"tests/{'uop/test_a' if x == 'like' else 'nn/test_b'}.py::{x}" for x in names]
    ran = {"b[0]": (0.2, {f}), "b[1]": (0.1, {f}), "c": (0.5, {f, g}), "other": (0.3, {g})}
    traces = Traces(
        tests, [Trace(t, ran[n][0], frozenset(ran[n][1])) for t, n in zip(tests, names) if n in ran]
    )
    traces = Traces.from_json(traces.to_json())
    files = {Path("tests/uop/test_a.py"): "", Path("tests/nn/test_b.py"): ""}

    def order(line: int) -> list[str]:
        mutant = Mutant(1, "polygrad/uop/a.py", Change("constant", 0, 1, "2", 4, line, "f"))
        return [x.partition("::")[2] for x in traces.in_order(mutant, files)]

    assert order(3)[:5] == ["b[1]", "c", "b[0]", "b[2]", "like"]
    assert order(9)[:3] == ["other", "c", "like"]
    assert order(0)[:4] == ["b[1]", "other", "c", "b[0]"]  # the module's own code
    assert sorted(order(0)) == sorted(names)


# A tree with one module, and tests of which none is polygrad's.
MODULE = """\
from functools import cache

LIMIT = 7

class A:
    @staticmethod
    @cache
    def double(x):
        return x * 2

def unused(x):
    return x + 1

def loops(x):
    while x > 0:
        x -= 1
    return min(x, LIMIT)
"""
TESTS = """\
import pytest
from polygrad import module

def test_one():
    assert module.A.double(1) == 2

def test_other():
    assert module.A.double(2) == 4

def test_loops():
    assert module.loops(3) == 0 and module.LIMIT == 7

@pytest.mark.parametrize("x", [3], ids=["f: x[::2]"])
def test_wrong(x):
    assert module.A.double(x) == 7
"""
PROGRAM = """\
import json, sys
from pathlib import Path
from mutants import forks, python_tests
from mutants.change import Mutant
from mutants.python_changes import changes
python_tests._IMPORTED, forks._LONGEST, forks._SLOW = (), 2.0, 30
tree, module = Path(sys.argv[1]), "polygrad/module.py"
python_tests.BUILD = tree.parent / "kept"
killed = {}
def note(m, work):
    killed[f"{m.change.line} {m.change.text}"] = work()
every = [Mutant(i, module, c) for i, c in enumerate(changes((tree / module).read_text()))]
python_tests.try_mutants(tree, every, 2.0, note)
Path(sys.argv[2]).write_text(json.dumps(killed))
"""


@pytest.mark.slow
@pytest.mark.e2e
def test_tests_kill_mutants(tmp_path: Path) -> None:
    tree, answer = tmp_path / "tree", tmp_path / "killed.json"
    for folder in ("polygrad", "tests"):
        (tree / folder).mkdir(parents=True)
    (tree / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    (tree / "polygrad" / "__init__.py").write_text("")
    (tree / "polygrad" / "module.py").write_text(MODULE)
    (tree / "tests" / "test_module.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tree), str(answer)],
        env={**os.environ, "PYTHONPATH": str(HERE.parent)}, cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    killed = json.loads(answer.read_text())
    assert killed["3 8"].startswith("tests/test_module.py::test_loops: ")  # the module's own code
    # 1 + 2 and 1 * 2 differ, 2 + 2 and 2 * 2 do not. A test that fails anyway kills nothing.
    assert killed["9 +"] == "tests/test_module.py::test_one: AssertionError: assert 3 == 2"
    assert "AssertionError: assert None ==" in killed["9 None"]
    assert killed["12 -"] == "" and killed["12 None"] == ""  # no test calls it
    assert "does not end" in killed["16 +="]
    assert killed["17 max"] != "" and killed["15 >="] != ""
    assert (tree / "polygrad" / "module.py").read_text() == MODULE


TYPESCRIPT = """\
/** Not 1. */
import { f } from "./f";
type A = 1 | 2;
export function g(x: A, y = "b" + 3): number | undefined {
  if (x < 4 && !y) throw new Error(`${5}`);
  for (let i = 0; i < x; i++) f(i);
  x += 1;
  return x ? Math.max(x, -y) : undefined;
}
"""


@pytest.mark.e2e
@pytest.mark.skipif(not (ROOT / "node_modules" / "typescript").exists(), reason="needs npm's packages")
def test_changes_of_typescript(tmp_path: Path) -> None:
    file = tmp_path / "g.ts"
    file.write_text(TYPESCRIPT)
    command = ["node", str(HERE / "typescript_changes.mjs"), str(file)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = [Change(**c) for c in json.loads(out)[str(file)]]
    lines = [c.apply(TYPESCRIPT).splitlines()[c.line - 1].strip() for c in found]
    assert lines == [
        *(f'export function g(x: A, y = "b" + {n}): number | undefined {{' for n in (4, 2)),
        *(f"if ({x}) throw new Error(`${{5}}`);" for x in ("true", "false", "x < 4 || !y", "x <= 4 && !y")),
        *(f"if ({x} && !y) throw new Error(`${{5}}`);" for x in ("x >= 4", "x < 5", "x < 3")),
        "if (x < 4 && y) throw new Error(`${5}`);",
        "if (x < 4 && !y) ;",
        *(f"for (let i = {x}; i++) f(i);" for x in ("0; false", "1; i < x", "(-1); i < x", "0; i <= x")),
        "for (let i = 0; i >= x; i++) f(i);",
        "for (let i = 0; i < x; i++) ;",
        *(";", "x -= 1;", "x += 2;", "x += 0;", "return undefined;"),
        *(f"return {x} ? Math.max(x, -y) : undefined;" for x in ("true", "false")),
        *(f"return x ? Math.{x} : undefined;" for x in ("min(x, -y)", "max(x, y)")),
    ]
