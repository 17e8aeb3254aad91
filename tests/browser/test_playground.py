"""The playground, as visitors use it: examples run, a classifier reads drawings, a model writes."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from javascript_hosts import built
from onnx import helper, numpy_helper
from onnx_models import FLOAT, model
from playground_driver import seen_by

pytestmark = [pytest.mark.e2e, built]


def sums() -> bytes:
    """s = x + x, and the sum of its rows."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["s"]),
        helper.make_node("ReduceSum", ["s", "axis"], ["rows"], keepdims=0),
    ]
    axis = numpy_helper.from_array(np.array([1], np.int64), "axis")
    return model(nodes, [helper.make_tensor_value_info("x", FLOAT, ["n", 3])], ["s", "rows"], [axis])


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the driver saw, and the folder of its screenshots."""
    folder = tmp_path_factory.mktemp("playground")
    (folder / "sums.onnx").write_bytes(sums())
    return {**seen_by("playground.mjs", folder), "folder": folder}


def test_nothing_violates_the_policy(seen: Any) -> None:
    assert seen["complaints"] == []


@pytest.mark.parametrize("language", ["js", "py"])
def test_every_example_runs_to_its_end(seen: Any, language: str) -> None:
    found = {name: text for name, text in seen["programs"].items() if name.endswith(language)}
    assert len(found) == 4 and all("finished in" in text for text in found.values()), found
    numbers = {
        name: [float(x) for x in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", text)] for name, text in found.items()
    }
    assert numbers[f"tensor.{language}"][:2] == [15, 33]
    assert numbers[f"xor.{language}"][:4] == [0, 1, 1, 0]
    gradients = numbers[f"gradients.{language}"][:8]
    assert gradients[:4] == pytest.approx(gradients[4:], abs=0.02)
    assert numbers[f"step.{language}"][-2] < 0.1  # the loss; the last number is the time


def test_the_programs_of_examples_run_in_the_editor(seen: Any) -> None:
    assert {"convolutional.py", "characters.py", "autoencoder.py", "uncertainty.py"} <= set(seen["listed"])
    assert "44/44" in seen["example"] and "held-out accuracy" in seen["example"], seen["example"]
    accuracy = re.search(r"held-out accuracy ([\d.]+)%", seen["example"])
    assert accuracy is not None and float(accuracy[1]) > 80
    assert seen["pictures"] == 1


def test_an_error_says_what_and_where(seen: Any) -> None:
    assert "ShapeError (line 3)" in seen["failed"] and "got shapes (2, 3), (4,)" in seen["failed"]
    assert "(line 3)" in seen["failedPython"] and "ZeroDivisionError" in seen["failedPython"]


def test_a_program_without_end_can_be_stopped_and_another_run(seen: Any) -> None:
    assert "stopped" in seen["stopped"]
    assert "sums of the rows: [ 15, 33 ]" in seen["after"]


def test_where_eval_is_forbidden_javascript_says_so_and_python_runs(seen: Any) -> None:
    assert "Content-Security-Policy forbids it" in seen["forbidden"] and "runner.mjs" in seen["forbidden"]
    assert "sums of the rows: [15.0, 33.0]" in seen["allowed"]


def test_the_classifier_learns_and_reads_what_is_drawn(seen: Any) -> None:
    accuracy = re.search(r"trained: ([\d.]+)%", seen["trained"])
    assert accuracy is not None and float(accuracy[1]) >= 95, seen["trained"]
    assert seen["guesses"] == {"one": "1", "zero": "0"}
    assert len(seen["bars"]) == 10
    assert sum(int(text.rstrip("%")) for text in seen["bars"]) == pytest.approx(100, abs=5)
    assert seen["cleared"] == "?"


def test_the_character_model_writes_what_it_learns(seen: Any) -> None:
    assert len(seen["written"]) >= 3
    loss = re.search(r"loss ([\d.]+)", seen["learnt"])
    assert loss is not None and float(loss[1]) < 2.5, seen["learnt"]
    words = re.findall(r"[a-z]+", max(seen["written"], key=len))
    assert len(words) >= 5


def test_the_example_of_the_onnx_tab_is_drawn_run_and_timed(seen: Any) -> None:
    example = seen["onnx"]["example"]
    assert example["note"].startswith("digits.onnx: 10 nodes of 7 ops, 1.90 k weights.")
    wanted = [
        "image",
        "Div",
        "Conv",
        "Relu",
        "MaxPool",
        "Conv",
        "Relu",
        "MaxPool",
        "Flatten",
        "Gemm",
        "Softmax",
    ]
    assert example["nodes"] == [*wanted, "probabilities"]
    assert sorted(example["ops"]) == ["Conv", "Div", "Gemm", "MaxPool", "Relu", "Softmax"]
    assert (
        "10 nodes one by one" in example["times"][0] and "Nothing to compute: Flatten" in example["times"][0]
    )
    first = example["bars"][0].split()
    assert first[0] == "8" and float(first[1]) > 0.9  # it is a picture of an eight
    assert example["readout"].startswith("2 Conv conv1 · (1, 8, 8, 8)")
    assert "conv1.weight (8, 1, 3, 3)" in example["readout"]


def test_the_form_of_the_onnx_tab_says_what_does_not_fit(seen: Any) -> None:
    assert 'image: expected numbers, got "x"' in seen["onnx"]["wrong"]
    assert seen["onnx"]["zeros"]["outputs"] == ["probabilities float32 (3, 10)"]


def test_an_input_is_filled_with_a_picture(seen: Any) -> None:
    zeros, picture = seen["onnx"]["zeros"], seen["onnx"]["picture"]
    assert picture["outputs"] == zeros["outputs"] and picture["numbers"] != zeros["numbers"]


def test_onnx_files_are_opened_and_dropped(seen: Any) -> None:
    opened, dropped = seen["onnx"]["opened"], seen["onnx"]["dropped"]
    assert opened["nodes"] == dropped["nodes"] == ["x", "Add", "ReduceSum", "s", "rows"]
    assert opened["outputs"] == ["s float32 (1, 3)", "rows float32 (1)"]
    assert dropped["note"].startswith("dropped.onnx: 2 nodes of 2 ops")
    assert "OnnxError: cut.onnx: " in seen["onnx"]["damaged"]


def test_a_phone_needs_no_scrolling_sideways(seen: Any) -> None:
    assert max(seen["widths"].values()) <= 375, seen["widths"]


def test_screenshots_were_taken(seen: Any) -> None:
    assert len(list(seen["folder"].glob("*.png"))) == 9
