"""WGSL by Tint, Chromium's compiler of it, which needs no GPU; with features that no adapter here has. The
device suite goes through it in a page and in Node."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "tint.mjs"
GOLDEN = ROOT / "tests" / "golden"
pytestmark = pytest.mark.skipif(
    not (ROOT / "node_modules" / "webgpu").exists(), reason="there is no npm package webgpu"
)
FILES = ("workgroups.wgsl", "float16.wgsl", "shuffles.wgsl")


def goldens() -> dict[str, str]:
    """The kernels of the golden files."""
    out = {}
    for name in FILES:
        whole = (GOLDEN / name).read_text(encoding="utf-8")
        kernels = [text for text in re.split(r"^(?=// \w+: )", whole, flags=re.M) if "@compute" in text]
        out |= {f"{name} {i}": text for i, text in enumerate(kernels)}
    return out


def said_of(texts: dict[str, str]) -> dict[str, list[str]]:
    done = subprocess.run(
        ["node", SCRIPT], input=json.dumps(texts), capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["features"] == ["shader-f16", "subgroups"]
    said: dict[str, list[str]] = found["said"]
    return said


def test_the_golden_kernels_compile() -> None:
    texts = goldens()
    assert len(texts) > 15 and {name.split()[0] for name in texts} == set(FILES)
    broken = {"broken": next(iter(texts.values())).replace("fn ", "func ", 1)}
    said = said_of(texts | broken)
    assert said.pop("broken")
    assert {name: messages for name, messages in said.items() if messages} == {}
