"""The files of `tests/pgrd`: this reader gives the verdicts that the others give."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pgrd.corpus import FOLDER, corpus, large, verdict_text

from polygrad import Tensor, TinyJit, export
from polygrad.errors import ArgumentError, CompileError, ProgramError
from polygrad.export.files import read_values
from polygrad.export.programs import Programs
from polygrad.monitor import computing
from polygrad.runtime.bundle import Bundle, is_bundle, read_bundle
from polygrad.runtime.parts import BLOCK
from polygrad.runtime.program import read_program

VERDICTS: dict[str, Any] = json.loads((FOLDER / "verdicts.json").read_text(encoding="utf-8"))
REASONS = {
    "magic": "expected bytes starting",
    "version": r"expected version [\d or]+, got \d+: (export it again|use a newer polygrad)",
    "digest": "SHA-256",
    "damaged": "",
}


def read(data: bytes) -> Programs | None:
    """The Programs of a file in memory; None for those of a GPU. It is read as `export.load` reads one."""
    if is_bundle(data):
        bundle, values = read_bundle(data)
        targets = dict(zip(bundle.devices, bundle.targets))
        programs, zeros = targets.get("WASM", bundle.programs), bundle.zeros
    else:
        program, values = read_program(data)
        programs, zeros = {"main": program}, ()
    entries = read_values(values)
    if next(iter(programs.values())).device != "WASM":
        return None
    made = Programs(programs)
    made.set_values(entries, zeros)
    return made


def test_the_files_are_what_the_generator_writes() -> None:
    files, verdicts = corpus()
    advice = "run PYTHONPATH=.:tests python tests/pgrd/corpus.py and review it"
    assert (FOLDER / "verdicts.json").read_text(encoding="utf-8") == verdict_text(verdicts), advice
    found = {path.relative_to(FOLDER).as_posix(): path.read_bytes() for path in FOLDER.glob("*/*.pgrd")}
    assert found.keys() == files.keys(), advice
    assert [name for name in files if files[name] != found[name]] == [], advice


@pytest.mark.parametrize("name", VERDICTS)
def test_the_verdict_on_each_file(name: str) -> None:
    verdict = VERDICTS[name]
    data = (FOLDER / name).read_bytes()
    if reason := verdict.get("refused"):
        with pytest.raises((ProgramError, ArgumentError)) as caught:
            read(data)
        assert re.search(REASONS[reason], str(caught.value)), caught.value
        return
    made = read(data)
    if "outputs" in verdict:
        assert made is not None
        inputs = {k: v for k, v in verdict["inputs"].items() if isinstance(v, list)}
        variables = {k: v for k, v in verdict["inputs"].items() if isinstance(v, int)}
        for key, numbers in inputs.items():
            raw = memoryview(np.int32(numbers).tobytes())
            made.write_start(made.buffer("main", "input", key), raw)
        computing(made.run)("main", variables)
        for key, numbers in verdict["outputs"].items():
            found = np.frombuffer(made.buffer("main", "output", key).read(), np.int32)
            assert [n for n, wanted in zip(found.tolist(), numbers) if wanted is not None] == [
                n for n in numbers if n is not None
            ]


@pytest.mark.parametrize("name", [name for name in VERDICTS if name.startswith("good/")])
def test_every_byte_of_a_good_file_is_checked(name: str) -> None:
    data = (FOLDER / name).read_bytes()
    for position in range(0, len(data), max(1, len(data) // 200)):
        for bit in (1, 128):
            changed = bytearray(data)
            changed[position] ^= bit
            with pytest.raises((ProgramError, ArgumentError)):
                read(bytes(changed))


def test_values_of_several_blocks_are_checked_in_each(tmp_path: Path) -> None:
    data = large()
    path = tmp_path / "large.pgrd"
    path.write_bytes(data)
    model = export.load(path)
    assert len(model.parameter("scale").tolist()) == BLOCK // 4
    for position in (len(data) - 1, len(data) - 100, len(data) - BLOCK):
        changed = bytearray(data)
        changed[position] ^= 1
        path.write_bytes(changed)
        with pytest.raises(ProgramError, match="the values has another SHA-256"):
            export.load(path)


def test_what_the_engine_refuses_is_an_error_of_ours(tmp_path: Path) -> None:
    """Whoever changes code can compute its SHA-256 anew: then the engine is the judge."""
    program, values = read_program((FOLDER / "good/captured.pgrd").read_bytes())
    for end in (0, 8, 30, len(program.driver) - 1):
        changed = replace(program, driver=program.driver[: max(end, 1)])
        model = export.load(changed.to_bytes(bytes(values)))
        with pytest.raises(CompileError):
            model.run(x=np.int32([1, 2]), n=1)


@pytest.mark.parametrize("device", ["CPU", "CC", "CUDA", "METAL", "INTERP", "wasm", "WASM:1", "NPU"])
def test_code_that_is_not_confined_needs_permission(device: str) -> None:
    program, values = read_program((FOLDER / "good/captured.pgrd").read_bytes())
    other = replace(program, device=device)
    named = rf"load: expected code that is confined, .* got code for {device}, .* pass native=True"
    with pytest.raises(ProgramError, match=named):
        export.load(other.to_bytes(bytes(values)))
    for kind, load in (
        ("text-generation", export.load_language_model),
        ("feature-extraction", export.load_text_encoder),
        ("text-classification", export.load_text_classifier),
    ):
        with pytest.raises(ProgramError, match=f"{load.__name__}: expected code that is confined"):
            load(Bundle(kind, {}, ({"main": other},)).head([values]) + bytes(values))


def test_machine_code_of_another_device_is_no_way_around(tmp_path: Path) -> None:
    program, values = read_program((FOLDER / "good/chain.pgrd").read_bytes())
    kernels = tuple(replace(kernel, language="library") for kernel in program.kernels)
    model = export.load(replace(program, kernels=kernels).to_bytes(bytes(values)))
    with pytest.raises(ProgramError, match=r"kernel add: expected wasm, .* got library"):
        model.run(x=np.int32([1, 2]), n=1)


def test_permission_runs_native_code(tmp_path: Path) -> None:
    jit = TinyJit(lambda x: x + 1)
    for _ in range(2):
        jit(Tensor([1.0], device="CPU").realize())
    jit.save(tmp_path / "cpu.pgrd")
    with pytest.raises(ProgramError, match="got code for CPU"):
        export.load(tmp_path / "cpu.pgrd")
    assert export.load(tmp_path / "cpu.pgrd", native=True).run(x=[1.0])["output0"].tolist() == [2.0]
