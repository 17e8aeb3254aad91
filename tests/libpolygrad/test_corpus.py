"""The files of `tests/pgrd`: libpolygrad gives the verdicts that Python's and TypeScript's readers give."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_compiler import needs_c_compiler
from c_library import TRUST_NATIVE, Model, PgError, check
from header_verdicts import verdicts
from pgrd.corpus import FOLDER, large, with_settings

from polygrad.errors import ArgumentError, ProgramError
from polygrad.export.files import read_file, read_values
from polygrad.export.programs import Programs
from polygrad.runtime.parts import BLOCK

pytestmark = needs_c_compiler
VERDICTS: dict[str, Any] = json.loads((FOLDER / "verdicts.json").read_text(encoding="utf-8"))
REASONS = {"magic": "PG_FORMAT", "version": "PG_VERSION", "digest": "PG_DIGEST", "damaged": "PG_DAMAGED"}


def python_reads(data: bytes) -> bool:
    """Whether `export.load` and its like read a file, up to the device."""
    try:
        bundle, values = read_file(data)
        for programs in bundle.targets:
            made = Programs({name: replace(program, device="WASM") for name, program in programs.items()})
            made.set_values(read_values(values), bundle.zeros)
    except (ProgramError, ArgumentError):
        return False
    return True


def c_reads(data: bytes) -> bool:
    try:
        check(data)
    except PgError as e:
        assert e.status in ("PG_FORMAT", "PG_VERSION", "PG_DIGEST", "PG_DAMAGED")
        return False
    return True


@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdict_on_each_file(name: str) -> None:
    verdict, path = VERDICTS[name], FOLDER / name
    if reason := verdict.get("refused"):
        for read in (lambda: check(path.read_bytes()), lambda: Model(path, TRUST_NATIVE)):
            with pytest.raises(PgError) as caught:
                read()
            assert caught.value.status == REASONS[reason], caught.value
        return
    check(path.read_bytes())
    if "outputs" not in verdict:
        return
    given = {k: np.int32(v) if isinstance(v, list) else v for k, v in verdict["inputs"].items()}
    for source in (path, path.read_bytes()):
        with Model(source) as model:
            found = model.run(**given)
        for key, numbers in verdict["outputs"].items():
            assert [n for n, wanted in zip(found[key], numbers, strict=True) if wanted is not None] == [
                n for n in numbers if n is not None
            ]


@pytest.mark.parametrize("name", [name for name in VERDICTS if name.startswith("good/")])
def test_every_byte_of_a_good_file_is_checked(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    for position in range(len(data)):
        for bit in (1, 128):
            changed = bytearray(data)
            changed[position] ^= bit
            assert not c_reads(bytes(changed)), position


def test_values_of_several_blocks_are_checked_in_each(tmp_path: Path) -> None:
    data = large()
    check(data)
    for position in (len(data) - 1, len(data) - 100, len(data) - BLOCK):
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(PgError, match="PG_DIGEST: file: the values has another SHA-256"):
            check(bytes(changed))


@pytest.mark.parametrize("name", ["chain", "captured", "grid", "bundle_with_files"])
def test_junk_in_each_field_has_the_verdict_of_python(name: str) -> None:
    """Each part of a header is replaced by values of all kinds, and left out, under a right SHA-256."""
    data = (FOLDER / f"good/{name}.pgrd").read_bytes()
    assert verdicts(data, c_reads) == verdicts(data, python_reads)


TEXTS = [
    b"1.5e308", b"1.7976931348623157e308", b"1.7976931348623159e308", b"2e308", b"1e400", b"-1e400",
    b"1e-400", b"0." + b"0" * 400 + b"1", b"9" * 400, b"9007199254740991", b"-9007199254740991",
    b"9007199254740992", b"-0", b"-0.0", b"1.", b".5", b"1e", b"1e+", b"+1", b"01", b"-", b"--1", b"0x1",
    b"1_0", b"NaN", b"Infinity", b"nul", b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\\ude00\\ud83d"',
    b'"\\u00e"', b'"\\x41"', b'"\\', b'"', b'"\t"', b'"\x7f"', b'"\\u0000"', b'"\xc3\xa9"', b'"\xc0\x80"',
    b'"\xed\xa0\x80"', b'"\xf4\x90\x80\x80"', b'"\xf0\x9f\x98\x80"', b"[1,]", b"[,1]", b"[1 2]", b'{"a"}',
    b'{"a":}', b'{"a":1,}', b"{a:1}", b'{"a":1 "b":2}', b'{"b":1,"b":1}', b'{"\\u0062":1,"b":1}',
    b'{"":1,"":2}', b"[]", b"{}", b" [ ] ", b"\x0b1", b"\xa01", b"/**/1", b"", b"'a'", b"true", b"True",
    b"null", b"[" * 31 + b"]" * 31, b"[" * 32 + b"]" * 32,
]  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_json_of_settings_has_one_meaning(text: bytes) -> None:
    data = with_settings(b'{"a":' + text + b"}")
    assert c_reads(data) == python_reads(data)
