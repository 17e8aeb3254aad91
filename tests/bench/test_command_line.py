"""`python -m bench`: options that choose rows are refused where a suite has none of these rows."""

from __future__ import annotations

import sys
from typing import Any

import bench_package  # noqa: F401
import pytest

from bench import __main__ as command
from bench.report import Result

ROW = Result("onnx", "row", "chromium", "WASM", 1.0, "ms", "lower", "-", True)


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[dict[str, Any]]:
    """What the suite onnx is asked for."""
    asked: list[dict[str, Any]] = []

    def run(quick: bool, **chosen: Any) -> list[Result]:
        asked.append(chosen)
        return [ROW]

    monkeypatch.setattr(command.onnx, "run", run)
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    command.main()
    return asked


def test_a_host_and_a_name_are_passed_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = call(monkeypatch, "onnx", "--json", "--host", "chromium", "--only", "ViT")
    assert asked == [{"only": "ViT", "host": "chromium"}]
    assert capsys.readouterr().out == f"{ROW.json()}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("matmul --host cpython", "--host: expected a suite that has all of these"),
        ("onnx --threads 1", "onnx: only, host"),
        ("models --only a", "models: host"),
        ("onnx --host pyodide-node", "--host: expected cpython or chromium for the suite onnx"),
        ("onnx --only a --save", "--save: expected no --only"),
        ("matmul --small", "--small: expected the suite distributed or gpu"),
        ("distributed --part cuda", "--part: expected the suite gpu"),
        ("distributed --small --save", "--small: expected no --save"),
    ],
)
def test_what_a_suite_has_not_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: str, words: str
) -> None:
    with pytest.raises(SystemExit):
        call(monkeypatch, *arguments.split())
    assert words in capsys.readouterr().err
