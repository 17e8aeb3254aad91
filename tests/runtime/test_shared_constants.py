"""Constants of exported files that TypeScript, C and the page of the format repeat are Python's."""

from __future__ import annotations

import ast
import json
import re
import struct
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from polygrad.errors import ProgramError
from polygrad.helpers import THREAD_VARIABLES
from polygrad.nn import safetensors
from polygrad.runtime import bundle, limits, parts, program
from polygrad.runtime.webgpu import device, host

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "wasm_runtime/src"
C_SOURCES = ROOT / "libpolygrad/src"
PAGE = (ROOT / "docs/format.md").read_text(encoding="utf-8")
LIMITS = [name for name in vars(limits) if name.startswith("MAX_")]
FILES = {"PGRD": ("chain", program.VERSION), "PGRB": ("bundle", bundle.VERSION)}


def constant(file: str, name: str) -> Any:
    """The value of `const name = literal;` in a TypeScript file."""
    source = (SOURCES / file).read_text(encoding="utf-8")
    found = re.search(rf"^(?:export )?const {name}(?:: [^=]+)? = (.*?);", source, re.MULTILINE | re.DOTALL)
    assert found, f"{file} has no constant {name}"
    literal = re.sub(r"^(\s*)(\w+):", r'\1"\2":', found[1].removesuffix(" as const"), flags=re.MULTILINE)
    return ast.literal_eval(re.sub(r"//.*", "", literal))


def c_constants() -> dict[str, int]:
    """The numbers of file_limits.h."""
    found: dict[str, int] = {}
    for name, text in re.findall(
        r"^#define (\w+) (.+?)(?: +/\*.*)?$", (C_SOURCES / "file_limits.h").read_text(), re.MULTILINE
    ):
        found[name] = eval(re.sub(r"INT64_C\((\d+)\)|(?<=\d)u\b", r"\1", text), {}, dict(found))
    return found


def c_names(file: str, table: str) -> list[str]:
    """The texts of a table in a C file."""
    source = (C_SOURCES / file).read_text(encoding="utf-8")
    found = re.search(rf"\b{table}\[\] = \{{(.*?)\}};", source, re.DOTALL)
    assert found, f"{file} has no table {table}"
    return re.findall(r'"(\w+)"', found[1])


def read_versions(magic: str) -> set[int]:
    """The versions that Python's reader reads, of a kind of file."""
    name, newest = FILES[magic]
    data = (ROOT / f"tests/pgrd/good/{name}.pgrd").read_bytes()
    found = set()
    for version in [*range(newest + 3), 2**31, 2**32 - 1]:
        changed = data[:4] + struct.pack("<I", version) + data[8:]
        try:
            (bundle.read_bundle if magic == "PGRB" else program.read_program)(changed)
        except ProgramError as e:
            if "expected version" in str(e):
                continue
        found.add(version)
    return found


@pytest.mark.parametrize("magic", FILES)
def test_versions_are_the_same_in_all_readers_and_on_the_page(magic: str) -> None:
    _, newest = FILES[magic]
    read = read_versions(magic)
    source = (SOURCES / ("files.ts" if magic == "PGRB" else "program.ts")).read_text(encoding="utf-8")
    versions = re.search(r"versions: \[VERSION(?:, ([\d, ]+))?\]", source)
    assert versions
    assert {newest, *(int(n) for n in re.findall(r"\d+", versions[1] or ""))} == read
    c = c_constants()
    oldest = c["OLDEST_BUNDLE"] if magic == "PGRB" else c["PROGRAM_VERSION"]
    assert c["BUNDLE_VERSION" if magic == "PGRB" else "PROGRAM_VERSION"] == newest
    assert set(range(oldest, newest + 1)) == read
    row = re.search(rf"^\| `{magic}` \| (\d+) \| ([\d, ]+) \|$", PAGE, re.MULTILINE)
    assert row and int(row[1]) == newest and {int(n) for n in row[2].split(",")} == read


@pytest.mark.parametrize("magic", FILES)
def test_the_version_before_is_read(magic: str) -> None:
    """Version 8 of Programs had no digests, and was the last one of which that could not be said."""
    _, newest = FILES[magic]
    first_that_stays = {"PGRD": 9, "PGRB": 2}[magic]
    assert read_versions(magic) >= {n for n in (newest - 1, newest) if n >= first_that_stays}
    verdicts = json.loads((ROOT / "tests/pgrd/verdicts.json").read_text(encoding="utf-8"))
    seen: dict[bool, set[int]] = {True: set(), False: set()}
    for file, verdict in verdicts.items():
        data = (ROOT / "tests/pgrd" / file).read_bytes()
        if data[:4] == magic.encode() and len(data) >= 8:
            (version,) = struct.unpack_from("<I", data, 4)
            seen[verdict.get("refused") == "version"].add(version)
    oldest = min(read_versions(magic))
    assert seen == {True: {oldest - 1, newest + 1}, False: read_versions(magic)}


@pytest.mark.parametrize("name", LIMITS)
def test_the_limits_of_a_file_are_the_same_in_c(name: str) -> None:
    assert c_constants()[name] == getattr(limits, name)


def test_the_page_states_the_limits() -> None:
    rows = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", PAGE[PAGE.index("## Limits") :], re.MULTILINE))
    stated = {
        "header": f"{limits.MAX_HEADER >> 20} MiB",
        "a part, a buffer, the arena": f"2^{limits.MAX_BYTES.bit_length() - 1} bytes",
        "rank of a shape": f"{limits.MAX_RANK}",
        "pointers and variables of a kernel": f"{limits.MAX_ARGUMENTS:,}",
        "threads": f"{limits.MAX_THREADS:,}",
        "targets of a bundle": f"{limits.MAX_TARGETS}",
        "workgroup": f"{limits.MAX_INVOCATIONS:,} invocations; a subgroup {limits.MAX_SUBGROUP}",
        "grid": f"2^{limits.MAX_GRID.bit_length()} − 1 workgroups along an axis",
    }
    assert {name: rows[name] for name in stated} == stated
    assert f"integers of up to {limits.MAX_INTEGER.bit_length()} bits" in PAGE
    assert f"most {limits.MAX_DEPTH} lists and objects in each other" in PAGE


def test_the_names_of_a_program_are_the_same_in_c() -> None:
    assert c_names("program.c", "role_names") == list(program.ROLES)
    assert c_names("program.c", "language_names") == list(program.LANGUAGES)
    assert set(c_names("program.c", "thread_variables")) == THREAD_VARIABLES
    assert set(c_names("program.c", "dtypes")) == set(program._ITEM_SIZES)
    codes = {name: dtype.name for dtype, name in safetensors._NAMES.items()}
    names = zip(c_names("values.c", "dtype_codes"), c_names("program.c", "dtypes"), strict=True)
    assert dict(names) == codes


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
    assert constant("parts.ts", "PREFIX") == parts.HEAD_BYTES


@pytest.mark.parametrize("name", LIMITS)
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
