"""Whether there is an adapter for device WEBGPU.

Without a GPU and without VK_DRIVER_FILES the adapter is SwiftShader, Chromium's Vulkan driver on the
processor. Debian's package `chromium` contains it, and `libvulkan1` loads it.
"""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path

import pytest

from polygrad import Device
from polygrad.errors import DeviceError

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))
from demo import vulkan_driver

for name, value in vulkan_driver().items():
    os.environ.setdefault(name, value)


@functools.cache
def missing() -> str:
    """Why there is no adapter; empty where there is one. It opens the device."""
    try:
        Device["WEBGPU"]
    except DeviceError as e:
        return str(e)
    return ""


needs_adapter = pytest.mark.needs_adapter
WEBGPU = pytest.param("WEBGPU", marks=needs_adapter)
SLOW_WEBGPU = pytest.param("WEBGPU", marks=[needs_adapter, pytest.mark.slow])
