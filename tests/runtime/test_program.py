"""The bytes of a Program: what they say, and what is refused."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from header_verdicts import verdicts, with_header, with_text

from polygrad.engine.devices import Device
from polygrad.errors import ProgramError
from polygrad.runtime.program import (
    Binding,
    BufferSpec,
    Kernel,
    Launch,
    Program,
    Variable,
    read_program,
)

PROGRAM = Program(
    device="WASM",
    target="test",
    buffers=(
        BufferSpec(8, "float32", "input", name="x", shape=("n", 2)),
        BufferSpec(1, "int32", "scratch", 64),
        BufferSpec(2, "int32", "output", name="y", shape=(2, 1)),
    ),
    kernels=(
        Kernel("k", b"code", 2, ("n",), language="wasm", writes=(0,)),
        Kernel("all", b"more", 1, ("thread", "threads"), language="wasm", writes=(0,), parallel=True),
        Kernel("grid", b"@compute", 1, ("n",), language="wgsl", writes=(0,), workgroup=(8, 2, 1)),
    ),
    launches=(
        Launch(0, (Binding(2, 4), Binding(0))),
        Launch(1, (Binding(2),), barrier=True),
        Launch(2, (Binding(2),), (("IDIV", ("ADD", "n", 7), 8), "n", 3)),
    ),
    variables=(Variable("n", 1, 4),),
    arena=128,
    driver=b"driver",
    threads=2,
    shared_memory=True,
)


REQUIRED = {
    "program": [
        "device", "target", "buffers", "kernels", "launches", "variables", "arena", "driver", "values",
        "threads", "shared_memory",
    ],
    "buffer": ["size", "dtype", "role", "offset", "name", "shape"],
    "kernel": ["name", "code", "n_buffers", "variables", "language", "writes", "parallel", "workgroup"],
    "launch": ["kernel", "bindings", "grid", "barrier"],
}  # fmt: skip


def test_values_begin_on_a_multiple_of_64() -> None:
    for kernel in ("k", "kernel", "a longer name of a kernel"):
        program = replace(PROGRAM, kernels=(replace(PROGRAM.kernels[0], name=kernel), *PROGRAM.kernels[1:]))
        assert (len(program.to_bytes(b"values")) - len(b"values")) % 64 == 0


def changed(change: Any) -> bytes:
    """The bytes of PROGRAM with its header changed."""
    return with_header(PROGRAM.to_bytes(), change)


def test_a_program_and_values_are_read_as_they_were_written() -> None:
    assert read_program(PROGRAM.to_bytes(b"values")) == (PROGRAM, b"values")
    assert Program.from_bytes(PROGRAM.to_bytes()) == PROGRAM
    assert PROGRAM.to_bytes() == PROGRAM.to_bytes()


def test_there_is_room_for_shaders_on_grids_which_no_device_here_runs() -> None:
    kernel = Kernel("k", b"fn main() {}", 2, language="wgsl", writes=(0,), workgroup=(64, 1, 1))
    launch = replace(PROGRAM.launches[0], grid=(4, 2, 1))
    program = replace(PROGRAM, kernels=(kernel,), launches=(launch,), threads=1)
    assert Program.from_bytes(program.to_bytes()) == program
    with pytest.raises(ProgramError, match=r"kernel k: expected wasm, .* got wgsl: export"):
        program.require("WASM", "wasm")
    with pytest.raises(ProgramError, match="expected linear, which INTERP runs, got wgsl"):
        Device["INTERP"].load(replace(program, device="INTERP"))


@pytest.mark.parametrize("version", [4, 8, 10])
def test_another_version_is_refused(version: int) -> None:
    data = PROGRAM.to_bytes()
    advice = "export it again" if version < 9 else "use a newer polygrad"
    with pytest.raises(ProgramError, match=f"expected version 9, got {version}: {advice}"):
        Program.from_bytes(data[:4] + struct.pack("<I", version) + data[8:])


def test_every_cut_is_refused() -> None:
    data = PROGRAM.to_bytes(b"values")
    for end in range(len(data)):
        with pytest.raises(ProgramError):
            read_program(data[:end])
    with pytest.raises(ProgramError, match="damaged"):
        read_program(data + b"\0")


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h["buffers"][0].update(role="other"),
        lambda h: h["buffers"][0].update(size=-1),
        lambda h: h["buffers"][0].update(shape=["n", 3]),
        lambda h: h["buffers"][0].update(shape=["m", 2]),
        lambda h: h["buffers"][0].update(more=1),
        lambda h: h["buffers"][1].update(offset=-1),
        lambda h: h["buffers"][1].update(offset=129),
        lambda h: h["buffers"][2].update(name="x", role="input", offset=-1),
        lambda h: h["kernels"][0].update(language="java"),
        lambda h: h["kernels"][0].update(code=4),
        lambda h: h["kernels"][0]["code"].update(bytes=-1),
        lambda h: h["kernels"][0]["code"].update(bytes=3),
        lambda h: h["kernels"][0]["code"].update(sha256=[]),
        lambda h: h["launches"][0].update(kernel=1),
        lambda h: h["launches"][2].update(grid=[1, 1]),
        lambda h: h["launches"][2].update(grid=[1, 0, 1]),
        lambda h: h["launches"][2].update(grid=[1, "m", 1]),
        lambda h: h["launches"][2].update(grid=[1, ["ADD", "n"], 1]),
        lambda h: h["launches"][2].update(grid=[1, ["NEG", "n", "n"], 1]),
        lambda h: h["launches"][2].update(grid=[1, ["WHERE", 1, 2], 1]),
        lambda h: h["launches"][2].update(grid=None),
        lambda h: h["kernels"][0].update(workgroup=[1, 1, 1]),
        lambda h: h["kernels"][2].update(workgroup=None),
        lambda h: h["kernels"][2].update(workgroup=[8, 0, 1]),
        lambda h: h["kernels"][2].update(workgroup=[8, 1]),
        lambda h: h["launches"][0].update(kernel=-1),
        lambda h: h["launches"][0].update(grid=[1, 1, 1]),
        lambda h: h["launches"][0]["bindings"].pop(),
        lambda h: h["launches"][0]["bindings"][0].update(buffer=3),
        lambda h: (
            h["kernels"][0].update(language="wgsl", writes=(0,)),
            h["launches"][0].update(grid=[1, 0, 1]),
        ),
        lambda h: (h["kernels"][0].update(language="wgsl", writes=(0,)), h["launches"][0].update(grid=None)),
        lambda h: h["kernels"][0].update(writes=[2]),
        lambda h: h["kernels"][0].update(writes=[-1]),
        lambda h: h["kernels"][0].update(writes=["0"]),
        lambda h: h["kernels"][0].update(parallel=True),
        lambda h: h["kernels"][1].update(parallel=False),
        lambda h: h["kernels"][1].update(parallel=1),
        lambda h: h["launches"][1].update(barrier=1),
        lambda h: h["launches"][1].update(barrier=None),
        *(lambda h, name=name: h.pop(name) for name in REQUIRED["program"]),
        *(lambda h, name=name: h["buffers"][0].pop(name) for name in REQUIRED["buffer"]),
        *(lambda h, name=name: h["kernels"][0].pop(name) for name in REQUIRED["kernel"]),
        *(lambda h, name=name: h["launches"][0].pop(name) for name in REQUIRED["launch"]),
        lambda h: h.update(threads=0),
        lambda h: h.update(threads="2"),
        lambda h: h.update(threads=2.0),
        lambda h: (h["kernels"].pop(1), h["launches"].pop(1), h["launches"][1].update(kernel=1)),
        lambda h: h.update(buffers=None),
    ],
)
def test_a_header_that_says_what_cannot_be_is_refused(change: Any) -> None:
    with pytest.raises(ProgramError, match="damaged"):
        Program.from_bytes(changed(change))


def is_read(data: bytes) -> bool:
    try:
        program, values = read_program(data)
    except ProgramError:
        return False
    assert read_program(program.to_bytes(values)) == (program, values)
    return True


def test_readers_agree_on_every_header_with_one_part_changed(golden: Any) -> None:
    """The test of `wasm_runtime/src/program.ts` reads the golden file too."""
    golden("program_header.txt", verdicts(PROGRAM.to_bytes(), is_read))


def test_a_header_that_goes_too_deep_is_refused() -> None:
    for depth in (20, 500, 1000, 100_000):
        with pytest.raises(ProgramError, match="damaged"):
            read_program(with_text(PROGRAM.to_bytes(), b"[" * depth + b"]" * depth))


def test_a_header_written_anew_is_the_same_program() -> None:
    assert Program.from_bytes(changed(lambda h: None)) == PROGRAM


@pytest.mark.parametrize("values", [{}, {"m": 2}, {"n": 0}, {"n": 5}])
def test_a_variable_has_a_value_within_its_bounds(values: dict[str, int]) -> None:
    with pytest.raises(ProgramError, match=f"expected variable n from 1 to 4, got {values.get('n')}"):
        PROGRAM.check_variables(values)
    assert PROGRAM.check_variables({"n": 1, "m": 9}) == [1] and PROGRAM.check_variables({"n": 4}) == [4]


def test_a_kernel_is_parallel_just_if_it_takes_thread_or_threads() -> None:
    for variables, parallel in ((("thread",), False), (("n",), True)):
        with pytest.raises(
            ProgramError, match="expected one of the variables thread, threads, part and parts just if"
        ):
            Kernel("k", b"", 0, variables, language="wasm", writes=(), parallel=parallel)
