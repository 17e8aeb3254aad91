"""The examples in the comments of the generated JavaScript API give what they say within 1e-4."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from javascript_hosts import ROOT, built

pytestmark = [pytest.mark.e2e, built]

GENERATED = ROOT / "wasm_runtime" / "src" / "api" / "generated"
EXAMPLE = re.compile(r"\* ```js\n\s*\* (.*); // (.*)\n\s*\* ```")


def examples(name: str) -> list[tuple[str, str]]:
    return EXAMPLE.findall((GENERATED / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize("mode", ["direct", pytest.param("worker", marks=pytest.mark.slow)])
def test_examples_give_what_they_say(mode: str, package: Path) -> None:
    found = [*examples("tensor.ts"), *examples("nn.ts")]
    assert len(examples("tensor.ts")) > 250 and len(examples("nn.ts")) > 3
    command = ["node", str(Path(__file__).parent / "run_examples.mjs"), str(package), mode]
    done = subprocess.run(command, input=json.dumps(found), capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == []


def test_every_block_of_code_is_an_example() -> None:
    for name in ("tensor.ts", "nn.ts"):
        source = (GENERATED / name).read_text(encoding="utf-8")
        assert source.count("* ```js") == len(examples(name))
