"""Bundles: several Programs in one file."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest
from header_verdicts import verdicts, with_header, with_text

from polygrad.errors import ProgramError
from polygrad.runtime.bundle import Bundle, is_bundle, read_bundle
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program, Variable

KERNEL = Kernel("f", b"code", 2, language="linear", writes=(1,))
BUFFERS = (
    BufferSpec(4, "float32", "param", name="weight", shape=(2, 2)),
    BufferSpec(4, "float32", "state", name="cache", shape=(4,)),
)
PROGRAM = Program("INTERP", "t", BUFFERS, (KERNEL,), (Launch(0, (Binding(0), Binding(1))),))
OTHER = replace(PROGRAM, device="CPU")
TARGETS = ({"a": PROGRAM, "b": PROGRAM}, {"b": OTHER, "a": OTHER})
BUNDLE = Bundle("a-kind", {"n": 3}, TARGETS, {"f.json": b"{}"}, ("cache",))


def test_a_file_is_read_as_it_was_written() -> None:
    data = BUNDLE.head([b"values"]) + b"values"
    assert is_bundle(data) and not is_bundle(PROGRAM.to_bytes())
    bundle, values = read_bundle(data)
    assert (bundle, bytes(values)) == (BUNDLE, b"values")
    assert bundle.devices == ("INTERP", "CPU") and bundle.programs == {"a": PROGRAM, "b": PROGRAM}


def test_a_file_of_the_version_before_has_one_target() -> None:
    def remove_targets(header: Any) -> None:
        for section in header["programs"]:
            del section["target"]

    bundle = replace(BUNDLE, targets=TARGETS[:1])
    data = with_header(bundle.head([b"values"]) + b"values", remove_targets)
    assert read_bundle(data[:4] + struct.pack("<I", 2) + data[8:])[0] == bundle
    with pytest.raises(ProgramError, match="no section"):
        read_bundle(data)


def test_every_cut_and_every_tail_is_refused() -> None:
    data = BUNDLE.head([b"values"]) + b"values"
    for end in [*range(0, len(data), 7), len(data) - 1]:
        with pytest.raises(ProgramError):
            read_bundle(data[:end])
    with pytest.raises(ProgramError, match="damaged"):
        read_bundle(data + b"\0")


def test_another_version_and_another_file_are_refused() -> None:
    data = BUNDLE.head()
    with pytest.raises(ProgramError, match="expected version 3 or 2, got 7: use a newer polygrad"):
        read_bundle(data[:4] + struct.pack("<I", 7) + data[8:])
    with pytest.raises(ProgramError, match="expected version 3 or 2, got 1: export it again"):
        read_bundle(data[:4] + struct.pack("<I", 1) + data[8:])
    with pytest.raises(ProgramError, match="expected bytes starting b'PGRB'"):
        read_bundle(PROGRAM.to_bytes())


@pytest.mark.parametrize("key", ["kind", "settings", "programs", "files", "values", "zeros"])
def test_a_header_without_an_entry_is_refused(key: str) -> None:
    with pytest.raises(ProgramError, match="damaged"):
        read_bundle(with_header(BUNDLE.head(), lambda header: header.pop(key)))


def is_read(data: bytes) -> bool:
    try:
        bundle, values = read_bundle(data)
    except ProgramError:
        return False
    assert read_bundle(bundle.head([values]) + bytes(values)) == (bundle, values)
    return True


def test_readers_agree_on_every_header_with_one_part_changed(golden: Any) -> None:
    """The test of `wasm_runtime/src/files.ts` reads the golden file too."""
    golden("bundle_header.txt", verdicts(BUNDLE.head([b"values"]) + b"values", is_read))


def test_a_header_that_goes_too_deep_is_refused() -> None:
    for depth in (20, 500, 1000, 100_000):
        with pytest.raises(ProgramError, match="damaged"):
            read_bundle(with_text(BUNDLE.head(), b"[" * depth + b"]" * depth))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"device": "CPU"}, "some for CPU and INTERP"),
        ({"buffers": (replace(BUFFERS[0], shape=(4,)), BUFFERS[1])}, r"weight as .*\(2, 2\).*, in b, as"),
        ({"buffers": (replace(BUFFERS[0], name=""), BUFFERS[1])}, "a buffer without a name or a shape in b"),
    ],
)
def test_programs_that_contradict_each_other_are_refused(changes: dict, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        Bundle("k", {}, ({"a": PROGRAM, "b": replace(PROGRAM, **changes)},))


def test_memory_of_one_name_has_one_size_whatever_its_variables_are() -> None:
    """A shape with a Variable is the same text in both Programs, with memory of 4 elements and of 400."""
    small, large = (
        replace(
            PROGRAM,
            buffers=(replace(BUFFERS[0], size=n, shape=("n",)), BUFFERS[1]),
            variables=(Variable("n", 0, n),),
        )
        for n in (4, 400)
    )
    with pytest.raises(ProgramError, match=r"weight as .*4, .* and, in b, as .*400"):
        Bundle("k", {}, ({"a": small, "b": large},))
    Bundle("k", {}, ({"a": large, "b": large},))


def test_zeros_are_names_of_shared_memory() -> None:
    with pytest.raises(ProgramError, match="none with 'other', which is to be zero"):
        Bundle("k", {}, ({"a": PROGRAM},), zeros=("other",))
    with pytest.raises(ProgramError, match="got none"):
        Bundle("k", {}, ())
    with pytest.raises(ProgramError, match="got none"):
        Bundle("k", {}, ({"a": PROGRAM}, {}))


def test_an_exported_step_is_one_program_of_that_name() -> None:
    Bundle("step", {}, ({"step": PROGRAM},))
    with pytest.raises(ProgramError, match=r"an exported step with \['a'\]"):
        Bundle("step", {}, ({"a": PROGRAM},))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"buffers": (replace(BUFFERS[0], dtype="int32"), BUFFERS[1])}, "one has another 'weight', or none"),
        ({"buffers": (*BUFFERS, BufferSpec(1, "int32", "input", name="x", shape=(1,)))}, "another 'x'"),
        ({"variables": (Variable("n", 0, 3),)}, "another 'a'"),
    ],
)
def test_targets_have_the_same_inputs_outputs_and_values(changes: dict, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        Bundle("k", {}, ({"a": PROGRAM}, {"a": replace(OTHER, **changes)}))
    with pytest.raises(ProgramError, match="another 'b', or none"):
        Bundle("k", {}, ({"a": PROGRAM, "b": PROGRAM}, {"a": OTHER}))
