"""`polygrad.onnx.load`: inputs and their errors, constants, functions, control flow, training."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import onnx.defs
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOAT, model, node_model

import polygrad.onnx
from polygrad import Tensor, TinyJit, nn
from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, DTypeError, OnnxError, ShapeError
from polygrad.onnx.folding import fold
from polygrad.onnx.op_table import TABLE, find, is_read
from polygrad.onnx.proto import Node
from polygrad.onnx.reasons import REASONS
from polygrad.onnx.values import Constant

X = helper.make_tensor_value_info("x", FLOAT, ["batch", 3])


def ints(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def linear():
    """y = relu(x @ w + b)."""
    w, b = np.arange(6, dtype=np.float32).reshape(3, 2), np.float32([0.5, -100.0])
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], name="gemm"),
        helper.make_node("Relu", ["h"], ["y"]),
    ]
    return model(nodes, [X], ["y"], [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])


# --- the table of ops


def test_every_op_and_version_of_onnx_is_there_or_has_a_reason():
    missing, explained = [], set()
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.since_version in TABLE.get((schema.domain, schema.name), {}):
            continue
        if (schema.domain, schema.name) in REASONS:
            explained.add((schema.domain, schema.name))
        else:
            missing.append((schema.domain, schema.name, schema.since_version))
    assert missing == []
    assert explained == set(REASONS)


def test_attributes_are_those_of_the_schemas():
    for schema in onnx.defs.get_all_schemas_with_history():
        entry = TABLE.get((schema.domain, schema.name), {}).get(schema.since_version)
        if entry is not None:
            assert set(schema.attributes) <= entry.attributes, f"{schema.name}-{schema.since_version}"


# --- inputs and outputs


def test_what_a_model_says_of_itself():
    m = polygrad.onnx.load(linear())
    assert [str(p) for p in m.inputs] == ["x: float (batch, 3)"]
    assert m.inputs[0].dtype is dtypes.float32 and m.inputs[0].shape == ("batch", 3)
    assert m.outputs[0].name == "y" and m.ops == {"Gemm": 1, "Relu": 1}
    assert {k: v.shape for k, v in m.parameters.items()} == {"w": (3, 2), "b": (2,)}
    assert repr(m) == "<Instance 'graph': 2 nodes>"


@pytest.mark.parametrize("given", [[[1.0, 2.0, 3.0]], np.float32([[1, 2, 3]]), Tensor([[1.0, 2.0, 3.0]])])
def test_inputs_of_any_kind(given):
    m = polygrad.onnx.load(linear())
    assert m(x=given)["y"].tolist() == m({"x": given})["y"].tolist() == [[16.5, 0.0]]


def test_inputs_that_do_not_fit():
    m = polygrad.onnx.load(linear())
    with pytest.raises(ArgumentError, match=r"expected the inputs \['x'\], got \['z'\]"):
        m(z=[1.0])
    with pytest.raises(
        ShapeError, match=r"input 'x' has shape \('batch', 3\) with {'batch': 1}, got \(1, 4\)"
    ):
        m(x=[[1.0, 2.0, 3.0, 4.0]])
    with pytest.raises(DTypeError, match="input 'x' is float32, got float64"):
        m(x=np.zeros((1, 3)))
    both = [helper.make_tensor_value_info(n, FLOAT, ["n"]) for n in "ab"]
    add = polygrad.onnx.load(model([helper.make_node("Add", ["a", "b"], ["y"])], both, ["y"]))
    with pytest.raises(ShapeError, match="'n': 2"):
        add(a=[1.0, 2.0], b=[1.0])


def test_sizes_that_exporters_do_not_know():
    x = helper.make_tensor_value_info("x", FLOAT, [-1, "?", "?"])
    m = polygrad.onnx.load(model([helper.make_node("Relu", ["x"], ["y"])], [x], ["y"]))
    assert m.inputs[0].shape == (None, None, None)
    assert m(x=Tensor.ones(1, 2, 3))["y"].shape == (1, 2, 3)


def test_an_initializer_may_be_given_as_an_input():
    w = helper.make_tensor_value_info("w", FLOAT, [1])
    data = model(
        [helper.make_node("Mul", ["x", "w"], ["y"])],
        ["x", w],
        ["y"],
        [helper.make_tensor("w", FLOAT, [1], [3.0])],
    )
    m = polygrad.onnx.load(data)
    assert [p.name for p in m.inputs] == ["x"]
    assert m(x=[2.0])["y"].tolist() == [6.0] and m(x=[2.0], w=[5.0])["y"].tolist() == [10.0]


def test_an_error_names_the_node_and_its_op():
    data, _ = node_model("MatMul", [np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)])
    with pytest.raises(OnnxError, match=r"node 'the_node' \(MatMul\): dot: expected 3 rows"):
        polygrad.onnx.load(data)(x0=Tensor.zeros(2, 3), x1=Tensor.zeros(2, 3))


# --- constants


TABLE_OF_6 = Constant(dtypes.int64, (2, 3), [1, 2, 3, 4, 5, 6])


def folded(op, *values, outputs=("y",), **attributes):
    node = Node(op, "", "", "", ["a"] * len(values), list(outputs), attributes)
    return fold(node, [Constant.of(v) if isinstance(v, (int, list)) else v for v in values], attributes)


@pytest.mark.parametrize(
    ("op", "values", "want"),
    [
        ("Add", ([1, 2], 3), [4, 5]),
        ("Div", ([-7, 7], [2, -2]), [-3, -3]),
        ("Mod", ([-7, 7], 3), [2, 1]),
        ("Concat", ([1], [2, 3]), [1, 2, 3]),
        ("Gather", ([5, 6, 7], [2, -1]), [7, 7]),
        ("Slice", ([5, 6, 7, 8], [1], [9], [0]), [6, 7, 8]),
        ("Slice", ([5, 6, 7], [-1], [-9], [0], [-1]), [7, 6, 5]),
        ("Slice", (TABLE_OF_6, [-1], [-9], [0], [-1]), [4, 5, 6, 1, 2, 3]),
        ("Slice", (TABLE_OF_6, [0, 1], [1, 9]), [2, 3]),
        ("Transpose", (TABLE_OF_6,), [1, 4, 2, 5, 3, 6]),
        ("Unsqueeze", (4, [0]), [4]),
        ("Squeeze", ([4], [0]), [4]),
        ("Equal", ([1, 2], [1, 3]), [True, False]),
        ("Range", (1, 7, 2), [1, 3, 5]),
        ("Expand", ([1], [3]), [1, 1, 1]),
        ("ReduceProd", ([2, 3, 4],), [24]),
        ("Max", ([1, 5], [3, 3]), [3, 5]),
        ("Reshape", ([1, 2, 3, 4], [2, -1]), [1, 2, 3, 4]),
    ],
)
def test_constants_are_computed_on_the_host(op, values, want):
    attributes = {"axis": 0} if op in ("Concat", "Gather") else {}
    assert folded(op, *values, **attributes).numbers == want


def test_what_is_not_computed_on_the_host():
    assert folded("Relu", [1]) is None
    assert folded("Add", [0] * 600, [0] * 600) is None
    node = Node("Add", "", "", "", ["a", "b"], ["y"], {})
    assert fold(node, [Tensor([1]), Constant.of(1)], {}) is None


def flattening():
    """x reshaped to (its first size, -1), as torch exports `x.flatten(1)` with symbolic shapes."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"], axis=0),
        helper.make_node("Unsqueeze", ["n", "axes"], ["first"]),
        helper.make_node("Concat", ["first", "rest"], ["shape"], axis=0),
        helper.make_node("Reshape", ["x", "shape"], ["y"]),
    ]
    return model(nodes, ["x"], ["y"], [ints("zero", 0), ints("axes", [0]), ints("rest", [-1])])


