"""Which sources have mutants, by language, and what tries them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mutants import python_changes, python_tests, typescript_tests
from mutants.change import Change, Mutant, Note
from mutants.tree import ROOT

_PYTHON = (
    *(f"polygrad/{name}/**/*.py" for name in ("uop", "schedule", "codegen", "tensor", "capture")),
    "polygrad/gradient.py",
    # readers of files
    *(f"polygrad/nn/{name}.py" for name in ("archives", "gguf", "pickles", "safetensors", "torch_file")),
    *(f"polygrad/nn/{name}.py" for name in ("wire", "wire_stream")),
    *(f"polygrad/hf/{name}.py" for name in ("gguf", "gguf_parts", "gguf_tensors", "sentencepiece")),
    *(f"polygrad/runtime/{name}.py" for name in ("bundle", "parts", "program", "strict_json")),
    "polygrad/hf/tokenizer_json.py",
    "polygrad/onnx/proto.py",
    "polygrad/wasm/reader.py",
)
_TYPESCRIPT = ("wasm_runtime/src/**/*.ts", "loader/src/**/*.ts")


@dataclass(frozen=True)
class Language:
    changes: Callable[[], dict[str, list[Change]]]  # by the path of the file
    is_valid: Callable[[str], bool]
    try_mutants: Callable[[Path, Sequence[Mutant], float, Note], None]  # in a tree, each for some seconds


def _sources(patterns: tuple[str, ...]) -> list[str]:
    found = {p.relative_to(ROOT).as_posix() for pattern in patterns for p in ROOT.glob(pattern)}
    return sorted(p for p in found if "/generated/" not in p and not p.endswith(".d.ts"))


def _python() -> dict[str, list[Change]]:
    return {p: python_changes.changes((ROOT / p).read_text(encoding="utf-8")) for p in _sources(_PYTHON)}


def _typescript() -> dict[str, list[Change]]:
    script = str(Path(__file__).parent / "typescript_changes.mjs")
    out = subprocess.run(
        ["node", script, *_sources(_TYPESCRIPT)], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    return {p: [Change(**c) for c in found] for p, found in json.loads(out).items()}


LANGUAGES = {
    "python": Language(_python, python_changes.is_valid, python_tests.try_mutants),
    "typescript": Language(_typescript, lambda source: True, typescript_tests.try_mutants),
}
