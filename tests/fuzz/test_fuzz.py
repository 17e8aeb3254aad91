"""Some damaged files for each reader; those that were read wrongly once; and what the judge sees."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from fuzz.__main__ import file_of, fuzz, kind_of
from fuzz.judge import verdict
from fuzz.parsers import PARSERS, Parser
from polygrad.errors import ArgumentError

FOUND = sorted((Path(__file__).parent / "found").glob("*.bin"))


@pytest.mark.parametrize("name", PARSERS)
def test_damaged_files_are_read_or_refused(name: str) -> None:
    found = fuzz(PARSERS[name], 0, lambda n: n < 64)
    assert found.wrong == {} and found.count == 64


@pytest.mark.slow
@pytest.mark.parametrize("name", PARSERS)
def test_for_some_seconds_damaged_files_are_read_or_refused(name: str) -> None:
    end = time.monotonic() + 20
    found = fuzz(PARSERS[name], 1 << 32, lambda n: time.monotonic() < end)
    assert found.wrong == {} and 0 < found.read < found.count


@pytest.mark.parametrize("path", FOUND, ids=[p.stem for p in FOUND])
def test_what_was_found_is_read_or_refused(path: Path) -> None:
    parser = PARSERS[path.stem.rpartition("-")[0]]
    assert verdict(parser.read, path.read_bytes())[1] == ""
    assert verdict(parser.read, path.read_bytes(), measured=True)[1] == ""


def test_a_seed_makes_one_file() -> None:
    parser = PARSERS["npy"]
    files = parser.files()
    assert [file_of(parser, files, i) for i in range(20)] == [file_of(parser, files, i) for i in range(20)]


def test_the_judge_sees_errors_of_others_time_and_memory() -> None:
    def refuses(data: bytes) -> None:
        raise ArgumentError("x: expected y")

    def internal(data: bytes) -> None:
        raise ArgumentError("internal: x")

    def spins(data: bytes) -> None:
        end = time.thread_time() + 1.2
        while time.thread_time() < end:
            pass

    assert verdict(len, b"a") == (True, "") and verdict(refuses, b"") == (False, "")
    assert verdict(internal, b"")[1].startswith("internal")
    assert verdict(lambda data: data[5], b"")[1] == "IndexError: index out of range"
    assert "seconds for 2 bytes" in verdict(spins, b"ab")[1]
    assert "bytes of memory for a file of 1" in verdict(lambda data: bytes(8 << 20), b"a", measured=True)[1]


def test_a_failure_is_made_smaller() -> None:
    def read(data: bytes) -> None:
        if b"\xff" in data:
            raise KeyError(255)

    found = fuzz(Parser(lambda: [bytes(range(200))], read), 0, lambda n: n < 200)
    assert list(map(kind_of, found.wrong)) == ["KeyError: ###"]
    assert list(found.wrong.values()) == [b"\xff"]
