"""DEBUG: what it shows on standard error."""

from __future__ import annotations

import pytest

from polygrad import Tensor


def shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, level: int, size: int) -> str:
    """What computing something new shows."""
    x = Tensor.zeros(size).contiguous().realize()
    monkeypatch.setenv("DEBUG", str(level))
    capsys.readouterr()
    (x * size + level).realize()
    out = capsys.readouterr()
    assert not out.out  # that belongs to the program
    return out.err


def test_debug_0_is_silent(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert shown(capsys, monkeypatch, 0, 1009) == ""


@pytest.mark.usefixtures("cold_cache")
def test_debug_1_names_kernels(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(capsys, monkeypatch, 1, 1013)
    assert text.startswith("kernel e_") and text.count("\n") == 1


def test_debug_2_times_programs(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(capsys, monkeypatch, 2, 1019)
    assert "1 launches, 1 different" in text and " ms" in text


def test_debug_4_shows_passes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(capsys, monkeypatch, 4, 1021)
    assert "# after optimize" in text and "RANGE" in text


def test_debug_3_shows_opts_and_linear_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown(capsys, monkeypatch, 3, 1031)
    assert "# opts: " in text and "STORE" in text and "# after" not in text
