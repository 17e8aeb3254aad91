"""What is kept of a run: lines and a table are there, whether or not a picture can be drawn."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import bench_package  # noqa: F401
import pytest

from bench import report, results

ROW = report.Result("norms", "softmax", "cpython", "CPU", 2.0, "ms", "lower", "-", True)


def save(monkeypatch: pytest.MonkeyPatch, folder: Path, python: str) -> None:
    """Save ROW in `folder`; `python` is the peers'."""
    page = folder / "RESULTS.md"
    page.write_text("Words.\n\n<!-- norms -->\n\nold\n\n<!-- end of norms -->\n\nMore words.\n")
    for name, value in (("PAGE", page), ("KEPT", folder / "kept"), ("ROOT", folder)):
        monkeypatch.setattr(results, name, value)
    monkeypatch.setattr(results, "peer_python", lambda: Path(python))
    results.save("norms", [ROW])


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (
            "import matplotlib_that_is_missing",
            "ModuleNotFoundError: No module named 'matplotlib_that_is_missing'",
        ),
        ("raise SystemExit(3)", "exit status 3"),
    ],
)
def test_a_run_is_kept_without_its_picture(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    source: str,
    words: str,
) -> None:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "pictures.py").write_text(source)
    save(monkeypatch, tmp_path, sys.executable)
    assert capsys.readouterr().err == f"no picture of norms: {words}\n"
    assert results.kept("norms") == [ROW]
    page = (tmp_path / "RESULTS.md").read_text()
    assert "softmax" in page and "old" not in page and page.endswith("More words.\n")


def test_a_picture_is_drawn_of_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bench").mkdir()
    script = "import pathlib, sys; pathlib.Path('drawn').write_text(sys.argv[1])"
    (tmp_path / "bench" / "pictures.py").write_text(script)
    save(monkeypatch, tmp_path, sys.executable)
    assert (tmp_path / "drawn").read_text() == "norms" and not capsys.readouterr().err


def test_rows_of_one_host_leave_those_of_the_other() -> None:
    kept = [ROW, dataclasses.replace(ROW, host="chromium", value=2.0)]
    new = dataclasses.replace(ROW, host="chromium", value=3.0)
    assert results.with_hosts_of(kept, [new]) == [ROW, new]
