"""The JavaScript API on every host, from the packed package: the same cases, compared with Python."""

from __future__ import annotations

from typing import Any

import javascript_expected as expected
import pytest
from javascript_compare import compare, is_error
from javascript_hosts import ROOT, built

from polygrad import Tensor, nn, pictures

pytestmark = [pytest.mark.e2e, built]


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        ("construction", expected.construction),
        ("data", expected.data),
        ("operators", expected.operators),
        ("indexing", expected.indexing),
        ("autograd", expected.autograd),
        ("training", expected.training),
        ("compileStep", expected.compiled),
        ("fit", expected.fitted),
        ("tinyJit", expected.jit),
        ("layers", expected.layers),
        ("sequential", expected.sequential),
    ],
)
def test_a_case_gives_what_python_computes_within_1e_4(
    results: dict[str, Any], case: str, wanted: Any
) -> None:
    assert "failed" not in results[case], results[case]
    compare(results[case], wanted(), case)


def test_errors_have_classes_the_message_of_python_and_its_traceback_as_cause(
    results: dict[str, Any],
) -> None:
    found = results["errors"]
    assert "failed" not in found, found
    assert is_error(found["shape"], "ShapeError", "equal or 1")
    assert is_error(found["axis"], "AxisError", "axis: expected -1 to 0 for shape (2,), got 3")
    assert is_error(found["dtype"], "DTypeError", "dtype: expected one of bool")
    assert is_error(
        found["argument"], "ArgumentError", "sum: expected arguments axis, keepdim, dtype, got colour="
    )
    assert is_error(found["missing"], "ArgumentError", "missing a required argument: 'out_features'")
    assert is_error(found["ragged"], "ShapeError", "expected 1 elements in every array at depth 1, got 2")
    assert is_error(found["overflow"], "OverflowError", "expected integers in 0..255 (uint8), got 300")
    assert is_error(found["gradient"], "GradientError", "expected a scalar")
    assert is_error(found["device"], "DeviceError", "got 'TPU'")
    assert is_error(found["defaultDevice"], "DeviceError", 'got "TPU"')
    assert is_error(found["item"], "ShapeError", "item: expected one element, got shape [2]")
    assert is_error(found["python"], "PythonError", "No module named 'nowhere'")
    assert is_error(
        found["names"], "ArgumentError", "python: expected names of Python's variables, got 'a-b'"
    )
    own = {"zero": "RangeError", "key": "RangeError", "kind": "TypeError", "todo": "NotImplementedError"}
    assert {name: found[name]["name"] for name in own} == own
    assert found["key"]["message"] == "expected a key that is there, got 'b'"
    assert found["type"] == "ModuleNotFoundError"
    assert is_error(found["disposed"], "ArgumentError", "got one that was disposed of")
    assert found["shape"]["cause"] == "string"
    assert not any("Traceback" in e["message"] for e in found.values() if isinstance(e, dict))
    assert found["classes"] == [True, True, False]
    assert (found["silent"], found["then"], found["afterwards"]) == ("ArgumentError", 3, 3)


def test_source_in_python_takes_values_of_javascript(results: dict[str, Any]) -> None:
    found = results["pythonValues"]
    assert found == {
        "tensor": [20, 30],
        "object": [3, 2],
        "plain": [2, "é", [1, 2.5]],
        "captured": True,
        "later": 2,
    }


def test_views_see_what_is_written_through_any_of_them(results: dict[str, Any]) -> None:
    found = results["views"]
    assert "failed" not in found, found
    after = [[[9, 0, 0], [1, 2, 3]], [1, 2, 3], [9, 1], [[1, 1, 1], [1, 1, 1]]]
    assert found["lazy"] == found["realized"] == after
    assert is_error(found["twice"], "ArgumentError", "expected a view that shows each element once")


