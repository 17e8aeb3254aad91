"""The fixture of all tests of captured functions."""

from __future__ import annotations

import pytest

from polygrad import Device, Tensor


@pytest.fixture(autouse=True)
def _default(request):
    """`device` is the default device of a test that takes it."""
    old = Device.DEFAULT
    if "device" in request.fixturenames:
        Device.DEFAULT = request.getfixturevalue("device")
    Tensor.manual_seed(0)
    yield
    Device.DEFAULT = old
