"""A fuzzer of ONNX files: it changes bytes of valid files, then loads, inspects and, if loading works, runs
the result.

    python tests/onnx_fuzz.py COUNT [SEED]

Every file must either work or raise one of polygrad's errors, in memory bounded by the file's size.
"""

from __future__ import annotations

import contextlib
import math
import random
import resource
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx_suite as suite
from fuzz.changes import Change, cut, flip, remove, repeat, set_byte, splice
from onnx import helper, numpy_helper
from onnx_models import FLOAT, model

import polygrad.onnx
from polygrad import Tensor
from polygrad.errors import PolygradError
from polygrad.onnx.ports import Port
from polygrad.onnx.wire_writer import varint

BYTES_A_BYTE, BYTES_BESIDE = 200, 1 << 20  # of memory for a byte of a file, and for any file
LARGEST_INPUT = 10_000
ONE_FILE = 300 << 20  # bytes of memory by which a file may let this process grow
ADDRESSES = 8 << 30
# Lengths, sizes and tags at their limits, as varints.
NUMBERS = [
    bytes.fromhex(text)
    for text in (
        "00", "01", "7f", "8001", "ff7f", "ffffffff07", "ffffffff0f", "ffffffffffffffff7f",
        "ffffffffffffffffff01", "80808080808080808001", "ffffffffffffffffffff", "80", "0a", "12", "3a", "07",
    )
]  # fmt: skip


def nested(depth: int) -> bytes:
    """If inside of If, with an initializer in each."""
    x, y = (helper.make_tensor_value_info(n, FLOAT, None) for n in "xy")
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "leaf", [], [y])
    for i in range(depth):
        c = numpy_helper.from_array(np.array(i % 2 == 0), "c")
        node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=graph)
        graph = helper.make_graph([node], f"level{i}", [], [y], initializer=[c])
    graph.input.append(x)
    return helper.make_model(
        graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)]
    ).SerializeToString()


def with_function() -> bytes:
    opset = helper.make_opsetid("", 21)
    body = [helper.make_node("Mul", ["a", "a"], ["s"]), helper.make_node("Add", ["s", "a"], ["b"])]
    inner = helper.make_function("mine", "Inner", ["a"], ["b"], body, [opset])
    calls = [
        helper.make_node("Inner", ["a"], ["m"], domain="mine"),
        helper.make_node("Inner", ["m"], ["b"], domain="mine"),
    ]
    outer = helper.make_function(
        "mine", "Outer", ["a"], ["b"], calls, [opset, helper.make_opsetid("mine", 1)]
    )
    node = helper.make_node("Outer", ["x"], ["y"], domain="mine")
    return model([node], ["x"], ["y"], functions=[inner, outer], more=[helper.make_opsetid("mine", 1)])


def corpus() -> list[bytes]:
    """Small good files: one of each kind of node test and more."""
    files: dict[str, bytes] = {}
    for kind in suite.KINDS:
        for case in suite.cases(kind):
            data = case.model.SerializeToString()
            if len(data) < 4000:
                files.setdefault(" ".join(sorted({n.op_type for n in case.model.graph.node})), data)
    return [*files.values(), nested(3), with_function()]


# --- changes


def _number(data: bytearray, rng: random.Random, files: Sequence[bytes]) -> None:
    """A length, size or tag at its limits."""
    at, number = rng.randrange(len(data)), rng.choice(NUMBERS)
    data[at : at + rng.choice((0, 1, len(number)))] = number


CHANGES: list[Change] = [
    flip, flip, set_byte, set_byte, _number, _number, remove, repeat, splice, cut,
]  # fmt: skip


# --- changes that keep the frame: a field somewhere inside, and the lengths around it are right again

Field = list[Any]  # number, kind, and value: an int, bytes, or the fields of a message


