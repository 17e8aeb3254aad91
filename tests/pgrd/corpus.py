"""The files of this folder, good ones and bad ones. Every reader of `.pgrd` files gives the verdicts of
`verdicts.json`.

    PYTHONPATH=.:tests python tests/pgrd/corpus.py

writes all of them anew. A verdict is an object with one of

- `outputs`: the file is good; run on `inputs` (int32, and Variables by their names) it gives these, where
  null stands for an element that nothing has written,
- `reads`: the file is good, for a device that a reader need not have,
- `refused`: the file is bad: `magic` it is another kind of file, `version` of another version, `digest` it
  has another SHA-256 than it says, `damaged` for any other reason.

`kind`: of a Bundle, whose Program that runs is called `main`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from header_verdicts import header_of, with_header, with_text

from polygrad.dtype import dtypes
from polygrad.nn.safetensors import TensorEntry, write_entries
from polygrad.runtime.bundle import Bundle
from polygrad.runtime.limits import MAX_ARGUMENTS, MAX_BYTES, MAX_DEPTH, MAX_INTEGER, MAX_RANK
from polygrad.runtime.parts import BLOCK, part_of
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program, Variable

FOLDER = Path(__file__).parent
Json = dict[str, Any]


# --- good files


def module(name: str, params: int, code: list[int]) -> bytes:
    """A module that imports `env.memory` and exports `name`, a function of `params` i32 with this body."""

    def section(number: int, body: list[int]) -> list[int]:
        return [number, len(body), *body]

    def text(value: str) -> list[int]:
        return [len(value), *value.encode()]

    body = [0, *code, 0x0B]
    return bytes([
        *b"\0asm", 1, 0, 0, 0,
        *section(1, [1, 0x60, params, *[0x7F] * params, 0]),
        *section(2, [1, *text("env"), *text("memory"), 2, 0, 1]),
        *section(3, [1, 0]),
        *section(7, [1, *text(name), 0, 0]),
        *section(10, [1, len(body), *body]),
    ])  # fmt: skip


GET, LOAD, STORE, PLUS, TIMES = 0x20, [0x28, 2, 0], [0x36, 2, 0], 0x6A, 0x6C
# out[0] = in[0] + n; out[0] = in[0] * scale[0]
ADD_CODE = module("add", 3, [GET, 0, GET, 1, *LOAD, GET, 2, PLUS, *STORE])
SCALE_CODE = module("scale", 3, [GET, 0, GET, 1, *LOAD, GET, 2, *LOAD, TIMES, *STORE])


def at(entry: int) -> list[int]:
    """An entry of the driver's table."""
    return [GET, 0, 0x28, 2, 4 * entry]


# y[0] = (x[0] + n) * scale[0]: the table has x, the scratch, y, scale, the arena, n
DRIVER = module("run", 1, [*at(2), *at(0), *LOAD, *at(5), PLUS, *at(3), *LOAD, TIMES, *STORE])

CHAIN = Program(
    device="WASM",
    target="test",
    buffers=(
        BufferSpec(2, "int32", "input", name="x", shape=(1, 2)),
        BufferSpec(1, "int32", "scratch", 60),
        BufferSpec(2, "int32", "output", name="y", shape=(2,)),
        BufferSpec(1, "int32", "param", name="scale", shape=(1,)),
    ),
    kernels=(
        Kernel("add", ADD_CODE, 2, ("n",), language="wasm", writes=(0,)),
        Kernel("scale", SCALE_CODE, 3, language="wasm", writes=(0,)),
    ),
    launches=(Launch(0, (Binding(1), Binding(0, 4))), Launch(1, (Binding(2, 4), Binding(1), Binding(3)))),
    variables=(Variable("n", -10, 10),),
    arena=64,
)
CAPTURED = replace(CHAIN, kernels=tuple(replace(k, code=b"") for k in CHAIN.kernels), driver=DRIVER)
GRID = replace(
    CHAIN,
    device="WEBGPU",
    kernels=tuple(
        replace(k, code=b"@compute", language="wgsl", workgroup=(8, 2, 1), subgroup=32) for k in CHAIN.kernels
    ),
    launches=tuple(replace(x, grid=(("IDIV", ("ADD", "n", 70), 8), "n", 3)) for x in CHAIN.launches),
)


