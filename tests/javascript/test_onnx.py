"""`load` of ONNX models in JavaScript, on every host: outputs, inputs of every kind, training, errors."""

from __future__ import annotations

import base64
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from javascript_compare import is_error
from javascript_hosts import FEWER_API_HOSTS, ROOT, built, run_cases
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOAT, model

from polygrad import nn

pytestmark = [pytest.mark.e2e, built]
DATA = ROOT / "examples" / "data"


def models() -> dict[str, str]:
    """Models of a node or two, in base64."""
    node, info = helper.make_node, helper.make_tensor_value_info
    text = info("x", TensorProto.STRING, ["n"])
    sequence = helper.make_tensor_sequence_value_info("y", FLOAT, None)
    tensor = helper.make_tensor_type_proto(FLOAT, None)
    optional = helper.make_value_info("x", helper.make_optional_type_proto(tensor))
    y = helper.make_value_info("y", helper.make_optional_type_proto(tensor))
    integers = [info("n", TensorProto.INT64, []), info("flag", TensorProto.BOOL, ["k"])]
    ports = [info("m", TensorProto.INT64, []), info("not", TensorProto.BOOL, None)]
    made = {
        "text": model(
            [node("StringConcat", ["x", "x"], ["y"])], [text], [info("y", TensorProto.STRING, ["n"])]
        ),
        "sequence": model([node("SplitToSequence", ["x"], ["y"], axis=0)], ["x"], [sequence]),
        "optional": model([node("Identity", ["x"], ["y"])], [optional], [y]),
        "integers": model([node("Add", ["n", "n"], ["m"]), node("Not", ["flag"], ["not"])], integers, ports),
        "external": model([node("Add", ["x", "w"], ["y"])], ["x"], ["y"], [external("weights.bin")]),
        "outside": model([node("Add", ["x", "w"], ["y"])], ["x"], ["y"], [external("../weights.bin")]),
        "missing": model([node("NoSuchOp", ["x"], ["y"], name="odd", domain="com.microsoft")], ["x"], ["y"]),
        "node": model([node("Reshape", ["x", "s"], ["y"], name="folds")], ["x"], ["y"], [five()]),
    }
    return {name: base64.b64encode(raw).decode() for name, raw in made.items()}


