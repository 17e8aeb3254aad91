"""Data sets of JavaScript, `fit` on them, and checkpoints in folders, on every host."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np
import pytest
from javascript_compare import compare, is_error
from javascript_hosts import built

from polygrad import Tensor, nn
from polygrad.training import fit

pytestmark = [pytest.mark.e2e, built]

COUNT = 37
POINTS = np.sin(np.arange(COUNT * 4, dtype=np.float64)).reshape(COUNT, 4).astype(np.float32)
KINDS = np.arange(COUNT, dtype=np.int32) % 3


class Net:
    def __init__(self) -> None:
        Tensor.manual_seed(7)
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 3)

    def __call__(self, x: Tensor) -> Tensor:
        return self.second(self.first(x).relu().dropout(0.25))


def test_examples_come_in_batches_with_their_dtypes(results: dict[str, Any]) -> None:
    found = results["dataSets"]
    assert "failed" not in found, found
    assert found["few"] == [
        [[[[0, 9]], [[1, 9]]], [0, 1], "uint8", "int32"],
        [[[[2, 9]]], [2], "uint8", "int32"],
    ]
    ((x, y, *_),) = found["shuffled"]
    assert sorted(y) == [0, 1, 2] and [row[0][0] for row in x] == y


def test_csv_is_what_python_reads_in_it_from_bytes_files_and_streams(results: dict[str, Any]) -> None:
    found = results["dataSets"]
    text = "\r\n".join(['a,b,"kind, or so"', *(f'{i},"{i / 4}",k{k}' for i, k in enumerate(KINDS))])
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    total = sum(float(row["a"]) + float(row["b"]) for row in rows)
    kinds = [int(row["kind, or so"][1:]) for row in rows]
    assert found["loaded"] == [[[COUNT, 2], total, kinds, "float32", "int32"]] * 3
    assert found["plain"] == [[[[2], [5]], [[3, 1], [6, 4]], "float32", "float32"]]
    assert found["own"] == [[[[1, 1]], [2], "float32", "float32"]]


def test_what_is_wrong_in_a_data_set_is_named_with_its_place(results: dict[str, Any]) -> None:
    errors = results["dataSets"]["errors"]
    for name, text in {
        "number": 'fromCSV: record 3: a: expected a number, got "x"',
        "empty": 'fromCSV: record 2: b: expected a number, got ""',
        "ragged": "fromCSV: record 2: expected 2 fields, got 1",
        "name": "fromCSV: targets: expected columns among a, c, got b",
        "classes": 'fromCSV: record 2: b: expected one of 0, 1, got "2"',
        "none": "load: expected at least one example, got none",
        "option": "got target",
        "both": "fromCSV: expected either targets, or example, a function of a row",
        "quotes": "fromCSV: record 2: Quoted field unterminated",
        "again": "got a stream, which was read before: load() keeps its rows",
        "pair": "fromExamples: expected examples [input, target], got an array of 3",
        "source": "fromExamples: expected an iterable, a stream, or a function that gives one, got a number",
        "batch": "batches: batchSize: expected an integer of at least 1, got 0",
    }.items():
        assert is_error(errors[name], "ArgumentError", text), errors[name]
    shapes = "input: expected examples of one shape and dtype, got float32 [1] and float32 [2]"
    assert is_error(errors["shapes"], "ShapeError", shapes)
    assert is_error(
        errors["elements"], "ShapeError", "fromExamples: expected 2 elements for shape [2], got 3"
    )


def test_images_are_decoded_in_pages_and_have_the_size_that_is_wanted(
    results: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    found = results["dataImages"]
    assert "failed" not in found, found
    compare(found["x"], [[[[1], [1]]], [[[0], [0]]]], "x")
    assert found["y"] == [1, 0]
    assert is_error(found["label"], "ArgumentError", 'expected an integer or one of no, yes, got "perhaps"')
    assert is_error(found["size"], "ArgumentError", "fromImages: height: expected an integer of at least 1")
    if any(name in request.node.name for name in ("chromium", "firefox")):
        compare(found["file"], [[[[1, 1]], [[0, 0]], [[0.2, 0.2]]]], "file")
        assert is_error(found["damaged"], "TypeError", "expected a picture that the browser decodes")
    else:
        assert is_error(found["file"], "ArgumentError", "fromImages: image: expected pixels")


def test_a_run_on_data_that_are_fed_is_that_on_rows_to_the_last_bit(results: dict[str, Any]) -> None:
    found = results["fitData"]
    assert "failed" not in found, found
    model = Net()
    history = fit(
        model,
        (POINTS, KINDS),
        loss="cross_entropy",
        metrics=["accuracy"],
        epochs=3,
        batch_size=8,
        validation=(POINTS[:11], KINDS[:11]),
        shuffle=False,
        progress=False,
    )
    compare(found["expected"], history.values, "history")
    assert found["same"] == dict.fromkeys(
        ["examples", "generator", "set", "tensors", "rows", "fraction"], True
    )
    assert found["epochs"] == [0, 1, 2] and found["streamed"]
    assert (found["last"]["fraction"], found["last"]["loaded"]) == (1, 5) and "total" not in found["last"]
    assert found["split"] == [True, ["loss", "accuracy", "val_loss", "val_accuracy"]]


def test_what_is_wrong_with_data_that_are_fed_ends_the_run(results: dict[str, Any]) -> None:
    errors = results["fitData"]["errors"]
    for name, text in {
        "twice": "fit: data: expected a function that gives the items of each epoch",
        "fraction": "validation: expected data, as a fraction of an iterable cannot be held out",
        "part": "fit: validation: expected data, or a fraction between 0 and 1, got 1.5",
        "rows": "fit: data: expected batches of tensors with as many rows, got float32 37,4; int32 36",
        "pair": "fit: data: batch: expected [inputs, targets]",
        "none": "data: expected at least one batch in each epoch, got none in epoch 0",
        "kind": "fit: data: expected [inputs, targets]",
        "noHeldOut": "validation: expected at least one batch, got none",
    }.items():
        assert is_error(errors[name], "ArgumentError", text), errors[name]
    assert is_error(errors["own"], "RangeError", "mine")
    assert is_error(errors["never"], "Error", "enough")


@pytest.mark.parametrize("data", ["rows", "examples", "batches"])
def test_an_interrupted_run_goes_on_from_its_folder_to_the_last_bit(
    results: dict[str, Any], data: str
) -> None:
    assert "failed" not in results["fitCheckpoints"], results["fitCheckpoints"]
    found = results["fitCheckpoints"][data]
    assert found["aborted"] == "enough"
    steps = [int(name.removeprefix("step-").removesuffix(".safetensors")) for name in found["files"]]
    assert len(steps) == 2 and 4 <= steps[-1] < 15 and steps[0] % 2 == 0  # whole files alone, the last two
    assert is_error(found["refused"], "ArgumentError", "go on from there by resume: true")
    assert found["same"] and found["again"]
    assert found["after"] == ["step-000000014.safetensors", "step-000000015.safetensors"]


def test_checkpoints_of_epochs_are_kept_as_told_and_checked(results: dict[str, Any]) -> None:
    found = results["fitCheckpoints"]
    assert "failed" not in found, found
    assert found["epochs"] == ["step-000000005.safetensors", "step-000000010.safetensors"]
    assert found["longer"] and found["kept"] == ["step-000000020.safetensors"]
    for name, text in {
        "folder": "fit: checkpoints: folder: expected a path, got undefined",
        "every": "Checkpoints: every: expected at least 1, got 0",
        "option": "got steps",
        "resume": "fit: resume: expected the option checkpoints with a folder",
        "other": "was started with another batchSize: 8, not 9",
    }.items():
        assert is_error(found["errors"][name], "ArgumentError", text), found["errors"][name]


def test_a_bar_shows_progress_in_the_terminal_and_in_a_page(
    results: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    found = results["progressBars"]
    assert "failed" not in found, found
    end = "training 30/30, loss "
    if any(name in request.node.name for name in ("chromium", "firefox")):
        assert (found["value"], found["max"]) == (1, 1) and found["text"].startswith(f" {end}")
        assert "val_accuracy" in found["text"]
        assert is_error(found["wrong"], "TypeError", "expected an element of the page, got 5")
        return
    live, plain = found["live"], found["plain"]
    assert live[:2] == [f"\r|{'█' * 10:20}| download 5.0/10.0 MB\x1b[K", "\n"]
    assert all(line.startswith("\r|") and line.endswith("\x1b[K") for line in live[2:-1])
    assert f"|{'█' * 20}| {end}" in live[-1] and "val_loss" in live[-1] and live[-1].endswith("\x1b[K\n")
    assert "MB\n" in plain[0] and end in plain[-1] and 3 <= len(plain) <= 12
    assert not any("\r" in line for line in plain)
