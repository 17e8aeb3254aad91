"""The reader against the package `onnx`, and on damaged and hostile files."""

from __future__ import annotations

import os
import random
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_suite as suite
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOAT, model

import polygrad.onnx
from polygrad.errors import OnnxError, PolygradError
from polygrad.nn.wire import Span
from polygrad.onnx.elements import ELEMENTS
from polygrad.onnx.proto import Graph, SparseData, TensorData, read_model
from polygrad.onnx.tensors import Files, elements_of

RELU = helper.make_node("Relu", ["x"], ["y"], name="the_relu")


# --- against onnx


def check_tensor(ours: TensorData, theirs: Any) -> None:
    assert (ours.name, ours.element, ours.shape) == (theirs.name, theirs.data_type, tuple(theirs.dims))
    if ours.element in ELEMENTS:
        element, raw = elements_of(ours, Files(None))
        want = numpy_helper.to_array(theirs)
        want = want.astype(np.dtype(str(element.dtype)) if not element.is_native else want.dtype)
        np.testing.assert_array_equal(
            np.frombuffer(bytes(raw), np.uint8), np.frombuffer(want.tobytes(), np.uint8)
        )


def check_attribute(ours: Any, theirs: Any) -> None:
    if theirs.ref_attr_name:
        assert ours.name == theirs.ref_attr_name
        return
    want = helper.get_attribute_value(theirs)
    values = list(want) if hasattr(want, "__len__") and not isinstance(want, (bytes, str)) else [want]
    found = ours if isinstance(ours, list) else [ours]
    assert len(found) == len(values)
    for got, w in zip(found, values):
        if isinstance(got, TensorData):
            check_tensor(got, w)
        elif isinstance(got, Graph):
            check_graph(got, w)
        elif isinstance(got, SparseData):
            assert got.shape == tuple(w.dims)
        elif not isinstance(w, onnx.TypeProto):
            assert got == (w.decode() if isinstance(w, bytes) else w)


def check_type(ours: Any, theirs: Any) -> None:
    kind = theirs.WhichOneof("value")
    assert (ours is None) == (kind is None)
    if kind == "tensor_type":
        t = theirs.tensor_type
        sizes = [d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in t.shape.dim]
        assert ours.shape == (tuple(sizes) if t.HasField("shape") else None)
        assert (ours.kind, ours.element) == ("tensor", t.elem_type)
    elif kind in ("sequence_type", "optional_type"):
        assert (ours.kind, ours.element) == (kind.removesuffix("_type"), 0)
        check_type(ours.inner, getattr(theirs, kind).elem_type)


def check_nodes(ours: Any, theirs: Any) -> None:
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert (a.op, a.name, a.inputs, a.outputs) == (b.op_type, b.name, list(b.input), list(b.output))
        assert a.domain == ("" if b.domain == "ai.onnx" else b.domain)
        assert list(a.attributes) == [x.name for x in b.attribute]
        for x in b.attribute:
            check_attribute(a.attributes[x.name], x)


def check_graph(ours: Graph, theirs: Any) -> None:
    check_nodes(ours.nodes, theirs.node)
    for a, b in zip(ours.initializers, theirs.initializer):
        check_tensor(a, b)  # type: ignore[arg-type]
    for mine, others in ((ours.inputs, theirs.input), (ours.outputs, theirs.output)):
        assert [x.name for x in mine] == [x.name for x in others]
        for x, y in zip(mine, others):
            check_type(x.type, y.type)


def check_file(data: bytes, theirs: Any) -> None:
    ours = read_model(memoryview(data))
    assert ours.ir_version == theirs.ir_version and ours.producer == theirs.producer_name
    assert ours.opsets == {
        ("" if o.domain == "ai.onnx" else o.domain): o.version for o in theirs.opset_import
    }
    check_graph(ours.graph, theirs.graph)
    assert len(ours.functions) == len(theirs.functions)
    for f, g in zip(ours.functions.values(), theirs.functions):
        assert (f.name, f.domain, f.inputs, f.outputs) == (g.name, g.domain, list(g.input), list(g.output))
        check_nodes(f.nodes, g.node)


