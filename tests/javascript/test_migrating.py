"""The tables of names in the guide for users of other libraries: ours exist, and theirs where installed."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]
SCRIPT = Path(__file__).parent / "names.mjs"
GUIDE = (ROOT / "docs" / "guides" / "javascript_migrating.md").read_text(encoding="utf-8")
HEADINGS = {"tfjs": "TensorFlow.js", "jax-js": "jax-js"}


def table(heading: str, column: int) -> list[str]:
    """The code in a column of the table under a heading."""
    _, _, section = GUIDE.partition(f"\n## {heading}\n")
    rows = re.findall(r"^\| (.*) \| (.*) \|$", section.partition("\n## ")[0], re.MULTILINE)
    return [code for row in rows[2:] for code in re.findall(r"`([^`]+)`", row[column])]


def missing(library: str, expressions: list[str], cwd: Path) -> list[str]:
    done = subprocess.run(
        ["node", str(SCRIPT), library],
        input=json.dumps(expressions),
        capture_output=True,
        text=True,
        timeout=120,
        cwd=cwd,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[str] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("library", HEADINGS)
def test_our_names_exist(library: str, package: Path) -> None:
    expressions = table(HEADINGS[library], 1)
    assert len(expressions) > 30
    assert missing("polygrad", expressions, package) == []


@pytest.mark.parametrize("library", HEADINGS)
@pytest.mark.skipif(
    not (ROOT / "bench" / "node_modules").exists(), reason="needs the packages of `make bench`"
)
def test_the_others_names_exist(library: str) -> None:
    expressions = table(HEADINGS[library], 0)
    assert len(expressions) > 30
    assert missing(library, expressions, ROOT) == []


def test_a_name_that_does_not_exist_is_noticed(package: Path) -> None:
    expressions = [
        "x.matmull(y)",
        "new nn.Dense(1)",
        "tidy(f)",
        "nn.state.saveAll(x)",
        'x.to("x.y")',
        "x.add(y)",
    ]
    assert missing("polygrad", expressions, package) == ["x.matmull", "nn.Dense", "tidy", "nn.state.saveAll"]