def test_shapes_are_followed_without_computing_anything(monkeypatch):
    m = polygrad.onnx.load(flattening())
    assert m.parameters == {}
    monkeypatch.setattr(Tensor, "tolist", lambda self: pytest.fail("a tensor was computed"))
    assert m(x=Tensor.zeros(2, 3, 4))["y"].shape == (2, 12)


def test_integer_vectors_that_are_no_tensors_are_known_on_the_host(monkeypatch):
    data, _ = node_model("Reshape", [np.zeros(6, np.float32), np.array([2, 3])])
    m = polygrad.onnx.load(data)
    assert m(x0=Tensor.zeros(6), x1=Tensor([2, 3], dtype="int64"))["y0"].shape == (2, 3)  # computed
    monkeypatch.setattr(Tensor, "tolist", lambda self: pytest.fail("a tensor was computed"))
    for shape in ([2, 3], np.array([2, 3])):
        assert m(x0=Tensor.zeros(6), x1=shape)["y0"].shape == (2, 3)


def test_scales_are_no_parameters_and_known_on_the_host():
    values = [
        numpy_helper.from_array(np.float32([1, 1, 2, 1]), "s"),
        numpy_helper.from_array(np.float32(3), "f"),
    ]
    nodes = [
        helper.make_node("Resize", ["x", "", "s"], ["r"], mode="nearest"),
        helper.make_node("Pad", ["r", "pads", "f"], ["y"]),
    ]
    m = polygrad.onnx.load(
        model(nodes, ["x"], ["y"], [*values, ints("pads", [0] * 7 + [1])]), requires_grad=True
    )
    assert m.parameters == {}
    step = TinyJit(lambda x: m(x=x)["y"])
    for _ in range(3):
        assert step(Tensor([[[[1.0, 2.0]]]])).tolist() == [[[[1, 2, 3], [1, 2, 3]]]]


