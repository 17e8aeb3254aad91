"""Constants of exported models that TypeScript repeats, since it runs without Python, are Python's."""

from __future__ import annotations

import ast
import re
import struct
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from polygrad.helpers import THREAD_VARIABLES
from polygrad.nn import safetensors
from polygrad.runtime import bundle, limits, parts, program
from polygrad.runtime.webgpu import device, host

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "wasm_runtime/src"


def constant(file: str, name: str) -> Any:
    """The value of `const name = literal;` in a TypeScript file."""
    source = (SOURCES / file).read_text(encoding="utf-8")
    found = re.search(rf"^(?:export )?const {name}(?:: [^=]+)? = (.*?);", source, re.MULTILINE | re.DOTALL)
    assert found, f"{file} has no constant {name}"
    literal = re.sub(r"^(\s*)(\w+):", r'\1"\2":', found[1].removesuffix(" as const"), flags=re.MULTILINE)
    return ast.literal_eval(re.sub(r"//.*", "", literal))


def test_the_format_of_a_program_is_the_same() -> None:
    assert constant("program.ts", "MAGIC").encode() == program.MAGIC
    assert constant("program.ts", "VERSION") == program.VERSION
    assert constant("program_checks.ts", "ROLES") == list(program.ROLES)
    assert constant("program_checks.ts", "LANGUAGES") == list(program.LANGUAGES)
    assert set(constant("program_checks.ts", "GRID_LANGUAGES")) == program.GRID_LANGUAGES
    assert set(constant("program_checks.ts", "THREAD_VARIABLES")) == THREAD_VARIABLES
    assert constant("files.ts", "MAGIC").encode() == bundle.MAGIC
    assert constant("files.ts", "VERSION") == bundle.VERSION
    assert constant("files.ts", "FIELDS") == sorted(bundle._FIELDS)
    assert constant("parts.ts", "BLOCK") == parts.BLOCK
    assert constant("parts.ts", "PREFIX") == parts._PREFIX.size


@pytest.mark.parametrize("name", [name for name in vars(limits) if name.startswith("MAX_")])
def test_the_limits_of_a_file_are_the_same(name: str) -> None:
    assert constant("limits.ts", name) == getattr(limits, name)


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("buffer", program.BufferSpec),
        ("kernel", program.Kernel),
        ("launch", program.Launch),
        ("binding", program.Binding),
        ("variable", program.Variable),
    ],
)
def test_the_fields_of_a_programs_parts_are_the_same(name: str, record: type) -> None:
    assert constant("program_checks.ts", "FIELDS")[name] == sorted(
        field.name for field in fields(record) if field.compare
    )


def test_the_dtypes_of_safetensors_files_are_the_same() -> None:
    names = {name: dtype.name for dtype, name in safetensors._NAMES.items()}
    theirs = constant("safetensors.ts", "DTYPES")
    assert names.keys() - theirs.keys() == {"F8_E4M3", "F8_E5M2"}  # JavaScript has no such dtypes
    assert theirs == {name: dtype for name, dtype in names.items() if name in theirs}


def test_the_layout_of_uniform_buffers_and_bindings_on_webgpu_is_the_same() -> None:
    assert constant("webgpu/loaded.ts", "ALIGN") == host.ALIGNMENT
    assert constant("webgpu/loaded.ts", "WORD") == host.COPY_ALIGNMENT
    assert struct.pack("<4I", *constant("webgpu/loaded.ts", "CONSTANTS")) == device._CONSTANTS
    dispatch, copy = [constant("webgpu/steps.ts", name) for name in ("DISPATCH", "COPY")]
    # not imported: the module needs a page
    assert f"_DISPATCH, _COPY = {dispatch}, {copy} " in (ROOT / "polygrad/runtime/webgpu/js.py").read_text()


def test_a_constant_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AssertionError, match="has no constant OTHER"):
        constant("program.ts", "OTHER")
