"""A C program of each version of the interface, kept as it was, with this version's library: plain, under
sanitizers, and under valgrind. Its results are compared with `export.load`."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from c_compiler import needs_c_compiler
from c_library import FOLDER, MANIFEST, STOPPABLE, TRUST_NATIVE, build, wasmtime_library
from c_library_models import LOOPS, program_of, saved_training, state
from pgrd.corpus import BUNDLE
from pgrd.corpus import FOLDER as CORPUS

from polygrad import Device, export

HERE = Path(__file__).parent
VERSIONS = range(1, MANIFEST["version"] + 1)
SANITIZERS = {"asan": "address,undefined", "tsan": "thread"}
Run = Callable[..., list[str]]

pytestmark = [
    needs_c_compiler,
    pytest.mark.skipif(sys.platform != "linux", reason="paths of Linux's shared objects"),
]


@pytest.fixture(autouse=True)
def default_device() -> Iterator[None]:
    before = Device.DEFAULT
    Device.DEFAULT = "WASM"
    yield
    Device.DEFAULT = before


@functools.cache
def compiled(version: int, how: str) -> Path:
    """The program of a version, linked with the library."""
    flags = ["-O1", "-g", "-fno-omit-frame-pointer"]
    if how in SANITIZERS:
        flags += [f"-fsanitize={SANITIZERS[how]}", "-fno-sanitize-recover=all"]
    library = build("all", f"build/{how}", f"CFLAGS={' '.join(flags)} -Werror")
    source, path = HERE / f"api_{version}", library / f"program_{version}"
    command = ["cc", "-std=gnu11", "-Wall", "-Wextra", *flags, f"-I{source}", str(source / "program.c")]
    linked = [str(library / "libpolygrad.a"), "-pthread", "-ldl", "-lm", "-o", str(path)]
    done = subprocess.run([*command, *linked], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return path


def runs(how: str) -> object:
    slow = () if how == "plain" else (pytest.mark.slow,)
    if how == "valgrind":
        slow += (pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind"),)
    return pytest.param(how, marks=slow)


@pytest.fixture(params=[runs(how) for how in ("plain", *SANITIZERS, "valgrind")])
def how(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=VERSIONS)
def run(request: pytest.FixtureRequest, how: str) -> Run:
    """Runs the program with arguments; the lines that it prints. A sanitizer's report is an error."""
    program = compiled(request.param, how if how in SANITIZERS else "plain")
    before: list[str] = []
    if how == "valgrind":
        before = ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full", "--suppressions="]
        before[-1] += str(HERE / "valgrind.supp")
    if how == "tsan":
        # addresses that the sanitizer knows, on systems that choose from more
        before = ["setarch", os.uname().machine, "-R"]

    def call(*arguments: object) -> list[str]:
        environment = {**os.environ, "TSAN_OPTIONS": f"suppressions={HERE / 'tsan.supp'}"}
        command = [*before, str(program), *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-8000:]
        return done.stdout.splitlines()

    return call


def test_the_functions_of_each_version_stay_where_they_were() -> None:
    def table(header: Path) -> list[str]:
        text = re.sub(r"/\*.*?\*/", "", header.read_text(encoding="utf-8"), flags=re.DOTALL)
        body = text[text.index("typedef struct pg_api {") : text.index("} pg_api;")]
        return [" ".join(line.split()) for line in body.split(";")][:-1]

    now = table(FOLDER / "include" / "polygrad.h")
    for version in VERSIONS:
        then = table(HERE / f"api_{version}" / "polygrad.h")
        assert now[: len(then)] == then
    since = [function["since"] for function in MANIFEST["functions"]]
    assert since == sorted(since)
    assert len(now) == len(since) + 1


def test_verdicts_of_the_corpus(run: Run) -> None:
    verdicts = json.loads((CORPUS / "verdicts.json").read_text(encoding="utf-8"))
    reasons = {"magic": "PG_FORMAT", "version": "PG_VERSION", "digest": "PG_DIGEST", "damaged": "PG_DAMAGED"}
    wanted = [reasons[v["refused"]] if "refused" in v else "PG_OK" for v in verdicts.values()]
    assert run("check", *[CORPUS / name for name in verdicts]) == wanted


def test_descriptions(run: Run, tmp_path: Path) -> None:
    (tmp_path / "f.pgrd").write_bytes(BUNDLE)
    assert run("describe", wasmtime_library(), 0, tmp_path / "f.pgrd") == [
        '0.1.0 [corpus] WASM {"scale":0.5}',
        f"notes.txt {b'text'.hex()}",
        "[main]",
        "n -10 10",
        "0 x int32 1/-1 2/-1 0",
        "1 y int32 2/-1 0",
        "2 scale int32 1/-1 0",
    ]


@pytest.mark.parametrize("device", ["WASM", "CPU", "CC"])
def test_training_bit_for_bit_in_several_threads(run: Run, how: str, device: str, tmp_path: Path) -> None:
    if how == "valgrind" and device != "WASM":
        pytest.skip("valgrind does not know all instructions that this machine's code may have")
    Device.DEFAULT = device
    path, count = tmp_path / "step.pgrd", 3 if how == "valgrind" else 20
    batches = saved_training(path)[:count]
    (tmp_path / "inputs").write_bytes(b"".join(x.tobytes() for batch in batches for x in batch.values()))
    wanted = export.load(path, native=True)
    losses = [f"loss {wanted.run(**batch)['loss'].numpy().tobytes().hex()}" for batch in batches]
    flags, threads, copies = (0 if device == "WASM" else TRUST_NATIVE), 2, (1 if how == "valgrind" else 3)
    found = run("train", wasmtime_library(), flags, threads, copies, count, path, tmp_path / "inputs")
    assert found == [*losses, f"values {wanted.save().hex()}"]


@pytest.mark.parametrize("flags", [0, STOPPABLE])
def test_two_threads_on_one_model(run: Run, flags: int, tmp_path: Path) -> None:
    path = tmp_path / "busy.pgrd"
    saved_training(path)
    assert run("busy", wasmtime_library(), flags, path) == []


def test_runs_are_ended(run: Run, how: str, tmp_path: Path) -> None:
    path = tmp_path / "loops.pgrd"
    path.write_bytes(program_of(LOOPS, 2).to_bytes(state(1, 2)))
    assert run("stop", wasmtime_library(), STOPPABLE, path) == []
    if how != "tsan":  # it keeps signals back until the program waits
        assert run("signal", wasmtime_library(), STOPPABLE, path) == []