def values(*numbers: int, name: str = "scale", metadata: Any = None) -> bytes:
    data = struct.pack(f"<{len(numbers)}i", *numbers)
    return write_entries({name: TensorEntry(dtypes.int32, (len(numbers),), data)}, metadata)


SCALE = values(3)
SCALE_AND_OTHER = write_entries({
    name: TensorEntry(dtypes.int32, (1,), struct.pack("<i", 3)) for name in ("other", "scale")
})  # fmt: skip
GOOD = CHAIN.to_bytes(SCALE)
RUN: Json = {"inputs": {"x": [1, 4], "n": 3}, "outputs": {"y": [None, 21]}}
RUN_CAPTURED: Json = {"inputs": {"x": [4, 1], "n": 3}, "outputs": {"y": [21, None]}}


def bundle(program: Program = CHAIN, settings: Any = None, **changes: Any) -> bytes:
    made = Bundle("corpus", {"scale": 0.5} if settings is None else settings, ({"main": program},), **changes)
    return made.head([SCALE]) + SCALE


def of_version_2(data: bytes) -> bytes:
    """A Bundle of one target, as the version before has it."""

    def remove_targets(header: Any) -> None:
        for section in header["programs"]:
            del section["target"]

    data = with_header(data, remove_targets)
    return data[:4] + struct.pack("<I", 2) + data[8:]


BUNDLE = bundle(files={"notes.txt": b"text"})
TARGETS = Bundle("corpus", {}, ({"main": GRID}, {"main": CHAIN})).head([SCALE]) + SCALE
NESTED: list[Any] = []
for _ in range(MAX_DEPTH - 2):
    NESTED = [NESTED]


def nested_size(depth: int) -> Any:
    """A size of a grid of so many operations in each other."""
    size: Any = "n"
    for _ in range(depth):
        size = ["NEG", size]
    return size


def with_rank(rank: int) -> Program:
    shape = (*[1] * (rank - 1), 2)
    return replace(CHAIN, buffers=(replace(CHAIN.buffers[0], shape=shape), *CHAIN.buffers[1:]))


def of_shape(program: Program, x: Any) -> bytes:
    """The input of rank one, of a program that runs on `RUN`."""
    return replace(program, buffers=(replace(program.buffers[0], shape=x), *program.buffers[1:])).to_bytes(
        SCALE
    )


def large() -> bytes:
    """A file whose values take two blocks: the SHA-256 of each is checked."""
    size = BLOCK // 4
    spec = replace(CHAIN.buffers[3], size=size, shape=(size,))
    return replace(CHAIN, buffers=(*CHAIN.buffers[:3], spec)).to_bytes(values(*[3] * size))


def good() -> dict[str, tuple[bytes, Json]]:
    two = {"kind": "corpus"}
    reads: Json = {"reads": True}
    chain, grid = (
        replace(p, buffers=(replace(p.buffers[0], shape=(2,)), *p.buffers[1:])) for p in (CHAIN, GRID)
    )
    targets = Bundle("corpus", {}, ({"main": grid}, {"main": chain}))
    return {
        "chain": (of_shape(CHAIN, (2,)), RUN),
        "captured": (of_shape(CAPTURED, (2,)), RUN_CAPTURED),
        "bundle": (bundle(chain), {**RUN, **two}),
        "bundle_version_2": (of_version_2(bundle(chain)), {**RUN, **two}),
        "bundle_of_two_targets": (targets.head([SCALE]) + SCALE, {**RUN, **two}),
        "bundle_with_files": (BUNDLE, {**reads, **two}),
        "bundle_settings_nested": (bundle(settings={"a": NESTED}), {**reads, **two}),
        "grid": (GRID.to_bytes(SCALE), reads),
        "grid_nested": (
            with_header(
                GRID.to_bytes(SCALE),
                lambda h: h["launches"][0].update(grid=[nested_size(MAX_DEPTH - 4), 1, 1]),
            ),
            reads,
        ),
        "rank": (with_rank(MAX_RANK).to_bytes(SCALE), reads),
        "binding_at_the_end": (
            with_header(GOOD, lambda h: put(h, 8, "launches", 0, "bindings", 1, "offset")),
            reads,
        ),
        "white_space": (with_text(GOOD, json.dumps(header_of(GOOD), indent=1).encode()), reads),
        "names_of_any_text": (
            with_header(GOOD, lambda h: put(h, "\u00e9\U0001f600", "kernels", 0, "name")),
            reads,
        ),
        "no_values": (CHAIN.to_bytes(), {"refused": "damaged"}),  # it has a parameter
        "no_parameters": (
            replace(CHAIN, buffers=(*CHAIN.buffers[:3], replace(CHAIN.buffers[3], role="input"))).to_bytes(),
            reads,
        ),
    }


