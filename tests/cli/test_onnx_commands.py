"""`polygrad inspect`, `run` and `convert`: what is in an ONNX file, its outputs, a file that runs alone."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_models import FLOAT, model

from polygrad import export
from polygrad.cli.main import main


def linear() -> bytes:
    """y = relu(x @ w), z = 'shape of y'."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"], name="product"),
        helper.make_node("Relu", ["h"], ["y"]),
        helper.make_node("Shape", ["y"], ["z"]),
    ]
    w = numpy_helper.from_array(np.float32([[1, -1], [2, -2]]), "w")
    x = helper.make_tensor_value_info("x", FLOAT, ["batch", 2])
    z = helper.make_tensor_value_info("z", TensorProto.INT64, [2])
    return model(nodes, [x], ["y", z], [w])


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(linear())
    return str(file)


def status(*arguments: str) -> int:
    return main("1.2.3", arguments)


# --- inspect


def test_inspect_says_what_is_in_a_file(path, capsys):
    assert status("inspect", path) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "ONNX, IR version 10, ai.onnx 21, com.microsoft 1"
    assert "  x: float (batch, 2)" in lines and "  z: int64 (2)" in lines
    assert "3 nodes of 3 ops" in lines and "MatMul      1" in lines
    assert "float               1         4     16" in lines
    assert lines[-1] == "it runs here"


def test_inspect_names_all_that_is_missing(tmp_path, capsys):
    nodes = [
        helper.make_node("NoSuchOp", ["x"], ["a"], name="n1", domain="com.microsoft"),
        helper.make_node("ImageDecoder", ["a"], ["y"], name="n2"),
    ]
    (tmp_path / "m.onnx").write_bytes(model(nodes, ["x"], ["y"]))
    assert status("inspect", str(tmp_path / "m.onnx")) == 1
    text = capsys.readouterr().out
    assert "com.microsoft.NoSuchOp of version 1: node 'n1'" in text and "ImageDecoder of version 21" in text
    assert text.endswith("it does not run here\n")


def test_inspect_says_why_a_file_cannot_be_loaded(tmp_path, capsys):
    (tmp_path / "m.onnx").write_bytes(model([helper.make_node("Relu", ["z"], ["y"])], ["x"], ["y"]))
    assert status("inspect", str(tmp_path / "m.onnx")) == 1
    assert "it cannot be loaded: node of ['y'] (Relu): input 'z'" in capsys.readouterr().out


def test_inspect_reads_no_external_data(tmp_path, capsys):
    tensor = TensorProto(name="w", data_type=1, dims=[1000, 1000], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="weights.bin")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    (tmp_path / "m.onnx").write_bytes(model([node], ["x"], ["y"], [tensor]))
    assert status("inspect", "--json", str(tmp_path / "m.onnx")) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["external"] == ["weights.bin"] and answer["runs"]
    assert answer["initializers"] == [
        {"element": "float", "tensors": 1, "elements": 1_000_000, "nbytes": 4_000_000}
    ]
    assert answer["inputs"] == [{"name": "x", "kind": "tensor", "element": "float", "shape": None}]


def test_inspect_counts_the_initializers_of_branches(tmp_path, capsys):
    ones = numpy_helper.from_array(np.ones(3, np.float32), "c")
    branches = [
        helper.make_graph(
            [helper.make_node("Add", ["x", "c"], [name])],
            name,
            [],
            [helper.make_tensor_value_info(name, FLOAT, None)],
            [ones],
        )
        for name in ("a", "b")
    ]
    node = helper.make_node("If", ["c0"], ["y"], then_branch=branches[0], else_branch=branches[1])
    condition = helper.make_tensor_value_info("c0", TensorProto.BOOL, [])
    (tmp_path / "m.onnx").write_bytes(model([node], ["x", condition], ["y"]))
    assert status("inspect", "--json", str(tmp_path / "m.onnx")) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["initializers"][0]["tensors"] == 2 and answer["ops"] == {"Add": 2, "If": 1}


