"""The words that threads of a WebAssembly memory share: TypeScript's table is Python's."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from polygrad import helpers, shared_words

SOURCE = Path(__file__).parents[2] / "wasm_runtime/src/shared_words.ts"


def typescript_constants() -> dict[str, int]:
    """Each `export const NAME = arithmetic;`, evaluated."""
    found: dict[str, int] = {}
    for name, value in re.findall(r"^export const (\w+) = ([^;]+);", SOURCE.read_text(), re.MULTILINE):
        tree = ast.parse(value, mode="eval")
        found[name] = eval(compile(tree, str(SOURCE), "eval"), {"__builtins__": {}}, found)
    return found


def test_python_and_typescript_name_the_same_words():
    theirs = typescript_constants()
    for name in ("ARRIVED", "GENERATION", "SLEEPERS", "FAILED", "MAY_SLEEP", "STOP", "COMMITTED", "COUNTERS"):
        assert 4 * theirs[name] == getattr(shared_words, name), name  # word numbers there, addresses here
    for name in ("MAX_THREADS", "COUNTER_LINES", "FIRST_BUFFER"):
        assert theirs[name] == getattr(shared_words, name), name
    assert theirs["PARTS_PER_THREAD"] == helpers.PARTS_PER_THREAD
