"""The playground's kernel inspector: passes, lines of the program, a kernel in two ways side by side."""

from __future__ import annotations

import re
from typing import Any

import pytest
from javascript_hosts import built
from playground_driver import seen_by

from polygrad.codegen.lower.passes import PASSES
from polygrad.codegen.opts.opt import OptKind

pytestmark = [pytest.mark.e2e, built]
LANGUAGES = ["javascript", "python"]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the driver saw, and the folder of its screenshots."""
    folder = tmp_path_factory.mktemp("kernels")
    return {**seen_by("playground_kernels.mjs", folder), "folder": folder}


def test_nothing_violates_the_policy(seen: Any) -> None:
    assert seen["complaints"] == []


def test_the_inspector_times_kernels_beside_the_measured_peak(seen: Any) -> None:
    product = seen["product"]
    assert re.match(
        r"a Tensor of shape \[256, 256\]: 1 launch, .* Measured peak: [\d.]+ GFLOP/s", product["note"]
    )
    facts = product["facts"]
    assert list(facts) == ["Kernel", "Time", "Arithmetic", "Share of the peak", "Memory", "Code"]
    assert float(facts["Share of the peak"].rstrip(" %")) > 0
    (launch,) = product["launches"]
    assert "33.6 M floating-point operations" in launch  # 2 * 256**3
    assert "786 kB of memory" in launch and "writes output float32[65536]" in launch
    assert facts["Kernel"] in launch


def test_the_inspector_shows_each_pass(seen: Any) -> None:
    product = seen["product"]
    names = [p.name for p in PASSES]
    assert [name for name in product["passes"] if name.split()[0] not in OptKind.__members__] == [
        "as scheduled",
        *names,
    ]
    assert any(name.startswith("SIMD r1 4") for name in product["passes"])
    ops = [name.split()[1] for name in product["nodes"]]
    assert {"PARAM", "RANGE", "INDEX", "LOAD", "MUL", "REDUCE", "STORE", "SINK"} <= set(ops)
    assert "CONST" not in ops  # part of what reads it
    for size, step, name in zip(product["sizes"][1:], product["steps"], product["passes"][1:], strict=True):
        if size == "no change":
            assert step == {"note": f"{name} finds nothing to change here.", "marked": 0}
        else:
            assert re.fullmatch(r"\d+ → \d+", size)
            assert step["note"] == f"After {name}."
    assert 0 < product["sizes"].count("no change") < len(PASSES)
    assert sum(step["marked"] > 0 for step in product["steps"]) >= 3
    before = product["before"]
    assert before["note"].startswith("Before ") and before["marked"] > 0
    assert before["withIndices"] > before["nodes"]


def test_the_graph_is_walked_by_keys_and_read_as_text(seen: Any) -> None:
    product = seen["product"]
    assert [text.split(" ")[1] for text in product["walk"]] == ["SINK", "END", "STORE", "INDEX"]
    assert "reads" in product["walk"][1] and "read by" in product["walk"][1]
    lines = product["listing"].split("\n")
    assert len(lines) == int(product["sizes"][0].split()[0]) and lines[-1].split()[1] == "SINK"
    assert product["wat"].startswith("(module") and "f32x4" in product["wat"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_timeline_of_a_step_has_a_bar_for_each_launch(seen: Any, language: str) -> None:
    step = seen["steps"][language]
    count = re.match(r"a training step: (\d+) launches", step["note"])
    assert count is not None and int(count[1]) == len(step["bars"]) >= 10
    ends = [left + width for left, width in step["bars"]]
    assert [left for left, _ in step["bars"]] == pytest.approx([0, *ends[:-1]], abs=0.01)
    assert ends[-1] == pytest.approx(100, abs=0.01)
    assert step["hovered"].startswith("2. ") and "of memory" in step["hovered"]
    assert step["chosen"].startswith(f"3. {step['kernel']} ")


def test_a_program_has_the_same_kernels_in_both_languages(seen: Any) -> None:
    javascript, python = (seen["steps"][language] for language in LANGUAGES)
    assert javascript["kernels"] == python["kernels"]
    numbers = [
        [[re.findall(r"(?:gradient of )?line \d+", text)[0] for text in launch] for launch in step["lines"]]
        for step in (javascript, python)
    ]
    assert numbers[0] == numbers[1]  # the programs are the same, line by line


@pytest.mark.parametrize(
    ("language", "layer", "loss", "update"),
    [
        ("javascript", "first.forward(x).relu()", "scores.crossEntropy(y)", "compileStep("),
        ("python", "layers[0](x).relu()", "scores.cross_entropy(y)", "compile_step("),
    ],
)
def test_a_launch_leads_to_the_lines_that_made_it(
    seen: Any, language: str, layer: str, loss: str, update: str
) -> None:
    step = seen["steps"][language]
    first, *others = step["lines"]
    assert len(first) == 1 and first[0].startswith("line 9") and layer in first[0]
    assert len(step["marked"]) == 1 and layer in step["marked"][0]
    made = [text for launch in others for text in launch]
    assert all(step["lines"])
    assert any(text.startswith("line 11") and loss in text for text in made)
    assert any(text.startswith("gradient of line 9") and layer in text for text in made)
    assert any(text.startswith("line 14") and update in text for text in made)  # the optimizer
    assert "cm-content" in step["focused"] and loss in step["line"]


def test_opts_are_compared_side_by_side(seen: Any) -> None:
    compared = seen["compared"]
    opts = compared["opts"]
    chosen, none = opts["facts"]
    assert re.match(r"[\d.]+ [µm]?s", chosen) and "SIMD r1 4" in chosen
    assert re.match(r"[\d.]+ [µm]?s", none) and "no Opts" in none
    assert re.search(r"The right one is [\d.]+ × slower\. \d+ lines on the left alone", opts["note"])
    # nothing of either text is missing
    assert opts["left"].replace("kernel", compared["kernel"]) == compared["code"]
    assert opts["left"].startswith("(module") and opts["right"].startswith("(module")
    assert "v128.store" in opts["left"] and "v128.store" not in opts["right"]
    same = compared["same"]
    assert same["left"] == same["right"] == opts["left"] and "The code is the same." in same["note"]


def test_opts_are_typed(seen: Any) -> None:
    compared = seen["compared"]
    assert compared["suggested"] in compared["opts"]["facts"][0] and compared["suggested"]
    assert "UPCAST r0 4" in compared["typed"]["facts"][1]
    assert compared["typed"]["left"] == compared["opts"]["left"] != compared["typed"]["right"]
    assert "right: OptError: opt 'UPCAST r9 4': expected an axis" in compared["wrong"]["failure"]
    assert "right: ArgumentError: opt 'FASTER r0': expected one of" in compared["unknown"]["failure"]
    assert compared["wrong"]["left"] == "" and compared["wrong"]["facts"] == ["", ""]


def test_devices_are_compared_side_by_side(seen: Any) -> None:
    devices, c = seen["compared"]["devices"], seen["compared"]["c"]
    assert devices["left"].startswith("(module") and "@compute @workgroup_size" in devices["right"]
    assert "GLOBAL r" in devices["facts"][1] and re.search(r"\d+ lines on the left, \d+ on", devices["note"])
    assert "void kernel(char **buffers" in c["right"] and "not timed" in c["facts"][1]
    assert "void kernel(char **buffers" in seen["compared"]["next"]["right"]  # of another program's kernel
    assert seen["compared"]["next"]["right"] != c["right"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_inspector_says_what_is_wrong_and_goes_on(seen: Any, language: str) -> None:
    failing = seen["failing"][language]
    assert "expected a last line that is an expression, got none" in failing["statement"]["text"]
    number = failing["number"]["text"]
    assert "expected the last line to be a Tensor or a compiled step, got int" in number
    assert "got shapes (2, 3), (2, 3)" in failing["raised"]["text"] or "(2, 3)" in failing["raised"]["text"]
    assert "(line " in failing["raised"]["text"] and len(failing["raised"]["marked"]) == 1


def test_errors_have_lines(seen: Any) -> None:
    python, javascript = seen["failing"]["python"], seen["failing"]["javascript"]
    assert "SyntaxError" in python["syntax"]["text"]
    assert python["raised"]["marked"] == ["x @ x"] and javascript["raised"]["marked"] == ["x.matmul(x);"]
    assert "missing is not defined (line 4)" in javascript["thrown"]["text"]
    assert "await" in javascript["asynchronous"]["text"]
    assert python["after"].startswith("a Tensor of shape [5, 5]: 1 launch")
    after = javascript["after"]
    assert after["note"].startswith("a Tensor of shape [5, 5]: 1 launch")
    assert [line.split("\n")[0] for line in after["lines"]] == ["line 4"]


def test_a_program_without_end_is_stopped(seen: Any) -> None:
    assert seen["failing"]["javascript"]["stopped"] == "stopped"


def test_kernels_of_the_gpu_are_timed_and_have_lines(seen: Any) -> None:
    gpu = seen["gpu"]
    if gpu["devices"][1][1]:
        pytest.skip("this Chromium has no adapter")
    assert "failure" not in gpu, gpu
    assert gpu["note"].startswith("a Tensor of shape [256, 256]: ")
    assert "@compute" in gpu["code"] and gpu["lines"][0].startswith("line 6")
    assert all(re.match(r"[\d.]+ [µm]?s", fact) for fact in gpu["both"]["facts"]), gpu["both"]["facts"]


def test_where_eval_is_forbidden_javascript_says_so_and_python_runs(seen: Any) -> None:
    assert "Content-Security-Policy forbids it" in seen["forbidden"] and "runner.mjs" in seen["forbidden"]
    assert seen["allowed"].startswith("a Tensor of shape [256, 1000]: ")


def test_a_phone_needs_no_scrolling_sideways(seen: Any) -> None:
    assert seen["width"] <= 375


def test_screenshots_were_taken(seen: Any) -> None:
    assert len(list(seen["folder"].glob("*.png"))) == 5
