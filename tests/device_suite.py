"""What conftest.py and the script inside Pyodide share of the device suite (`tests/device`). Pyodide has
plain Python and pytest only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from polygrad import dtypes
from polygrad.engine.cache import DiskCache

NO_FLOAT64 = ("WEBGPU", "METAL", "EMULATED_MSL", "EMULATED_METAL")
# The modules that are quick on every device: elsewhere, most of the suite is left to `make test-all`.
CORE = ("test_dtypes", "test_elementwise", "test_errors", "test_program", "test_reduce")
# The devices of a test that takes long on each, and has no more to say on the second.
CPU_FIRST = ("CPU", *(pytest.param(device, marks=pytest.mark.slow) for device in ("WASM", "INTERP")))


def skip_float64(items: Iterable[pytest.Item]) -> None:
    """Tests of float64 are none of a device that does not compute with it."""
    for item in items:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        if parameters.get("device") in NO_FLOAT64 and dtypes.float64 in parameters.values():
            item.add_marker(pytest.mark.skip(reason=f"{parameters['device']} has no float64"))


@pytest.fixture
def cold_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """The cache on disk is empty: nothing is found that earlier runs compiled. For tests that count what is
    compiled, or look at what it leaves in memory."""
    monkeypatch.setenv("POLYGRAD_CACHE", str(tmp_path / "cache"))
    DiskCache.default.cache_clear()
    yield
    DiskCache.default.cache_clear()