@pytest.mark.parametrize("kind", suite.KINDS)
def test_models_of_the_suite_are_read_as_onnx_reads_them(kind):
    for case in suite.cases(kind)[:: 4 if kind == "node" else 1]:
        check_file(case.model.SerializeToString(), case.model)


@pytest.mark.parametrize("number", [n for n in ELEMENTS if n not in (27, 28)])
@pytest.mark.parametrize("raw", [True, False])
def test_elements_of_every_type(number, raw):
    element = ELEMENTS[number]
    values = [0, 1, 1, 0, 1] if element.limits[1] < 3 or element.dtype.is_bool else [0, 1, 2, 3, 1]
    if element.name == "float8e8m0":
        values = [1, 2, 4, 0.5, 1]
    dtype = helper.tensor_dtype_to_np_dtype(number)
    array = np.array(values).astype(dtype)
    tensor = numpy_helper.from_array(array, "t") if raw else helper.make_tensor("t", number, [5], array)
    ours = read_model(memoryview(model([RELU], ["x"], ["y"], [tensor]))).graph.initializers[0]
    found, data = elements_of(ours, Files(None))
    assert found is element
    if element.is_native:
        assert bytes(data) == array.tobytes()
    else:
        assert np.frombuffer(bytes(data), str(element.dtype)).tolist() == values


def test_a_float_tensor_in_fields_that_are_not_packed():
    one = bytes.fromhex("25") + np.float32(1.5).tobytes()  # field 4, 4 bytes
    tensor = bytes([0x08, 2, 0x10, 1]) + one + one
    read = read_model(
        memoryview(b"\x3a" + bytes([len(tensor) + 2]) + b"\x2a" + bytes([len(tensor)]) + tensor)
    )
    _, data = elements_of(read.graph.initializers[0], Files(None))  # type: ignore[arg-type]
    assert np.frombuffer(bytes(data), np.float32).tolist() == [1.5, 1.5]


# --- damaged and hostile files


def broken(data: bytes, match: str) -> None:
    with pytest.raises(OnnxError, match=match):
        polygrad.onnx.load(data)


