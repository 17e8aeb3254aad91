"""The demo's verdict: what counts as agreement between hosts, and that it says what does not."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).resolve().parents[2] / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("examples_demo", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["examples_demo"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def outcome(demo: ModuleType):
    return demo.Outcome("cpython", "CPU", 500.0, 0.5, 0.01, 0.97)


def test_equal_outcomes_agree(demo, outcome) -> None:
    assert demo.faults([outcome, replace(outcome, host="chromium", final_loss=0.0109)]) == []


def test_losses_more_than_a_thousandth_apart_do_not_agree(demo, outcome) -> None:
    (fault,) = demo.faults([outcome, replace(outcome, final_loss=0.0111)])
    assert fault.startswith("final losses")


@pytest.mark.parametrize("accuracy", [0.9499, float("nan")])
def test_an_accuracy_under_95_percent_is_a_fault(demo, outcome, accuracy: float) -> None:
    (fault,) = demo.faults([replace(outcome, test_accuracy=accuracy)])
    assert "test accuracy" in fault


def test_a_loss_that_is_not_a_number_is_a_fault(demo, outcome) -> None:
    assert demo.faults([outcome, replace(outcome, final_loss=float("nan"))])


def test_a_host_that_cannot_run_is_reported_not_raised(demo) -> None:
    assert "no-such-program" in demo.run("cpython", "CPU", ["no-such-program"])
    assert "exit status" in demo.run("cpython", "CPU", [sys.executable, "-c", "raise SystemExit(3)"])


def test_a_run_on_another_host_than_asked_for_is_not_counted(demo) -> None:
    line = (
        '{"host": "cpython", "device": "CPU", "steps_per_second": 1, "compile_seconds": 1, '
        '"final_loss": 0, "test_accuracy": 1}'
    )
    result = demo.run("chromium", "WASM", [sys.executable, "-c", f"print('''{line}''')"])
    assert result == "expected chromium on WASM, it ran on cpython on CPU"


def test_the_table_has_one_row_per_host(demo, outcome) -> None:
    lines = demo.table([outcome, replace(outcome, host="chromium", device="WASM")]).splitlines()
    assert len(lines) == 4
    assert lines[2].split() == ["cpython", "CPU", "500", "0.50", "s", "0.010000", "97.00%"]


def test_a_language_that_is_not_here_has_no_row(
    demo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert demo.run_without_python(str(tmp_path / "folder"), []) == []
    assert not (tmp_path / "folder").exists()
