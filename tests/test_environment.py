"""Environment variables: one registry of all that the package reads; an error names what is wrong."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from polygrad.environment import DEBUG_LEVELS, VARIABLES
from polygrad.errors import ArgumentError
from polygrad.helpers import env_int, getenv

ROOT = Path(__file__).resolve().parent.parent
READERS = {"env_int", "env_text", "getenv", "os.environ.get", "environ.get"}


def names_read(source: str) -> set[str]:
    """The names of environment variables that calls in `source` ask for, where they are literals."""
    calls = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.Call) and n.args]
    read = [c.args[0] for c in calls if ast.unparse(c.func) in READERS]
    return {n.value for n in read if isinstance(n, ast.Constant)}


def test_the_registry_has_what_the_code_reads_and_no_more() -> None:
    found: set[str] = set()
    for path in (ROOT / "polygrad").rglob("*.py"):
        found |= names_read(path.read_text(encoding="utf-8"))
    assert found - set(VARIABLES) == set()
    own = {v.name for v in VARIABLES.values()}
    assert own - found == set()


def test_a_read_is_seen() -> None:
    assert names_read("env_int('A', 0); os.environ.get('B') or getenv('C')") == {"A", "B", "C"}
    assert names_read("env_int(name, 0)") == set()


def test_the_tables_of_the_guide_are_what_the_code_says() -> None:
    spec = importlib.util.spec_from_file_location("tables", ROOT / "scripts" / "environment.py")
    assert spec is not None and spec.loader is not None
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    page = tables.PAGE.read_text(encoding="utf-8")
    assert tables.written(page) == page, "run scripts/environment.py"
    for level, shown in DEBUG_LEVELS.items():
        assert f"| `DEBUG={level}` | {shown} |" in page


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [("DEBUG", "abc", "an integer from 0"), ("DEBUG", "-1", "an integer from 0"), ("SPEC", "yes", "0 or 1")],
)
def test_a_value_that_is_no_integer_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, text: str, expected: str
) -> None:
    monkeypatch.setenv(name, text)
    with pytest.raises(
        ArgumentError, match=f"environment variable {name}: expected {expected}, got '{text}'"
    ):
        env_int(name, 0)


def test_getenv_names_a_variable_of_the_program_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPS", "ten")
    monkeypatch.setenv("RATE", "fast")
    with pytest.raises(ArgumentError, match="environment variable STEPS: expected an integer, got 'ten'"):
        getenv("STEPS", 10)
    with pytest.raises(ArgumentError, match="environment variable RATE: expected a float, got 'fast'"):
        getenv("RATE", 0.5)
    monkeypatch.setenv("STEPS", "-3")
    assert getenv("STEPS", 10) == -3 and getenv("ABSENT", "a") == "a"


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("DEBUG", "abc", "ArgumentError: environment variable DEBUG: expected an integer from 0, got 'abc'"),
        ("DEVICE", "GPU", "DeviceError: environment variable DEVICE: expected one of CPU, "),
    ],
)
def test_a_program_ends_with_an_error_that_names_the_variable(name: str, value: str, message: str) -> None:
    code = "from polygrad import Tensor; Tensor([1]).add(1).tolist()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {name: value}
    )
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]
    assert repr(value) in done.stderr.splitlines()[-1]
