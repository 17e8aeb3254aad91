"""Compares what JavaScript computes, which comes as JSON, with what is wanted."""

from __future__ import annotations

from typing import Any

import pytest


def compare(got: Any, wanted: Any, where: str) -> None:
    """Equal, and numbers within 1e-4. Of objects, what is wanted; more may be there."""
    if isinstance(wanted, dict):
        assert isinstance(got, dict), f"{where}: {got}"
        for key, value in wanted.items():
            compare(got[key], value, f"{where}.{key}")
    elif isinstance(wanted, (list, tuple)):
        assert isinstance(got, list) and len(got) == len(wanted), f"{where}: {got} is not {wanted}"
        for i, value in enumerate(wanted):
            compare(got[i], value, f"{where}[{i}]")
    elif isinstance(wanted, float) and wanted in (float("inf"), float("-inf")):
        assert got is None, where  # as JSON writes it
    elif isinstance(wanted, (int, float)) and not isinstance(wanted, bool):
        assert got == pytest.approx(wanted, rel=1e-4, abs=1e-5), where
    else:
        assert got == wanted, where


def is_error(found: Any, name: str, *texts: str) -> bool:
    """Whether a case threw an Error of a name, with texts in its message."""
    return bool(found["isError"] and found["name"] == name and all(t in found["message"] for t in texts))