@pytest.mark.parametrize("data", [None, b"no model"])
def test_inspect_of_no_model(tmp_path, capsys, data):
    if data is not None:
        (tmp_path / "m.onnx").write_bytes(data)
    assert status("inspect", str(tmp_path / "m.onnx")) == 1
    assert capsys.readouterr().err.startswith("polygrad: ")


# --- run


def test_run_prints_outputs(path, capsys):
    assert status("run", path, "--input", "x=[[1, 1], [0, -1]]") == 0
    assert capsys.readouterr().out.splitlines() == [
        "y: float32 (2, 2) [3.0, 0.0, 0.0, 2.0]",
        "z: int64 (2,) [2, 2]",
    ]


def test_run_takes_and_writes_files_of_numpy(path, tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.ones((20, 2), np.float32))
    target = tmp_path / "y.npy"
    assert status("run", path, "--input", f"x={tmp_path / 'x.npy'}", "--output", f"y={target}") == 0
    assert capsys.readouterr().out.splitlines()[0] == f"y: float32 (20, 2) -> {target}"
    np.testing.assert_array_equal(np.load(target), np.tile(np.float32([3, 0]), (20, 1)))


def test_run_writes_whole_outputs_as_json(path, capsys):
    x = [[1, 0]] * 20
    assert status("run", path, "--json", "--device", "INTERP", "--input", f"x={json.dumps(x)}") == 0
    assert json.loads(capsys.readouterr().out) == {"y": [[1.0, 0.0]] * 20, "z": [20, 2]}


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ([], "expected the inputs ['x']"),
        (["--input", "x"], "expected NAME=VALUE"),
        (["--input", "x=[1", "--input", "y=1"], "--input x: expected the name of a .npy file, or JSON"),
        (["--input", "x=1", "--input", "x=2"], "each name once"),
        (["--input", "x=nothing.npy"], "--input x: expected a file that can be read"),
        (["--input", "x=[[1, 2, 3]]"], "input 'x' has shape ('batch', 2)"),
        (["--input", "x=[[1, 2]]", "--output", "q=q.npy"], "expected an output of ['y', 'z'], got 'q'"),
        (["--input", "x=[[1, 2]]", "--output", "y=/nowhere/y.npy"], "--output y: expected a file that can"),
        (["--device", "NONE", "--input", "x=[[1, 2]]"], "NONE"),
    ],
)
def test_run_says_what_is_wrong(path, capsys, arguments, match):
    assert status("run", path, *arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("polygrad: ") and match in error


@pytest.mark.e2e
def test_the_command_line_runs_a_model(path):
    command = [sys.executable, "-m", "polygrad", "run", path, "--input", "x=[[1, 1]]"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("y: float32 (1, 2) [3.0, 0.0]")


# --- convert


def test_convert_writes_a_file_that_runs_alone(path, tmp_path, capsys):
    target = tmp_path / "m.pgrd"
    assert status("convert", path, str(target), "--size", "batch=1:8", "--device", "WASM") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["inputs:", "  x: float32 ('batch', 2)"] and lines[2] == "outputs:"
    found = export.load(target, native=True).run(x=[[1.0, 2.0], [0.0, -1.0], [3.0, 0.0]])
    assert found["y"].tolist() == [[5, 0], [0, 2], [3, 0]] and found["z"].tolist() == [3, 2]


@pytest.mark.parametrize("size", ["batch", "batch=", "=3", "batch=1:2:3", "batch=x"])
def test_sizes_that_are_none(path, tmp_path, size, capsys):
    assert status("convert", path, str(tmp_path / "m.pgrd"), "--size", size) == 1
    assert "expected NAME=N or NAME=LEAST:MOST" in capsys.readouterr().err


def test_convert_names_the_sizes_that_are_missing(path, tmp_path, capsys):
    assert status("convert", path, str(tmp_path / "m.pgrd")) == 1
    assert "expected bounds of the sizes ['batch']" in capsys.readouterr().err
