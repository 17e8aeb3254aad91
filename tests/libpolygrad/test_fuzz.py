"""A coverage-guided fuzzer on libpolygrad's readers, for a minute. It starts with the files of `tests/pgrd`.

    PYTHONPATH=.:tests python tests/libpolygrad/test_fuzz.py FOLDER SECONDS

goes on with the inputs of a folder, which keeps those that reach new code.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from c_library import build
from header_verdicts import header_of, with_header
from pgrd.corpus import CHAIN, FOLDER, GRID, SCALE, bundle

from polygrad.dtype import dtypes
from polygrad.nn.safetensors import TensorEntry, write_entries
from polygrad.runtime.program import LANGUAGES, ROLES, Binding, BufferSpec, Kernel, Launch, Program, Variable


def has_fuzzer(compiler: str = "clang") -> bool:
    """Whether clang has its runtime for fuzzers."""
    if shutil.which(compiler) is None:
        return False
    command = [compiler, "-print-file-name=libclang_rt.fuzzer-x86_64.a"]
    name = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    command = [compiler, "-print-runtime-dir"]
    folder = Path(subprocess.run(command, capture_output=True, text=True).stdout.strip())
    return Path(name).is_absolute() or any(folder.glob("libclang_rt.fuzzer*"))


def seeds() -> list[bytes]:
    """Inputs to start with: a letter that says how the rest is read."""
    files = [path.read_bytes() for path in sorted(FOLDER.glob("*/*.pgrd")) if path.stat().st_size < 20_000]
    native = [
        with_header(data, lambda h: h.update(device="CC"))
        for data in (CHAIN.to_bytes(SCALE), GRID.to_bytes(SCALE))
    ]
    texts = [json.dumps(header_of(data)).encode() for data in native]
    texts += [b'[1,-2.5e3,"\\u00e9\\ud83d\\ude00\\n",true,false,null,{"a":[]}]', b" [ ] ", b'"\xc3\xa9"']
    weights = write_entries({
        "a": TensorEntry(dtypes.float32, (2, 3), bytes(24)),
        "b": TensorEntry(dtypes.int8, (), b"1"),
    })  # fmt: skip
    return [b"P" + data for data in (*files, *native, bundle(CHAIN))] + [
        *(letter + text for text in texts for letter in (b"J", b"F")),
        b"V" + weights,
    ]


def words() -> list[str]:
    """Words of headers, which mutations would not find."""
    kinds = (Program, BufferSpec, Kernel, Binding, Launch, Variable)
    names = {field.name for kind in kinds for field in fields(kind)}
    names |= {
        *ROLES,
        *LANGUAGES,
        "bytes",
        "sha256",
        "values",
        "zeros",
        "settings",
        "files",
        "programs",
        "kind",
    }
    names |= {
        "dtype",
        "data_offsets",
        "__metadata__",
        "F32",
        "I8",
        "thread",
        "threads",
        "part",
        "parts",
        "WASM",
        "CC",
    }
    names |= {"float32", "int8", "bfloat16", "fp8e4m3", "ADD", "NEG", "IDIV", "PGRD", "PGRB"}
    return [*(f'"\\"{name}\\""' for name in sorted(names)), '"9007199254740991"', '"1099511627776"', '"-1"',
            '"null"', '"true"', '"[]"', '"{}"', r'"\\u0000"', r'"\\ud800"']  # fmt: skip


def fuzz(folder: Path, seconds: int) -> int:
    """Run the fuzzer, which keeps its inputs in a folder; the number of inputs that it tried."""
    program = build("fuzz") / "fuzz"
    kept = folder / "inputs"
    kept.mkdir(parents=True, exist_ok=True)
    for data in seeds():
        (kept / hashlib.sha1(data).hexdigest()).write_bytes(data)
    (folder / "words.dict").write_text("\n".join(words()) + "\n")
    options = [
        f"-dict={folder / 'words.dict'}",
        f"-max_total_time={seconds}",
        "-max_len=20000",
        "-timeout=10",
    ]
    options += ["-rss_limit_mb=2048", f"-artifact_prefix={folder}/", "-print_final_stats=1"]
    done = subprocess.run([program, *options, kept], capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stderr[-10_000:]
    return int(re.search(r"number_of_executed_units: (\d+)", done.stderr)[1])


@pytest.mark.slow
@pytest.mark.skipif(not has_fuzzer(), reason="there is no clang with libFuzzer (Debian: scripts/clang.sh)")
def test_a_fuzzer_finds_nothing(tmp_path: Path) -> None:
    assert fuzz(tmp_path, 60) > 10_000


if __name__ == "__main__":
    print(fuzz(Path(sys.argv[1]), int(sys.argv[2])))
