"""Models that are well-formed files and say nonsense: attributes, inputs, versions, shapes at their limits.

Whatever a model says, `load` and `forward` raise our errors alone, which name the node.
"""

from __future__ import annotations

import random

import numpy as np
import onnx
import onnx_suite as suite
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOAT, model, node_model

import polygrad.onnx
from polygrad import Tensor
from polygrad.errors import OnnxError, PolygradError
from polygrad.onnx.ops import control_flow_ops

INTEGERS = [-(1 << 63), (1 << 63) - 1, -1, 0, 1, 2, 3, -2, 7, 1 << 31, 1 << 40, 100, -100, 1_000_000]
FLOATS = [0.0, -1.0, float("nan"), float("inf"), 1e30, -1e30, 0.5, 1e-30]
TEXTS = [b"", b"foo", b"linear", b"SAME_UPPER", b"valid", b"sum"]
MOST_COMPUTED = 1_000_000  # elements of an output


def change_attribute(attribute, rng):
    if attribute.type == onnx.AttributeProto.INT:
        attribute.i = rng.choice(INTEGERS)
    elif attribute.type == onnx.AttributeProto.FLOAT:
        attribute.f = rng.choice(FLOATS)
    elif attribute.type == onnx.AttributeProto.STRING:
        attribute.s = rng.choice(TEXTS)
    elif attribute.type == onnx.AttributeProto.FLOATS and attribute.floats:
        attribute.floats[rng.randrange(len(attribute.floats))] = rng.choice(FLOATS)
    elif attribute.type == onnx.AttributeProto.INTS:
        if attribute.ints and rng.random() < 0.7:
            attribute.ints[rng.randrange(len(attribute.ints))] = rng.choice(INTEGERS)
        elif attribute.ints and rng.random() < 0.5:
            attribute.ints.pop()
        else:
            attribute.ints.append(rng.choice(INTEGERS))


def change(proto, ops, rng):
    """One thing that a model says becomes another."""
    names = ["", *(i.name for i in proto.graph.input)]
    way = rng.randrange(8)
    if way == 0 or not proto.graph.node:
        proto.opset_import[0].version = rng.randint(1, 28)
        return
    node = rng.choice(proto.graph.node)
    if way <= 3 and node.attribute:
        change_attribute(rng.choice(node.attribute), rng)
    elif way == 4 and node.attribute:
        node.attribute.remove(rng.choice(node.attribute))
    elif way == 5:
        node.op_type = rng.choice(ops)
    elif way == 6 and node.input:
        node.input[rng.randrange(len(node.input))] = rng.choice(names)
    elif node.input and rng.random() < 0.5:
        node.input.pop()
    else:
        node.input.append(rng.choice(names))


def change_input(x, rng):
    """Integers become others at times."""
    if isinstance(x, np.ndarray) and x.dtype.name in ("int32", "int64", "uint8", "int8") and x.size:
        if rng.random() < 0.4:
            limits, x = np.iinfo(x.dtype), x.copy()
            x.flat[rng.randrange(x.size)] = min(max(rng.choice(INTEGERS), limits.min), limits.max)
    return x


def fuzz(count, seed):
    """Returns how many models were computed all the same."""
    rng = random.Random(seed)
    cases = [c for k in suite.KINDS for c in suite.cases(k) if c.model.ByteSize() < 4000]
    ops = sorted({n.op_type for c in cases for n in c.model.graph.node})
    computed = 0
    for _ in range(count):
        case = rng.choice(cases)
        proto = onnx.ModelProto()
        proto.CopyFrom(case.model)
        for _ in range(rng.randint(1, 3)):
            change(proto, ops, rng)
        for port in proto.graph.input:
            if port.type.HasField("tensor_type") and rng.random() < 0.5:
                port.type.tensor_type.ClearField("shape")
        xs = [suite.to_ours(change_input(x, rng)) for x in case.data()[0][0]]
        try:
            found = polygrad.onnx.load(proto.SerializeToString())
            out = found.forward(dict(zip([i.name for i in proto.graph.input], xs)))
            for y in out.values():
                if isinstance(y, Tensor) and y.numel() < MOST_COMPUTED:
                    y.realize()
            computed += 1
        except PolygradError as e:
            assert not str(e).startswith("internal") and "internal: " not in str(e)
    return computed