def test_captures_say_what_cannot_be_captured(
    results: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    step, jit = results["compileStep"], results["tinyJit"]
    assert is_error(step["wrongShape"], "ShapeError", "input 0: expected shape (6, 4)")
    assert is_error(step["wrongCount"], "ShapeError", "input 0: expected shape (6, 4), got 23 elements")
    assert is_error(
        step["wrongRows"], "ShapeError", "input 0: expected shape (6, 4), as captured, got (4, 6)"
    )
    assert is_error(step["wrongDType"], "DTypeError", "input 0: expected dtype float32")
    assert is_error(step["ragged"], "ShapeError", "expected 1 elements in every array at depth 1, got 2")
    assert is_error(step["one"], "ArgumentError", "expected 2 inputs")
    assert is_error(step["noLoss"], "ArgumentError", "expected fn to return a loss of one element")
    assert is_error(step["throws"], "RangeError", "mine")
    assert is_error(jit["other"], "CaptureError", "expected the arguments that are not Tensors to stay")
    if "direct" in request.node.name:  # in a worker there are no reads that do not wait
        assert jit["inside"] == "CaptureError"
    assert step["kernels"] > 0


def test_state_is_saved_loaded_and_checked(results: dict[str, Any], request: pytest.FixtureRequest) -> None:
    found = results["state"]
    assert "failed" not in found, found
    assert found["names"] == ["hidden.weight", "hidden.bias", "norm.weight", "norm.bias", "out.weight"]
    assert found["same"] and found["progress"] == ["download", 1, True]
    assert is_error(found["stopped"], "RangeError", "enough")
    assert found["early"]["name"] == "AbortError"
    digits = nn.state.safe_load(ROOT / "examples" / "data" / "digits.safetensors")
    assert found["shapes"] == {k: [list(t.shape), str(t.dtype)] for k, t in digits.items()}
    assert found["sums"] == {k: t.cast("int32").sum().item() for k, t in digits.items()}
    assert is_error(found["unknown"], "ArgumentError", "load_state_dict: missing ['hidden.weight'")
    assert is_error(found["cut"], "ArgumentError", "the file is cut short")
    in_page = any(name in request.node.name for name in ("chromium", "firefox"))
    assert is_error(
        found["missing"], "FetchError" if in_page else "ArgumentError", "safeLoad: expected a file"
    )


def test_saved_bytes_are_a_safetensors_file(results: dict[str, Any]) -> None:
    Tensor.manual_seed(3)
    own = {**nn.state.get_state_dict(expected.Net()), "n": Tensor([1, 2], dtype="int64")}
    assert results["state"]["size"] == len(nn.state.safe_save(own, metadata={"made": "here"}))


def test_out_of_memory_is_an_error_after_which_there_is_room_again(results: dict[str, Any]) -> None:
    assert results["memory"] == ["OutOfMemoryError", True, 20, "WASM"]


def test_scopes_and_dispose_free_what_was_made(results: dict[str, Any]) -> None:
    found = results["lifetimes"]
    assert "failed" not in found, found
    assert (found["inScope"], found["afterwards"], found["withLayer"], found["end"]) == (2, 0, 2, 0)
    assert found["values"] == [4, 6, 8, 10, 12, 14, 16] and found["deep"] == [2, 3, 4, 5, 6, 7, 8]
    asynchronous = found["asynchronous"]
    assert asynchronous["b"] == [4, 6, 8, 10, 12, 14, 16]
    assert (asynchronous["during"], asynchronous["after"]) == (2, 1)
    assert is_error(asynchronous["failed"], "RangeError", "after 7")
    assert found["overlapping"] == [False, False]


def test_fit_names_what_is_wrong_and_two_runs_are_independent(results: dict[str, Any]) -> None:
    found = results["fitEdges"]
    assert "failed" not in found, found
    for error, text in zip(
        found["errors"],
        [
            *["expected an object with a method forward"] * 4,
            "expected options with a loss, got none",
            "got batch_size",
            "got constructor",
            "metrics: expected an array of names",
        ],
        strict=True,
    ):
        assert is_error(error, "ArgumentError", text), error
    for error, text in zip(
        found["named"],
        [
            "fit: batchSize: expected an integer of at least 1, got 0",
            "fit: schedulerInterval: expected 'epoch' or 'step', got 'day'",
            "got none: dropLast leaves out what is smaller",
            "fit: earlyStopping: expected options among monitor, patience, largest, least, restore, got",
            "monitor: expected one of loss, got 'val_loss'",
            "fit: earlyStopping: expected an object with options among monitor",
        ],
        strict=True,
    ):
        assert is_error(error, "ArgumentError", text), error
    assert found["seen"] == [True, False, False]  # a step; an evaluation, run once and captured
    assert found["trainingAfter"] is True
    assert is_error(found["late"], "ArgumentError", "got one that has ended")
    assert is_error(found["own"], "RangeError", "mine")
    assert found["same"] == [True, True]


def test_parts_by_an_unknown_option_are_refused(results: dict[str, Any]) -> None:
    assert is_error(results["partsBySecondName"], "ArgumentError", "unbind: expected arguments that divide")


def test_a_layer_with_another_weight_has_results_of_its_shape(results: dict[str, Any]) -> None:
    assert results["assigned"] == [[2, 5], [2, 5]]


def test_questions_are_answered_or_say_what_to_await(
    results: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    found = results["questions"]
    assert "failed" not in found, found
    assert found["known"] == [[1, 3], 2, 3, 3, 4, 12, True, "float32", "WASM"]
    assert found["one"] == 1
    assert found["devices"] == ["WASM", "INTERP", "WASM", "WASM"]
    assert found["available"] == ["WASM", "INTERP"]
    assert found["list"] == [1, "a", None]
    assert found["instance"] == [True, True, False]
    assert found["pixels"] == [[[1, 2, 3], [5, 6, 7]]]
    if "worker" in request.node.name:
        assert is_error(found["before"], "PolygradError", "await tensor.ready() first")
        assert found["sync"] == []
    else:
        assert found["sync"] == [[1, 2, 3], 6, [[1, 2, 3]]]


def test_shapes_are_known_at_once(results: dict[str, Any], request: pytest.FixtureRequest) -> None:
    found = results["shapes"]
    assert "failed" not in found, found
    assert set(found["same"].values()) == {True}, found["known"]
    known = found["known"]
    assert known["broadcast"] == [[6, 6, 4], "float32", "WASM"]
    assert known["step"] == [[6, 3], "float32", "WASM"] and known["loss"][0] == []
    assert known["jit"] == [[4], "float32", "WASM"] and known["picked"][0] == [2, 1]
    assert found["inside"] == [[6, 8]]
    if "worker" in request.node.name:  # Python alone knows these
        assert known["flat"][0] == known["moved"][2] == "unknown"
    else:
        assert known["flat"][0] == [2, 2] and known["moved"][2] == "INTERP"
    assert not [name for name in known if name != "flat" and known[name][0] == "unknown"]


def test_consoles_show_tensors_and_layers(results: dict[str, Any]) -> None:
    found = results["shown"]
    assert "failed" not in found, found
    head, rows = "Tensor [2, 2] float32 on WASM", "[[  1, 2.5],\n [  3,   4]]"
    in_worker = found["worker"]
    shown = f"{head}: print() shows its elements" if in_worker else f"{head}\n{rows}"
    assert (found["tensor"], found["text"]) == (shown, head)
    later = "Tensor [?]: print() shows its elements"
    assert found["unknown"] == (later if in_worker else "Tensor [] float32 on WASM")
    assert found["layer"] == ['Linear(2, 3, {"bias":false})', "SGD(1 tensors, 0.5)"]
    assert found["gone"] == "Tensor (disposed of)"
    assert found["lines"] == [f"{head}\n[[2, 5],\n [6, 8]]"]
    if "formatter" in found:  # in a page
        ((header, has_body, body, other),) = found["formatter"]
        assert header[2] == shown.split("\n")[0] and other is None
        assert has_body is not in_worker and (in_worker or body[2] == rows)


def test_pictures_are_those_of_python(results: dict[str, Any]) -> None:
    found = results["pictures"]
    assert "failed" not in found, found
    x = [[1.0, 2.5], [3.0, 4.0]]
    assert found["chart"] == pictures.chart({"loss": [3, 1, 2]}, "a", "epoch", log=True)
    assert found["histogram"] == pictures.histogram([2.0, 5.0, 6.0, 8.0], 2, "b")
    assert found["numbers"] == pictures.histogram([1.0, 2.0, 2.0, 3.0])
    assert found["heatMap"] == pictures.heat_map(x)
    assert found["pixels"] == pictures.image([[0, 128, 255]], "c")
    assert found["image"] == "ArgumentError"
    assert is_error(found["wrong"], "ArgumentError", "histogram: expected options among title, bins, got bin")
    assert is_error(found["shape"], "ArgumentError", "heat_map: expected 2 axes with elements, got 1")


def test_a_learning_rate_is_a_number_that_is_assigned(results: dict[str, Any]) -> None:
    rates = [[0.5, [0.5, 0.5]], [0.25, [0.25, 0.25]], [1, [-0.75, -0.75]], [0.125, [-0.875, -0.875]]]
    assert results["learningRates"] == rates


def test_subclasses_of_layers_optimizers_and_tensors_are_javascripts(results: dict[str, Any]) -> None:
    found = results["subclasses"]
    assert "failed" not in found, found
    for own in found["own"]:
        compare(own, found["expected"], "forward")
    assert found["calls"] == 2
    assert found["state"] == ["its own", ["weight", "bias", "norm.weight", "norm.bias"]]
    assert found["names"] == ["Activated", "Activated", "Linear", "Tensor"]
    assert found["instances"] == [
        [True, True, False],
        [False, True],
        [True, True, False, True],
        [True, True, False],
    ]
    assert found["optimizer"] == [1, [0.5, 0.5]]
    assert (found["vector"], found["made"]) == ([2, 4], [0, 0])
    assert found["named"] == [7, "mine", [1, 3], 1]
    assert found["wide"] == [2, [4, 2], None, True]
    assert found["called"]["name"] == "TypeError"


def test_a_models_tensors_are_found_or_named_in_an_error(results: dict[str, Any]) -> None:
    found = results["models"]
    assert "failed" not in found, found
    visible = ["weight", "hidden.weight", "layers.0.weight", "layers.1.weight"]
    assert found["names"] == {
        "map": ["a.weight"],
        "set": ["0.weight", "1.bias"],
        "visible": visible,
        "derived": [f"net.{name}" for name in ("weight", "own.weight", *visible[1:])],
        "literal": ["layer.weight"],
        "plainLayer": ["1.weight"],
        "empty": [],
        "prefix": ["net.0.weight"],
    }
    assert found["parameters"] == len(visible)
    hidden = (
        "expected tensors in the properties and getters of Private, got none: private fields cannot be seen"
    )
    assert is_error(found["private"], "ArgumentError", f"getParameters: {hidden}")
    assert is_error(found["inside"], "ArgumentError", f"getStateDict: {hidden}")
    assert is_error(found["saved"], "ArgumentError", hidden)
    assert is_error(found["none"], "ArgumentError", "getters of Relu, got none")
    assert is_error(found["undefined"], "ArgumentError", "getParameters: expected a layer, or an object")
    assert is_error(found["closure"], "ArgumentError", "got function")
    assert is_error(found["step"], "ArgumentError", "got a CompiledStep")
    assert (found["kept"], found["disposed"]) == ([[3, 3], [4, 4]], [True, True])
    assert is_error(found["jit"], "ArgumentError", "expected tensors, or arrays and plain objects of them")


def test_the_page_complains_of_nothing(results: dict[str, Any]) -> None:
    assert results.get("complaints", []) == []