def test_an_output_that_is_a_constant_is_the_callers_own():
    m = polygrad.onnx.load(model([helper.make_node("Shape", ["x"], ["y"])], ["x"], ["y"]))
    first = m(x=Tensor.zeros(2, 3))["y"]
    first.assign([7, 7]).realize()
    assert m(x=Tensor.zeros(2, 3))["y"].tolist() == [2, 3]


def test_a_sparse_initializer():
    values = numpy_helper.from_array(np.float32([5, 7]), "w")
    sparse = helper.make_sparse_tensor(values, ints("", [[0, 1], [1, 0]]), [2, 2])
    data = model([helper.make_node("Add", ["x", "w"], ["y"])], ["x"], ["y"], sparse_initializer=[sparse])
    assert polygrad.onnx.load(data)(x=Tensor.zeros(2, 2))["y"].tolist() == [[0, 5], [7, 0]]


# --- functions and control flow


def test_functions_are_inlined_with_attributes_and_defaults():
    body = helper.make_node("LeakyRelu", ["x"], ["y"])
    body.attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    )
    f = helper.make_function(
        "mine", "Leaky", ["x"], ["y"], [body], [helper.make_opsetid("", 16)],
        attribute_protos=[helper.make_attribute("slope", 0.5)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Leaky", ["x"], ["a"], domain="mine"),
        helper.make_node("Leaky", ["a"], ["y"], domain="mine", slope=0.25),
    ]
    m = polygrad.onnx.load(model(nodes, ["x"], ["y"], functions=[f], more=[helper.make_opsetid("mine", 1)]))
    assert m(x=[-8.0, 8.0])["y"].tolist() == [-1.0, 8.0]


def counting():
    """Loop: s = s + x until s > limit; also every s."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["s", "x"], ["t"]),
            helper.make_node("ReduceMax", ["t"], ["m"], keepdims=0),
            helper.make_node("Less", ["m", "limit"], ["go"]),
            helper.make_node("Identity", ["t"], ["each"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", FLOAT, None),
        ],
        [onnx.ValueInfoProto(name=n) for n in ("go", "t", "each")],
    )
    loop = helper.make_node("Loop", ["", "true", "x"], ["last", "all"], body=body)
    true = numpy_helper.from_array(np.array(True), "true")
    return model([loop], ["x", "limit"], ["last", "all"], [true])


def test_a_loop_whose_end_depends_on_data():
    m = polygrad.onnx.load(counting())
    out = m(x=[1.0, 2.0], limit=Tensor(5.0))
    assert out["last"].tolist() == [3.0, 6.0] and out["all"].tolist() == [[2.0, 4.0], [3.0, 6.0]]
    assert m(x=[1.0, 2.0], limit=Tensor(11.0))["all"].shape == (5, 2)


def test_branches_see_the_values_around_them():
    def branch(op):
        return helper.make_graph(
            [helper.make_node(op, ["x"], ["r"])], op, [], [onnx.ValueInfoProto(name="r")]
        )

    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("Neg"), else_branch=branch("Abs"))
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    m = polygrad.onnx.load(model([node], ["x", c], ["y"]))
    assert m(x=[-1.0, 2.0], c=True)["y"].tolist() == [1.0, -2.0]
    assert m(x=[-1.0, 2.0], c=False)["y"].tolist() == [1.0, 2.0]


# --- training, captures, devices


def test_initializers_are_trained():
    m = polygrad.onnx.load(linear(), requires_grad=True)
    assert nn.state.get_parameters(m) == list(m.parameters.values())
    assert set(nn.state.get_state_dict(m)) == {"parameters.w", "parameters.b"}
    optimizer = nn.optim.SGD(nn.state.get_parameters(m), lr=0.01)
    losses = []
    with Tensor.train():
        for _ in range(20):
            optimizer.zero_grad()
            loss = (m(x=[[1.0, 2.0, 3.0]])["y"][:, 0] - 1.0).square().sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert losses[-1] < 0.01 * losses[0]
    assert m.parameters["w"].grad.shape == (3, 2)


def test_weights_that_are_replaced_are_used():
    m = polygrad.onnx.load(linear())
    state = nn.state.get_state_dict(m)
    nn.state.load_state_dict(m, {**state, "parameters.b": Tensor([0.0, 0.0])})
    assert m(x=[[1.0, 2.0, 3.0]])["y"].tolist() == [[16.0, 22.0]]


def test_a_call_is_captured():
    m = polygrad.onnx.load(linear())
    step = TinyJit(lambda x: m(x=x)["y"].realize())
    for k in range(4):
        assert step(Tensor([[1.0, 2.0, float(k)]]).realize()).tolist() == [[4.5 + 4.0 * k, 0.0]]


@pytest.mark.parametrize("name", ["INTERP", "WASM"])
def test_a_model_on_a_device(name):
    m = polygrad.onnx.load(linear(), device=name)
    assert {t.device for t in m.parameters.values()} == {name}
    out = m(x=[[1.0, 2.0, 3.0]])["y"]
    assert out.device == name and out.tolist() == [[16.5, 0.0]]
    shapes = polygrad.onnx.load(flattening(), device=name)
    assert shapes(x=Tensor.ones(2, 3, 4, device=name))["y"].shape == (2, 12)


def test_a_loaded_model_does_not_need_its_file(tmp_path):
    path = tmp_path / "m.onnx"
    path.write_bytes(linear())
    m = polygrad.onnx.load(path)
    path.write_bytes(b"")
    assert m(x=[[1.0, 2.0, 3.0]])["y"].tolist() == [[16.5, 0.0]] and m.ops and repr(m)
    with pytest.raises(OnnxError, match="no graph"):
        polygrad.onnx.load(path)


@pytest.mark.parametrize(
    ("domain", "name", "position", "read"),
    [
        ("", "Reshape", 1, True),
        ("", "Pad", 2, True),
        ("", "DequantizeLinear", 2, True),
        ("", "QLinearConv", 7, True),
        ("com.microsoft", "QGemm", 5, True),
        ("", "DequantizeLinear", 1, False),
        ("", "Gather", 1, False),
        ("", "Add", 0, False),
        ("", "Concat", 5, False),
        ("", "Relu", 1, False),
    ],
)
def test_an_op_declares_whose_numbers_it_looks_at(domain, name, position, read):
    entry = find(domain, name, 13 if not domain else 1)
    assert is_read(entry, position) == read


# --- versions that only old files have


ADDED = [[2, 2, 2], [3, 3, 3]]


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "attributes", "want"),
    [
        ("Add", 6, [np.ones((2, 3), np.float32), np.float32([1, 2])], {"broadcast": 1, "axis": 0}, ADDED),
        ("Softmax", 11, [np.zeros((1, 2, 2), np.float32)], {"axis": 1}, [[[0.25] * 2] * 2]),
        ("Squeeze", 11, [np.zeros((1, 2), np.float32)], {"axes": [0]}, [0, 0]),
        ("Clip", 6, [np.float32([-5, 5])], {"min": -1.0, "max": 1.0}, [-1, 1]),
        ("Pad", 2, [np.float32([1])], {"pads": [1, 0], "value": 9.0}, [9, 1]),
        ("Slice", 9, [np.float32([1, 2, 3])], {"starts": [1], "ends": [3]}, [2, 3]),
        ("Upsample", 7, [np.float32([[[[1, 2]]]])], {"scales": [1.0, 1.0, 1.0, 2.0]}, [[[[1, 1, 2, 2]]]]),
        ("Cast", 1, [np.float32([1.7])], {"to": "INT32"}, [1]),
        ("TopK", 9, [np.float32([1, 3, 2])], {"k": 1}, [3]),
        ("ReduceSum", 11, [np.ones((2, 3), np.float32)], {"axes": [1], "keepdims": 0}, [3, 3]),
        ("Dropout", 6, [np.float32([1, 2])], {"is_test": 1}, [1, 2]),
    ],
)  # fmt: skip
def test_older_versions(op, opset, inputs, attributes, want):
    outputs = 2 if op == "TopK" else 1
    data, names = node_model(op, inputs, outputs, attributes, opset=opset)
    out = polygrad.onnx.load(data)({n: Tensor(x) for n, x in zip(names, inputs)})
    assert out["y0"].tolist() == want


def test_polygrad_is_imported_without_it_and_it_takes_the_standard_library_alone():
    code = (
        "import sys; before = set(sys.modules)\n"
        "import polygrad; print('polygrad.onnx' in sys.modules)\n"
        "import polygrad.onnx\n"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before}\n"
        "print(sorted(new - sys.stdlib_module_names - {'polygrad'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "[]"]
