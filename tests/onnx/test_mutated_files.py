"""Files whose bytes were changed raise nothing but our errors, and their memory is bounded by their size.

A million of them: `python tests/onnx_fuzz.py 1000000`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import onnx_fuzz
import pytest


def fuzzed(count: int, seed: int, measured: bool = False) -> dict[str, int]:
    """How many files ended how, in a process of its own, whose memory is limited from the start."""
    program = f"import json, onnx_fuzz; print(json.dumps(onnx_fuzz.fuzz({count}, {seed}, {measured})))"
    path = os.pathsep.join([os.path.dirname(onnx_fuzz.__file__), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_changed_files_raise_nothing_but_our_errors():
    found = fuzzed(1_500, seed=0)
    assert min(found[end] for end in ("refused", "loaded", "ran")) > 30


@pytest.mark.slow
def test_the_memory_of_changed_files_is_bounded_by_their_size():
    assert sum(fuzzed(300, seed=1, measured=True).values()) == 300


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_many_changed_files_raise_nothing_but_our_errors():
    assert sum(fuzzed(20_000, seed=2).values()) == 20_000


def test_the_parser_of_the_fuzzer_keeps_a_file_as_it_is():
    for data in onnx_fuzz.corpus():
        fields = onnx_fuzz.parsed(data)
        assert fields is not None and onnx_fuzz.written(fields) == data


def test_changes_reach_deep_fields():
    rng, files = random.Random(0), onnx_fuzz.corpus()
    changed = [onnx_fuzz.change_a_field(files[-1], rng, files) for _ in range(200)]
    assert sum(onnx_fuzz.parsed(data) is not None and data != files[-1] for data in changed) > 150