def test_files_that_are_no_model():
    broken(b"", "no graph")
    broken(b"hello world", "ONNX file")
    broken(b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "number of more than 10 bytes|has .* bytes")
    broken(b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", r"field 7 has 9223372036854775807 bytes")
    broken(b"\x3a\x02\x0a\x05", "field 1 has 5 bytes")
    broken(b"\x3b\x00", "tag 59")
    broken(b"\x3a\x80", "does not end")


def test_names_that_do_not_fit():
    broken(model([helper.make_node("Relu", ["z"], ["y"], name="n1")], ["x"], ["y"]), "node 'n1' .*input 'z'")
    two = [RELU, helper.make_node("Abs", ["x"], ["y"], name="n2")]
    broken(model(two, ["x"], ["y"]), r"node 'n2' \(Abs\): output 'y' is there already")
    cycle = [helper.make_node("Relu", ["b"], ["a"], name="n1"), helper.make_node("Relu", ["a"], ["b"])]
    broken(model(cycle, ["x"], ["b"]), "node 'n1' .*cycle")
    broken(model([RELU], ["x"], ["other"]), "nothing computes its output 'other'")
    broken(model([RELU], ["x", "x"], ["y"]), "two inputs")
    ones = [helper.make_tensor("w", FLOAT, [1], [1.0])] * 2
    broken(model([RELU], ["x"], ["y"], ones), "two initializers")


def test_missing_ops_are_named_all_at_once():
    nodes = [
        helper.make_node("ImageDecoder", ["x"], ["a"], name="decode"),
        helper.make_node("NoSuchOp", ["a"], ["b"], name="n1", domain="com.microsoft"),
        helper.make_node("NoSuchOp", ["b"], ["y"], name="n2", domain="com.microsoft"),
    ]
    with pytest.raises(OnnxError) as e:
        polygrad.onnx.load(model(nodes, ["x"], ["y"]))
    text = str(e.value)
    assert "ai.onnx.ImageDecoder of version 21: node 'decode'" in text and "image formats" in text
    assert "com.microsoft.NoSuchOp of version 1: node 'n1' (com.microsoft.NoSuchOp) and 1 more" in text


def test_attributes_that_do_not_fit():
    broken(model([helper.make_node("Relu", ["x"], ["y"], name="n", foo=1)], ["x"], ["y"]), "node 'n'.*'foo'")
    broken(model([helper.make_node("Concat", ["x"], ["y"], name="n")], ["x"], ["y"]), "node 'n'.*'axis'")
    broken(model([helper.make_node("Relu", ["x"], ["y"], domain="q")], ["x"], ["y"]), "import the domain q")


@pytest.mark.parametrize("shape", [[3], [1 << 40, 1 << 40], [0]])
def test_tensors_whose_bytes_do_not_fit_their_shape(shape):
    tensor = TensorProto(name="w", data_type=1, dims=shape, raw_data=b"\0" * 8)
    broken(model([RELU], ["x"], ["y"], [tensor]), "tensor 'w': .* bytes expected for shape")


def field_of(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


@pytest.mark.parametrize("depth", [40, 3000])
def test_graphs_in_graphs_without_end(depth):
    graph = b""
    for _ in range(depth):
        branch = field_of(1, b"then_branch") + field_of(6, graph) + b"\xa0\x01\x05"
        graph = field_of(1, field_of(3, b"deep") + field_of(4, b"If") + field_of(5, branch))
    broken(field_of(7, graph), "node 'deep'.*more than 32 deep")


def test_types_in_types_without_end():
    kind = b""
    for _ in range(40):
        kind = field_of(4, field_of(1, kind))
    broken(field_of(7, field_of(11, field_of(1, b"x") + field_of(2, kind))), "types more than 32 deep")


def function(name: str, calls: list[str]) -> Any:
    nodes = [
        helper.make_node(c, ["x"], ["y" if i == 0 else f"y{i}"], domain="f") for i, c in enumerate(calls)
    ]
    return helper.make_function("f", name, ["x"], ["y"], nodes, [helper.make_opsetid("f", 1)])


def calling(functions: list[Any]) -> bytes:
    node = helper.make_node("F0", ["x"], ["y"], domain="f", name="call")
    return model([node], ["x"], ["y"], functions=functions, more=[helper.make_opsetid("f", 1)])


def test_functions_that_call_themselves_or_grow_without_end():
    broken(calling([function("F0", ["F1"]), function("F1", ["F0"])]), "calls itself")
    broken(calling([function("F0", ["F0"])]), "calls itself")
    relu = helper.make_node("Relu", ["x"], ["y"])
    last = helper.make_function("f", "F10", ["x"], ["y"], [relu], [helper.make_opsetid("", 21)])
    bombs = [function(f"F{i}", [f"F{i + 1}"] * 10) for i in range(10)]
    broken(calling([*bombs, last]), "more than 1000000 nodes")


def test_memory_is_bounded_by_the_size_of_the_file():
    node = RELU.SerializeToString()
    data = field_of(7, field_of(1, node) * 10_000)
    tracemalloc.start()
    with pytest.raises(OnnxError):
        polygrad.onnx.load(data)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60 * len(data)


def _varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


# --- external data


def external(location: str, **more: str) -> bytes:
    tensor = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=value)
    add = helper.make_node("Add", ["x", "w"], ["y"], name="n")
    return model([add], [helper.make_tensor_value_info("x", FLOAT, [2])], ["y"], [tensor])


def test_external_data_beside_the_model(tmp_path):
    (tmp_path / "data.bin").write_bytes(b"skip" + np.float32([1, 2]).tobytes())
    path = tmp_path / "model.onnx"
    path.write_bytes(external("data.bin", offset="4", length="8"))
    assert polygrad.onnx.load(path)(x=[0.0, 0.0])["y"].tolist() == [1, 2]
    same = polygrad.onnx.load(path.read_bytes(), folder=tmp_path)
    assert same(x=[0.0, 1.0])["y"].tolist() == [1, 3]
    with pytest.raises(OnnxError, match=r"tensor 'w': .*load the model by its path"):
        polygrad.onnx.load(path.read_bytes())


def test_external_data_is_given_by_name():
    data = external("data.bin", offset="4", length="8")
    found = polygrad.onnx.load(data, files={"data.bin": np.arange(3, dtype=np.float32).tobytes()})
    assert found(x=[0.0, 0.0])["y"].tolist() == [1.0, 2.0]
    with pytest.raises(OnnxError, match="folder= or files="):
        polygrad.onnx.load(data, files={"other.bin": b""})


@pytest.mark.parametrize(
    "place", ["../secret", "{root}/secret", "link", "hard", "sub/../../secret", "", ".", "sub"]
)
def test_external_data_elsewhere_is_not_read(tmp_path, place):
    folder = tmp_path / "model"
    (folder / "sub").mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_bytes(b"\0" * 8)
    os.symlink(secret, folder / "link")
    os.link(secret, folder / "hard")
    path = folder / "model.onnx"
    path.write_bytes(external(place.format(root=tmp_path)))
    with pytest.raises(OnnxError, match="tensor 'w': "):
        polygrad.onnx.load(path)


@pytest.mark.parametrize(
    "entries", [{"offset": "-4"}, {"offset": "x"}, {"length": "999"}, {"offset": "9" * 30}]
)
def test_places_outside_of_the_file(tmp_path, entries):
    (tmp_path / "data.bin").write_bytes(b"\0" * 8)
    (tmp_path / "model.onnx").write_bytes(external("data.bin", **entries))
    with pytest.raises(OnnxError, match="tensor 'w': external data"):
        polygrad.onnx.load(tmp_path / "model.onnx")


# --- mutated files


def mutated(data: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(out))
        way = max(rng.randrange(-6, 4), 0)  # mostly a byte in place, which leaves lengths as they are
        if way == 0:
            out[at] = rng.randrange(256)
        elif way == 1:
            del out[at : at + rng.randint(1, 8)]
        elif way == 2:
            out[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 8)))
        else:
            out[at:at] = out[at : at + rng.randint(1, 32)]
        if not out:
            return b""
    return bytes(out)


def fuzz(count: int, seed: int) -> None:
    rng = random.Random(seed)
    files = [c.model.SerializeToString() for k in suite.KINDS for c in suite.cases(k)]
    files = [f for f in files if len(f) < 2000]
    loaded = 0
    for _ in range(count):
        data = mutated(rng.choice(files), rng)
        try:
            polygrad.onnx.load(data)
            loaded += 1
        except PolygradError as e:
            assert not str(e).startswith("internal")
    assert 0 < loaded < count


def test_mutated_files_raise_nothing_but_our_errors():
    fuzz(2_000, seed=0)


@pytest.mark.slow
def test_many_mutated_files_raise_nothing_but_our_errors():
    fuzz(50_000, seed=1)


def test_a_span_is_never_read_beyond_its_end():
    data = memoryview(bytes([0x0A, 3, 0x0A, 2, 0x41]))
    inner = next(v for _, _, v in Span(data, 0, 5).fields())
    assert isinstance(inner, Span)
    with pytest.raises(OnnxError, match="field 1 has 2 bytes, its message has 1 left"):
        list(inner.fields())


def test_a_file_that_does_not_exist():
    with pytest.raises(PolygradError, match="expected a file"):
        polygrad.onnx.load(Path("/nowhere/model.onnx"))