@pytest.fixture
def short_loops(monkeypatch):
    monkeypatch.setattr(control_flow_ops, "MAX_ROUNDS", 1_000)


@pytest.mark.usefixtures("short_loops")
def test_a_loop_that_does_not_end_is_an_error_of_its_node():
    """Its body says to go on, and it may do 2^40 rounds."""
    ports = [helper.make_tensor_value_info(name, kind, ()) for name, kind in (("i", 7), ("go", 9))]
    out = helper.make_tensor_value_info("again", TensorProto.BOOL, ())
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["again"])], "body", ports, [out])
    trips = numpy_helper.from_array(np.int64(1 << 40), "trips")
    count = helper.make_node("Loop", ["trips", ""], [], body=body, name="endless")
    with pytest.raises(OnnxError, match=r"endless.*expected at most 1000 rounds, got more"):
        polygrad.onnx.load(model([count], [], [], [trips])).forward({})


@pytest.mark.usefixtures("short_loops")
def test_models_that_say_nonsense_raise_nothing_but_our_errors():
    assert 0 < fuzz(1_000, seed=0) < 1_000


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("short_loops")
def test_many_models_that_say_nonsense_raise_nothing_but_our_errors():
    assert 0 < fuzz(4_000, seed=1) < 4_000


# --- what the fuzzer found


@pytest.mark.parametrize(
    ("op", "inputs", "attributes", "match"),
    [
        ("Split", [np.ones(6, np.float32)], {"num_outputs": 1 << 31}, "num_outputs is 2147483648"),
        ("Split", [np.ones(6, np.float32)], {"axis": 5}, "axis: expected -1 to 0"),
        ("Ceil", [None], {}, "a required input is left out"),
        ("Add", [np.ones(3, np.float32)], {}, "expected 2 inputs, got 1"),
        ("Resize", [np.ones((1, 1), np.float32), None, None, np.int64([1, 1 << 40])], {}, "1099511627776"),
        ("GatherND", [np.float32(1), np.zeros((2, 1), np.int64)], {}, "cannot be computed from float of sh"),
    ],
)
def test_the_error_names_the_node_and_what_is_wrong(op, inputs, attributes, match):
    data, names = node_model(op, inputs, attributes=attributes)
    with pytest.raises(OnnxError, match=f"node 'the_node' \\({op}\\): .*{match}"):
        polygrad.onnx.load(data).forward({n: x for n, x in zip(names, inputs) if n})


def test_an_attribute_of_another_type_than_the_op_takes():
    x = helper.make_tensor_value_info("shape", TensorProto.INT64, [1])
    node = helper.make_node("ConstantOfShape", ["shape"], ["y"], name="fill", value=3)
    with pytest.raises(OnnxError, match=r"node 'fill' .*expected .*, got an attribute of type int"):
        polygrad.onnx.load(model([node], [x], ["y"]))(shape=Tensor([2], dtype="int64"))


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("HammingWindow", [np.int32((1 << 31) - 1)]),
        (
            "MelWeightMatrix",
            [np.int64(1 << 40), np.int64(8), np.int64(8192), np.float32(0), np.float32(4000)],
        ),
        (
            "MelWeightMatrix",
            [np.int64(8), np.int64(1 << 40), np.int64(8192), np.float32(0), np.float32(4000)],
        ),
    ],
)
def test_more_numbers_than_the_host_makes(op, inputs):
    data, names = node_model(op, inputs, opset=17)
    with pytest.raises(OnnxError, match=rf"node 'the_node' \({op}\): .* expected up to 4194304 numbers"):
        polygrad.onnx.load(data).forward(dict(zip(names, map(Tensor, inputs))))