def external(location: str) -> TensorProto:
    tensor = TensorProto(name="w", data_type=FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def five() -> TensorProto:
    return numpy_helper.from_array(np.array([5], np.int64), "s")


@pytest.fixture(scope="session")
def models_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("onnx") / "models.json"
    file.write_text(json.dumps(models()))
    return file


@pytest.fixture(params=FEWER_API_HOSTS)
def results(request: pytest.FixtureRequest, package: Path, models_file: Path) -> dict[str, Any]:
    return run_cases(request.param, package, ("digits", "kinds"), models_file)


@pytest.fixture
def digits(results: dict[str, Any]) -> dict[str, Any]:
    assert "failed" not in results["digits"], results["digits"]
    return results["digits"]  # type: ignore[no-any-return]


@pytest.fixture
def kinds(results: dict[str, Any]) -> dict[str, Any]:
    assert "failed" not in results["kinds"], results["kinds"]
    return results["kinds"]  # type: ignore[no-any-return]


@functools.cache
def by_onnxruntime() -> Any:
    session = onnxruntime.InferenceSession(str(DATA / "digits.onnx"), providers=["CPUExecutionProvider"])
    images = nn.state.safe_load(DATA / "digits.safetensors")["images"].numpy()[:6]
    return session.run(None, {"image": images[:, None].astype(np.float32)})[0]


def test_the_model_says_what_it_takes_and_gives(digits: dict[str, Any]) -> None:
    port = {"kind": "tensor", "dtype": "float32", "element": "float", "inner": None}
    assert digits["inputs"] == [{"name": "image", "shape": ["batch", 1, 8, 8], **port}]
    assert digits["outputs"] == [{"name": "probabilities", "shape": ["batch", 10], **port}]
    assert digits["ops"] == {
        "Conv": 2,
        "MaxPool": 2,
        "Relu": 2,
        "Div": 1,
        "Flatten": 1,
        "Gemm": 1,
        "Softmax": 1,
    }
    layers = [f"{layer}.{name}" for layer in ("conv1", "conv2", "out") for name in ("weight", "bias")]
    assert sorted(set(digits["names"]) - {"largest"}) == sorted(layers)
    assert digits["progress"] == (DATA / "digits.onnx").stat().st_size


def test_outputs_are_those_of_onnxruntime_within_1e_5(digits: dict[str, Any]) -> None:
    for name in ("wanted", "tensor", "shaped", "nested"):
        np.testing.assert_allclose(digits[name], by_onnxruntime(), rtol=1e-4, atol=1e-5, err_msg=name)
    shape, values = digits["run"]
    assert shape == [1, 10]
    np.testing.assert_allclose(values, by_onnxruntime()[:1], rtol=1e-4, atol=1e-5)


def test_one_capture_serves_all_sizes_within_1e_5(digits: dict[str, Any]) -> None:
    assert [len(x) for x in digits["captured"]] == [6, 2, 6, 1]
    for found in digits["captured"]:
        np.testing.assert_allclose(found, by_onnxruntime()[: len(found)], rtol=1e-4, atol=1e-5)
    assert bytes(digits["exported"]) == b"PGRD"


def test_the_graph_and_the_time_of_each_node_are_told(digits: dict[str, Any]) -> None:
    assert digits["graph"]["first"] == {
        "name": "conv1",
        "op": "Conv",
        "inputs": ["ink", "conv1.weight", "conv1.bias"],
        "outputs": ["edges"],
        "attributes": {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
    }
    assert {"name": "out.weight", "element": "float", "shape": [10, 64]} in digits["graph"]["weights"]
    assert [x["op"] for x in digits["times"]].count("Conv") == 2 and len(digits["times"]) == 10
    assert all(x["timed"] for x in digits["times"])
    assert digits["times"][-1]["outputs"] == ["float of shape (1, 10)"]
    launches, *timed = digits["fused"]
    assert 0 < launches < 10 and all(timed)


def test_weights_are_trained(digits: dict[str, Any]) -> None:
    assert digits["tuned"] == [3] * 6
    assert digits["alive"] == pytest.approx(1, abs=1e-5)


def test_errors_begin_with_the_file(digits: dict[str, Any], request: pytest.FixtureRequest) -> None:
    wrong = digits["wrong"]
    in_page = any(name in request.node.name for name in ("chromium", "firefox"))  # elsewhere it is a path
    missing = "FetchError" if in_page else "ArgumentError"
    assert is_error(wrong["missing"], missing, "load: expected a file", "nowhere.onnx")
    assert is_error(
        wrong["kind"], "ArgumentError", "expected an address, a path, a File or bytes, got a number"
    )
    assert is_error(
        wrong["exported"], "OnnxError", "model: load: expected an ONNX model, got an exported step"
    )
    assert is_error(wrong["damaged"], "OnnxError", "cut.onnx: ", "byte")
    assert is_error(wrong["inputs"], "ArgumentError", "digits.onnx: forward: expected the inputs ['image']")
    text = "digits.onnx: forward: input 'image' has shape (batch, 1, 8, 8), got 63 elements"
    assert is_error(wrong["elements"], "ShapeError", text)
    assert is_error(wrong["shape"], "ShapeError", "input 'image' has shape", "got (1, 1, 4, 4)")
    assert is_error(wrong["dtype"], "DTypeError", "digits.onnx: forward: input 'image' is float32, got int32")
    assert is_error(wrong["bounds"], "ArgumentError", "expected bounds of the sizes ['batch']")
    assert is_error(wrong["closed"], "ArgumentError", "got one that was disposed of")


def test_outputs_may_be_text_sequences_and_optionals(kinds: dict[str, Any]) -> None:
    assert kinds["text"] == {"y": ["bb", "aa"]}
    assert kinds["sequence"] == {"y": [[[1], "float32"], [[2], "float32"], [[3], "float32"]]}
    assert kinds["optional"] == [{"y": [[1, 2, 3], "float32"]}, {"y": None}]
    assert is_error(kinds["sync"], "OnnxError", 'forward: output "y" is no tensor (sequence): await run()')


def test_integers_and_booleans_take_the_shape_of_their_input(kinds: dict[str, Any]) -> None:
    assert kinds["integers"]["not"] == [[True, False], "bool"]
    assert kinds["integers"]["m"][1] == "int64"


def test_files_of_external_data_are_given_by_name(kinds: dict[str, Any]) -> None:
    assert kinds["external"] == {"y": [[11, 22, 33], "float32"]}
    assert is_error(kinds["noFile"], "ArgumentError", 'the file "weights.bin"', "among the option files")
    assert is_error(
        kinds["outside"], "OnnxError", "'../weights.bin' is not a file inside of the model's folder"
    )


def test_errors_name_the_node(kinds: dict[str, Any]) -> None:
    assert is_error(kinds["missingOp"], "OnnxError", "model: ", "com.microsoft.NoSuchOp", "node 'odd'")
    assert is_error(kinds["node"], "OnnxError", "model: node 'folds' (Reshape)")