def parsed(data: bytes, depth: int = 0) -> list[Field] | None:
    """Bytes as fields, where they are a message."""
    fields, at = [], 0
    try:
        while at < len(data):
            tag, at = _varint(data, at)
            kind, value = tag & 7, None
            if kind == 0:
                value, at = _varint(data, at)
            else:
                size, at = _varint(data, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
                value, at = data[at : at + size], at + size
                if at > len(data):
                    return None
                if kind == 2 and len(value) > 1 and depth < 12:
                    value = parsed(value, depth + 1) or value
            if not tag >> 3:
                return None
            fields.append([tag >> 3, kind, value])
    except (IndexError, KeyError):
        return None
    return fields


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value, shift, at = value | (data[at] & 0x7F) << shift, shift + 7, at + 1
    return value | data[at] << shift, at + 1


def written(fields: list[Field]) -> bytes:
    out = []
    for number, kind, value in fields:
        value = written(value) if isinstance(value, list) else value
        head = varint(number << 3 | kind)
        body = varint(value) if kind == 0 else varint(len(value)) + value if kind == 2 else value
        out.append(head + body)
    return b"".join(out)


def change_a_field(data: bytes, rng: random.Random, files: list[bytes]) -> bytes:
    root = parsed(data)
    places = [(root or [], i) for i in range(len(root or []))]
    for fields, i in places:  # which grows
        if isinstance(fields[i][2], list):
            places += [(fields[i][2], k) for k in range(len(fields[i][2]))]
    if not places or root is None:
        return data
    fields, i = rng.choice(places)
    field, way = fields[i], rng.randrange(6)
    if way == 0:
        del fields[i]
    elif way == 1:
        fields.insert(rng.randrange(len(fields) + 1), field)
    elif way == 2:
        field[0] = rng.randint(1, 30)
    elif way == 3:
        message_fields, k = rng.choice(places)
        fields[i] = (
            message_fields[k]
            if not isinstance(message_fields[k][2], list)
            else [message_fields[k][0], 2, written(message_fields[k][2])]
        )
    elif isinstance(field[2], int):
        field[2] = rng.choice(
            (0, 1, 2, 7, 127, 1 << 31, 1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, field[2] + 1)
        )
    elif isinstance(field[2], bytes):
        raw = bytearray(field[2] or b"x")
        set_byte(raw, rng, files)
        field[2] = rng.choice((bytes(raw), b"", field[2] * 2, field[2][:-1])) if field[1] == 2 else bytes(raw)
    return written(root)


def mutated(files: list[bytes], rng: random.Random) -> bytes:
    data = bytearray(rng.choice(files))
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        data = bytearray(change_a_field(bytes(data), rng, files))
    if rng.random() < 0.6:
        return bytes(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        if data:
            rng.choice(CHANGES)(data, rng, files)
    return bytes(data)


# --- judging


def ones(port: Port) -> Tensor:
    """An input: ones of the shape that the file declares, or fewer."""
    sizes = [n if isinstance(n, int) else 2 for n in port.shape or ()]
    shape = sizes if math.prod(sizes) < LARGEST_INPUT else [1] * len(sizes)
    return Tensor.ones(*shape, dtype=port.dtype)


def verdict(data: bytes) -> str:
    """How a file ends: 'refused', 'loaded' or 'ran'. Raises what is not ours."""
    try:
        polygrad.onnx.inspect(data)
        m = polygrad.onnx.load(data)
    except PolygradError as e:
        assert "internal" not in str(e).partition(":")[0], str(e)
        return "refused"
    try:
        inputs = {p.name: ones(p) for p in m.inputs if p.dtype is not None and p.shape is not None}
        m.forward(inputs)
    except PolygradError:
        return "loaded"
    return "ran"


def resident() -> int:
    """Bytes of memory that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """This process cannot take more than some gigabytes: what wants more fails, and not the machine."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def fuzz(count: int, seed: int, measured: bool = False) -> Counter[str]:
    """How many files ended how. Raises AssertionError that holds the file, as hexadecimal digits."""
    with limited():
        return _fuzz(count, seed, measured)


def _fuzz(count: int, seed: int, measured: bool) -> Counter[str]:
    rng, files = random.Random(seed), corpus()
    counts: Counter[str] = Counter()
    for data in files:  # modules and tables that come with the first files are not theirs
        verdict(data)
    for i in range(count):
        before = resident()
        data = mutated(files, rng)
        try:
            if measured:
                tracemalloc.start()
            counts[verdict(data)] += 1
            assert resident() - before < ONE_FILE, f"{resident() - before} bytes more for {len(data)}"
            if measured:
                peak = tracemalloc.get_traced_memory()[1]
                assert peak < BYTES_A_BYTE * len(data) + BYTES_BESIDE, f"{peak} bytes for {len(data)}"
        except BaseException as e:
            raise AssertionError(f"file {i} of seed {seed}: {type(e).__name__}: {e}: {data.hex()}") from e
        finally:
            tracemalloc.stop()
        if count >= 100_000 and i % 10_000 == 0:
            sys.stderr.write(f"{i} {dict(counts)}\n")
    return counts


if __name__ == "__main__":
    sys.stdout.write(f"{dict(fuzz(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))}\n")