def test_more_targets_of_trees_than_memory():
    numbers = {"leaf_weights": np.float32([1]), "nodes_splits": np.float32([0]), "nodes_modes": np.uint8([0])}
    attributes = {name: numpy_helper.from_array(x, "") for name, x in numbers.items()}
    for name in (
        "leaf_targetids",
        "nodes_falsenodeids",
        "nodes_featureids",
        "nodes_truenodeids",
        "tree_roots",
    ):
        attributes[name] = [0]
    attributes |= {"nodes_falseleafs": [1], "nodes_trueleafs": [1], "n_targets": 1 << 40}
    node = helper.make_node("TreeEnsemble", ["x"], ["y"], name="trees", domain="ai.onnx.ml", **attributes)
    x = helper.make_tensor_value_info("x", FLOAT, [2, 1])
    data = model([node], [x], ["y"], more=[helper.make_opsetid("ai.onnx.ml", 5)])
    with pytest.raises(OnnxError, match=r"node 'trees' .*n_targets: expected 1 to 65536, got 1099511627776"):
        polygrad.onnx.load(data)(x=[[1.0], [2.0]])


NGRAMS = {"mode": "TF", "ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2], "pool_int64s": [1, 2, 3, 4]}


def tf_idf(**more):
    attributes = {"max_gram_length": 2, "min_gram_length": 1, "max_skip_count": 0, **NGRAMS, **more}
    data, _ = node_model("TfIdfVectorizer", [np.int64([1, 3, 4])], attributes=attributes)
    return polygrad.onnx.load(data)(x0=[1, 3, 4])["y0"].tolist()


def test_lengths_of_grams_without_end():
    assert tf_idf() == tf_idf(max_gram_length=1 << 60, min_gram_length=-(1 << 60)) == [1, 0, 1]
    assert tf_idf(max_skip_count=1 << 60) == [1, 0, 1]
    with pytest.raises(OnnxError, match="ngram_counts that ascend"):
        tf_idf(ngram_counts=[0, -(1 << 60)])
    with pytest.raises(OnnxError, match="ngram_indexes from 0"):
        tf_idf(ngram_indexes=[0, 1, 1 << 60])


def test_a_window_of_more_channels_than_there_are():
    x = np.float32([[[1.0], [2.0]]])
    data, _ = node_model("LRN", [x], attributes={"size": 1 << 40, "alpha": float(1 << 40), "beta": 1.0})
    np.testing.assert_allclose(polygrad.onnx.load(data)(x0=x)["y0"].numpy(), x / 6)


def test_the_gradient_of_a_value_that_does_not_exist():
    node = helper.make_node(
        "Gradient", ["x"], ["g"], name="grad", domain="ai.onnx.preview.training", xs=["x"], y="nothing"
    )
    more = [helper.make_opsetid("ai.onnx.preview.training", 1)]
    with pytest.raises(OnnxError, match=r"node 'grad' .*no value is called 'nothing'"):
        polygrad.onnx.load(model([node], ["x"], ["g"], more=more))(x=[1.0])


def test_a_small_file_that_many_tensors_share(tmp_path):
    (tmp_path / "data.bin").write_bytes(np.ones(2, np.float32).tobytes())
    tensors = []
    for i in range(40):
        tensor = TensorProto(name=f"w{i}", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
        tensor.external_data.add(key="location", value="data.bin")
        tensors.append(tensor)
    for count in (16, 40):
        total = helper.make_node("Sum", [f"w{i}" for i in range(count)], ["y"])
        (tmp_path / "m.onnx").write_bytes(model([total], [], ["y"], tensors[:count]))
        if count == 16:
            assert polygrad.onnx.load(tmp_path / "m.onnx")()["y"].tolist() == [16.0, 16.0]
        else:
            with pytest.raises(OnnxError, match=r"tensor 'w16': .*more than 16 times"):
                polygrad.onnx.load(tmp_path / "m.onnx")


def test_a_constant_of_more_elements_than_memory_is_an_error_when_it_is_computed():
    shape = numpy_helper.from_array(np.int64([1 << 40, 1 << 20]), "shape")
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["ones"]),
        helper.make_node("Add", ["ones", "x"], ["y"]),
    ]
    y = polygrad.onnx.load(model(nodes, [helper.make_tensor_value_info("x", FLOAT, [])], ["y"], [shape]))
    with pytest.raises(PolygradError):
        y(x=1.0)["y"].realize()