# --- bad ones


def put(header: Any, value: Any, *path: Any) -> None:
    for key in path[:-1]:
        header = header[key]
    header[path[-1]] = value


def at_path(value: Any, *path: Any) -> bytes:
    return with_header(GOOD, lambda h: put(h, value, *path))


def with_tokens(old: str, new: str, data: bytes = GOOD) -> bytes:
    """A file with another text of its header, which JSON's writers may not write."""
    text = json.dumps(header_of(data))
    assert old in text, text
    return with_text(data, text.replace(old, new, 1).encode())


def flipped(data: bytes, position: int) -> bytes:
    """One changed byte."""
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


def with_values(raw: bytes) -> bytes:
    return CHAIN.to_bytes(raw)


def safetensors(text: str, data: bytes = b"") -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw + data


def with_settings(text: bytes) -> bytes:
    header = {**header_of(BUNDLE), "settings": part_of([text])}
    old = header_of(BUNDLE)["settings"]["bytes"]
    (length,) = struct.unpack_from("<I", BUNDLE, 8)
    rest = BUNDLE[44 + length + old :]
    return with_text(BUNDLE[: 44 + length], json.dumps(header).encode()) + text + rest


def bad() -> dict[str, tuple[bytes, str]]:
    start = 44 + struct.unpack_from("<I", GOOD, 8)[0]
    scratch = ("buffers", 1)
    binding = ("launches", 0, "bindings", 1)
    entry = '{"scale":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}'
    grid = GRID.to_bytes(SCALE)

    def on_grid(change: Callable[[Any], Any]) -> bytes:
        return with_header(grid, change)

    def size(value: Any) -> bytes:
        return on_grid(lambda h: h["launches"][0].update(grid=[value, 1, 1]))

    made: dict[str, tuple[bytes, str]] = {
        # the file
        "empty": (b"", "magic"),
        "other_magic": (b"PGRX" + GOOD[4:], "magic"),
        "version_8": (GOOD[:4] + struct.pack("<I", 8) + GOOD[8:], "version"),
        "version_10": (GOOD[:4] + struct.pack("<I", 10) + GOOD[8:], "version"),
        "bundle_version_1": (BUNDLE[:4] + struct.pack("<I", 1) + BUNDLE[8:], "version"),
        "bundle_version_4": (BUNDLE[:4] + struct.pack("<I", 4) + BUNDLE[8:], "version"),
        "cut_prefix": (GOOD[:30], "damaged"),
        "cut_header": (GOOD[:100], "damaged"),
        "cut_code": (GOOD[: start + 10], "damaged"),
        "cut_values": (GOOD[:-1], "damaged"),
        "more_bytes": (GOOD + b"\0", "damaged"),
        "header_length_4_gib": (GOOD[:8] + b"\xff\xff\xff\xff" + GOOD[12:], "damaged"),
        # digests
        "flipped_header": (flipped(GOOD, 60), "digest"),
        "flipped_digest_of_header": (flipped(GOOD, 20), "digest"),
        "flipped_code": (flipped(GOOD, start + 50), "digest"),
        "flipped_values": (flipped(GOOD, len(GOOD) - 1), "digest"),
        "flipped_driver": (
            flipped(CAPTURED.to_bytes(SCALE), len(CAPTURED.to_bytes(SCALE)) - len(SCALE) - 1),
            "digest",
        ),
        "flipped_settings": (flipped(BUNDLE, 44 + struct.unpack_from("<I", BUNDLE, 8)[0] + 3), "digest"),
        "flipped_file": (flipped(BUNDLE, BUNDLE.index(b"text") + 1), "digest"),
        "flipped_program_of_bundle": (flipped(BUNDLE, BUNDLE.index(b"PGRD") + 70), "digest"),
        "digest_missing": (at_path([], "values", "sha256"), "damaged"),
        "digest_twice": (at_path(part_of([SCALE])["sha256"] * 2, "values", "sha256"), "damaged"),
        "digest_in_capitals": (
            with_header(
                GOOD, lambda h: put(h, [d.upper() for d in h["values"]["sha256"]], "values", "sha256")
            ),
            "damaged",
        ),
        "part_of_2_to_60": (at_path(2**60, "values", "bytes"), "damaged"),
        "part_of_negative_length": (at_path(-1, "values", "bytes"), "damaged"),
        # the text of the header
        "name_twice": (with_tokens('"arena": 64', '"arena": 64, "arena": 64'), "damaged"),
        "name_twice_escaped": (with_tokens('"arena": 64', r'"arena": 64, "\u0061rena": 64'), "damaged"),
        "name_twice_inside": (with_tokens('"lo": -10', '"lo": -10, "lo": -10'), "damaged"),
        "float": (with_tokens('"arena": 64', '"arena": 64.0'), "damaged"),
        "exponent": (with_tokens('"hi": 10', '"hi": 1e1'), "damaged"),
        "nan": (with_tokens('"arena": 64', '"arena": NaN'), "damaged"),
        "infinity": (with_tokens('"hi": 10', '"hi": Infinity'), "damaged"),
        "integer_of_10000_digits": (with_tokens('"hi": 10', '"hi": ' + "1" * 10_000), "damaged"),
        "integer_beyond_exact": (with_tokens('"hi": 10', f'"hi": {MAX_INTEGER + 2}'), "damaged"),
        "leading_zero": (with_tokens('"arena": 64', '"arena": 064'), "damaged"),
        "comment": (with_tokens('"arena": 64', '"arena": 64 /**/'), "damaged"),
        "trailing_comma": (with_tokens('"arena": 64', '"arena": 64,'), "damaged"),
        "byte_order_mark": (
            with_text(GOOD, b"\xef\xbb\xbf" + json.dumps(header_of(GOOD)).encode()),
            "damaged",
        ),
        "utf_16": (with_text(GOOD, json.dumps(header_of(GOOD)).encode("utf-16-le")), "damaged"),
        "not_utf_8": (with_text(GOOD, b'{"\xff": 1}'), "damaged"),
        "control_character": (with_tokens('"target": "test"', '"target": "a\x01"'), "damaged"),
        "two_values": (with_text(GOOD, json.dumps(header_of(GOOD)).encode() + b" 1"), "damaged"),
        "nested_1000": (with_text(GOOD, b"[" * 1_000 + b"]" * 1_000), "damaged"),
        "nested_100000": (with_text(GOOD, b"[" * 100_000 + b"]" * 100_000), "damaged"),
        "nested_in_a_field": (
            with_tokens('"target": "test"', '"target": ' + "[" * 950 + "]" * 950),
            "damaged",
        ),
        "list_as_header": (with_text(GOOD, b"[]"), "damaged"),
        "number_as_header": (with_text(GOOD, b"7"), "damaged"),
        "unknown_field": (at_path(1, "more"), "damaged"),
        "unknown_field_of_a_buffer": (at_path(1, "buffers", 0, "more"), "damaged"),
        "unknown_field_of_a_part": (at_path(1, "values", "more"), "damaged"),
        "name_of_a_part": (at_path("add", "kernels", 0, "code", "name"), "damaged"),
        "prototype": (with_tokens('"arena": 64', '"arena": 64, "__proto__": {}'), "damaged"),
        # sizes and places
        "arena_2_to_60": (at_path(2**60, "arena"), "damaged"),
        "arena_too_small": (at_path(63, "arena"), "damaged"),
        "arena_negative": (at_path(-64, "arena"), "damaged"),
        "arena_true": (at_path(True, "arena"), "damaged"),
        "arena_text": (at_path("64", "arena"), "damaged"),
        "scratch_outside": (at_path(61, *scratch, "offset"), "damaged"),
        "scratch_far_outside": (at_path(2**50, *scratch, "offset"), "damaged"),
        "scratch_without_a_place": (at_path(-1, *scratch, "offset"), "damaged"),
        "scratch_too_large": (at_path(2, *scratch, "size"), "damaged"),
        "place_of_an_input": (at_path(0, "buffers", 0, "offset"), "damaged"),
        "buffer_2_to_60": (
            with_header(GOOD, lambda h: h["buffers"][3].update(size=2**60, shape=[2**60])),
            "damaged",
        ),
        "buffer_beyond_the_limit": (
            with_header(GOOD, lambda h: h["buffers"][3].update(size=MAX_BYTES // 2, shape=[MAX_BYTES // 2])),
            "damaged",
        ),
        "unknown_dtype": (at_path("complex64", "buffers", 1, "dtype"), "damaged"),
        "dtype_alias": (at_path("float", "buffers", 1, "dtype"), "damaged"),
        "dtype_constructor": (at_path("constructor", "buffers", 1, "dtype"), "damaged"),
        "dtype_index": (at_path("index", "buffers", 1, "dtype"), "damaged"),
        "shape_of_another_size": (at_path([3], "buffers", 0, "shape"), "damaged"),
        "shape_that_wraps": (at_path([2**32, 2**32, 2], "buffers", 0, "shape"), "damaged"),
        "shape_that_wraps_to_zero": (
            with_header(GOOD, lambda h: h["buffers"][0].update(size=0, shape=[2**52] * 40 + [0])),
            "damaged",
        ),
        "rank_65": (
            with_header(GOOD, lambda h: h["buffers"][0].update(shape=[1] * MAX_RANK + [2])),
            "damaged",
        ),
        "shape_of_unknown_variable": (at_path(["m"], "buffers", 0, "shape"), "damaged"),
        "name_of_two_inputs": (at_path("x", "buffers", 3, "name"), "damaged"),
        "binding_outside": (at_path(9, *binding, "offset"), "damaged"),
        "binding_2_to_50": (at_path(2**50, *binding, "offset"), "damaged"),
        "binding_negative": (at_path(-4, *binding, "offset"), "damaged"),
        "binding_of_no_buffer": (at_path(4, *binding, "buffer"), "damaged"),
        "binding_of_a_negative_buffer": (at_path(-1, *binding, "buffer"), "damaged"),
        "binding_missing": (with_header(GOOD, lambda h: h["launches"][0]["bindings"].pop()), "damaged"),
        "launch_of_no_kernel": (at_path(2, "launches", 0, "kernel"), "damaged"),
        "launch_of_a_negative_kernel": (at_path(-1, "launches", 0, "kernel"), "damaged"),
        "pointer_that_is_none": (at_path([2], "kernels", 0, "writes"), "damaged"),
        "too_many_arguments": (at_path(MAX_ARGUMENTS, "kernels", 0, "n_buffers"), "damaged"),
        "threads_2_to_31": (at_path(2**31, "threads"), "damaged"),
        "threads_without_a_parallel_kernel": (at_path(2, "threads"), "damaged"),
        "variable_twice": (with_header(GOOD, lambda h: h["variables"].append(h["variables"][0])), "damaged"),
        "variable_called_thread": (at_path("thread", "variables", 0, "name"), "damaged"),
        "variable_without_values": (at_path(11, "variables", 0, "lo"), "damaged"),
        "variable_beyond_exact": (at_path(2**60, "variables", 0, "hi"), "damaged"),
        "variable_that_is_none": (at_path(["m"], "kernels", 0, "variables"), "damaged"),
        "language_of_nobody": (at_path("java", "kernels", 0, "language"), "damaged"),
        # grids
        "grid_of_wasm": (at_path([1, 1, 1], "launches", 0, "grid"), "damaged"),
        "grid_missing": (on_grid(lambda h: h["launches"][0].update(grid=None)), "damaged"),
        "grid_of_two": (on_grid(lambda h: h["launches"][0].update(grid=[1, 1])), "damaged"),
        "grid_of_0": (size(0), "damaged"),
        "grid_negative": (size(-1), "damaged"),
        "grid_2_to_31": (size(2**31), "damaged"),
        "grid_of_unknown_variable": (size("m"), "damaged"),
        "grid_of_unknown_operation": (size(["POW", "n", 2]), "damaged"),
        "grid_of_constructor": (size(["constructor", "n"]), "damaged"),
        "grid_of_one_operand": (size(["ADD", "n"]), "damaged"),
        "grid_beyond_exact": (size(["ADD", "n", 2**60]), "damaged"),
        "grid_too_deep": (size(nested_size(MAX_DEPTH - 3)), "damaged"),
        "grid_1000_deep": (size(nested_size(900)), "damaged"),
        "workgroup_of_0": (on_grid(lambda h: h["kernels"][0].update(workgroup=[8, 0, 1])), "damaged"),
        "workgroup_of_2048": (on_grid(lambda h: h["kernels"][0].update(workgroup=[1024, 2, 1])), "damaged"),
        "subgroup_of_256": (on_grid(lambda h: h["kernels"][0].update(subgroup=256)), "damaged"),
        # values
        "values_of_another_name": (with_values(values(3, name="other")), "damaged"),
        "values_of_another_shape": (with_values(values(3, 4)), "damaged"),
        "values_that_are_none": (with_values(b"no safetensors"), "damaged"),
        "values_with_metadata": (with_values(values(3, metadata={"a": "b"})), "damaged"),
        "values_twice": (with_values(safetensors(f"{entry[:-1]}}},{entry[1:]}}}", b"\0" * 4)), "damaged"),
        "values_of_float_shape": (
            with_values(safetensors(entry.replace("[1]", "[1.0]") + "}", b"\0" * 4)),
            "damaged",
        ),
        "values_of_constructor": (
            with_values(safetensors(entry.replace("I32", "constructor") + "}", b"\0" * 4)),
            "damaged",
        ),
        "values_nested": (with_values(safetensors('{"scale":' + "[" * 940 + "]" * 940 + "}")), "damaged"),
        "values_with_a_gap": (
            with_values(safetensors(entry.replace("[0,4]", "[4,8]") + "}", b"\0" * 8)),
            "damaged",
        ),
        "values_with_more": (with_values(safetensors(entry + "}", b"\0" * 8)), "damaged"),
        "values_with_a_long_header": (with_values(b"\xff" * 7 + b"\x7f" + b"{}"), "damaged"),
        # bundles
        "bundle_unknown_field": (with_header(BUNDLE, lambda h: h.update(more=1)), "damaged"),
        "bundle_name_twice": (
            with_tokens('"kind": "corpus"', '"kind": "corpus", "kind": "corpus"', BUNDLE),
            "damaged",
        ),
        "bundle_version_2_with_targets": (BUNDLE[:4] + struct.pack("<I", 2) + BUNDLE[8:], "damaged"),
        "bundle_without_a_target": (with_header(BUNDLE, lambda h: h["programs"][0].pop("target")), "damaged"),
        "bundle_of_a_target_that_is_text": (
            with_header(BUNDLE, lambda h: put(h, "0", "programs", 0, "target")),
            "damaged",
        ),
        "bundle_of_no_first_target": (
            with_header(TARGETS, lambda h: put(h, 1, "programs", 0, "target")),
            "damaged",
        ),
        "bundle_of_a_distant_target": (
            with_header(TARGETS, lambda h: put(h, 2**40, "programs", 1, "target")),
            "damaged",
        ),
        "bundle_of_a_target_of_two_devices": (
            with_header(TARGETS, lambda h: h["programs"][1].update(name="other", target=0)),
            "damaged",
        ),
        "bundle_of_targets_with_other_names": (
            with_header(TARGETS, lambda h: put(h, "other", "programs", 1, "name")),
            "damaged",
        ),
        "bundle_of_targets_with_other_values": (
            bundle_of(
                {"main": CHAIN.to_bytes()},
                {"main": with_value("other").to_bytes()},
                values=SCALE_AND_OTHER,
            ),
            "damaged",
        ),
        "bundle_of_a_step_of_another_name": (with_header(BUNDLE, lambda h: h.update(kind="step")), "damaged"),
        "bundle_same_name_of_files": (
            with_header(BUNDLE, lambda h: h["files"].append({**h["files"][0], "bytes": 0, "sha256": []})),
            "damaged",
        ),
        "bundle_settings_with_a_name_twice": (with_settings(b'{"a":1,"a":2}'), "damaged"),
        "bundle_settings_with_infinity": (with_settings(b'{"a":1e999}'), "damaged"),
        "bundle_settings_beyond_exact": (with_settings(b'{"a":9007199254740993}'), "damaged"),
        "bundle_settings_nested": (
            with_settings(b'{"a":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}"),
            "damaged",
        ),
        "bundle_settings_nested_900": (with_settings(b'{"a":' + b"[" * 900 + b"]" * 900 + b"}"), "damaged"),
        "bundle_settings_of_a_list": (with_settings(b"[]"), "damaged"),
        "bundle_without_programs": (bundle_of({}), "damaged"),
        "bundle_of_no_programs": (bundle_of({"main": b"none"}), "magic"),
        "bundle_of_programs_with_values": (bundle_of({"main": GOOD}), "damaged"),
        "bundle_of_zeros_that_are_none": (
            with_header(BUNDLE, lambda h: h.update(zeros=["other"])),
            "damaged",
        ),
    }
    return made


def with_value(name: str) -> Program:
    """A Program whose parameter has another name."""
    return replace(CHAIN, buffers=(*CHAIN.buffers[:3], replace(CHAIN.buffers[3], name=name)))


def bundle_of(*targets: dict[str, bytes], values: bytes = SCALE) -> bytes:
    """A Bundle of bytes that may be no Programs."""
    programs = [(name, i, data) for i, target in enumerate(targets) for name, data in target.items()]
    header = {
        "kind": "corpus",
        "settings": part_of([b"{}"]),
        "programs": [{"name": name, "target": i, **part_of([data])} for name, i, data in programs],
        "files": [],
        "values": part_of([values]),
        "zeros": [],
    }
    text = json.dumps(header).encode()
    parts = b"".join((b"{}", *(data for _, _, data in programs), values))
    return with_text(BUNDLE[:44], text)[: 44 + len(text)] + parts


def corpus() -> tuple[dict[str, bytes], dict[str, Json]]:
    """The files by their names in this folder, and the verdicts on them."""
    files: dict[str, bytes] = {}
    verdicts: dict[str, Json] = {}
    for name, (data, verdict) in good().items():
        key = f"{'bad' if 'refused' in verdict else 'good'}/{name}.pgrd"
        files[key], verdicts[key] = data, verdict
    for name, (data, reason) in bad().items():
        files[f"bad/{name}.pgrd"], verdicts[f"bad/{name}.pgrd"] = data, {"refused": reason}
    return files, verdicts


def verdict_text(verdicts: dict[str, Json]) -> str:
    lines = [f"  {json.dumps(name)}: {json.dumps(verdict)}" for name, verdict in sorted(verdicts.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    files, verdicts = corpus()
    for old in FOLDER.glob("*/*.pgrd"):
        old.unlink()
    for name, data in files.items():
        (FOLDER / name).parent.mkdir(exist_ok=True)
        (FOLDER / name).write_bytes(data)
    (FOLDER / "verdicts.json").write_text(verdict_text(verdicts), encoding="utf-8")
