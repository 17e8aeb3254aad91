"""The multiply-adds that a device's peak is measured with."""

from __future__ import annotations

import numpy as np
import pytest
from c_compiler import CC

from polygrad.dtype import dtypes
from polygrad.engine import peak_flops as peak
from polygrad.engine.devices import Device
from polygrad.engine.peak_flops import MULTIPLY_ADDS, multiply_adds, peak_flops
from polygrad.errors import DeviceError
from polygrad.runtime.buffer import Buffer


@pytest.mark.parametrize("name", ["CPU", "WASM", CC])
def test_every_multiply_add_is_made_whoever_makes_it_exactly(name: str) -> None:
    program = multiply_adds(name)
    lanes = max(Device.backend(name).target.simd_bytes // 4, 1)
    buffer = Buffer(Device[name], program.buffers[0].size, dtypes.float32)
    data = np.zeros(buffer.size, np.float32)
    factors = data[:lanes] = 0.25 * np.arange(1, lanes + 1)
    buffer.write(memoryview(data.tobytes()))
    Device[name].load(program).run([buffer.handle], None, {})
    got = np.frombuffer(buffer.read(), np.float32).reshape(-1, lanes)[1:].sum(axis=0)
    np.testing.assert_allclose(got, factors * factors * MULTIPLY_ADDS, rtol=1e-2)


@pytest.mark.parametrize("name", ["CPU", "WASM", CC])
def test_a_device_has_one_peak(name: str) -> None:
    assert peak_flops(name) > 1e6
    assert peak_flops(name) == peak_flops(name)


def test_a_machine_too_busy_to_run_twice_in_time_has_a_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peak, "_WARM_SECONDS", 0.0)
    monkeypatch.setattr(peak, "_SECONDS", 0.0)
    assert 1e6 < peak_flops.__wrapped__("CPU") < 1e15


def test_a_device_without_instructions_has_none() -> None:
    with pytest.raises(DeviceError, match=r"INTERP runs no instructions .* use CPU or WASM"):
        peak_flops("INTERP")
