"""Random programs over all families, with writes, views, copies, captures and gradients between the steps,
agree with torch: exactly for integers, to 2e-4 for floats, to 2e-3 for gradients (see state_programs)."""

from __future__ import annotations

import pytest
from adapter import SLOW_WEBGPU
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tensor.state_programs import Program

pytestmark = pytest.mark.usefixtures("default_device")


def run(data: st.DataObject, exact: bool, count: int) -> None:
    program = Program(lambda n: data.draw(st.integers(0, n - 1)), exact)
    try:
        program.run(count)
    finally:
        note("\n".join(program.steps))


relaxed = settings(suppress_health_check=list(HealthCheck), report_multiple_bugs=False)


@pytest.mark.parametrize("device", ["CPU", "WASM", "INTERP"])
@pytest.mark.parametrize("exact", [True, False], ids=["integers", "floats"])
@settings(relaxed, max_examples=10)
@given(data=st.data())
def test_a_few_programs_agree_with_torch(device: str, exact: bool, data: st.DataObject) -> None:
    run(data, exact, 8)


@pytest.mark.slow
@pytest.mark.parametrize("device", ["CPU", "WASM", "INTERP", SLOW_WEBGPU])
@pytest.mark.parametrize("exact", [True, False], ids=["integers", "floats"])
@relaxed
@given(data=st.data())
def test_programs_agree_with_torch(device: str, exact: bool, data: st.DataObject) -> None:
    run(data, exact, 12)
