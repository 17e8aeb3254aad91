"""What conftest.py and the script inside Pyodide share of the device suite (`tests/device`). Pyodide has
plain Python and pytest only."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from polygrad import dtypes

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
