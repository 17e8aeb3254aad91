"""Whether this machine has what device CC needs."""

from __future__ import annotations

import pytest

from polygrad.errors import DeviceError
from polygrad.renderer.cstyle.c_compile import c_compiler


def has_c_compiler() -> bool:
    try:
        c_compiler()
    except DeviceError:
        return False
    return True


needs_c_compiler = pytest.mark.skipif(not has_c_compiler(), reason="there is no C compiler")
# A test's device; the slow one where there are many kernels: each takes a compiler a twentieth of a second.
CC = pytest.param("CC", marks=needs_c_compiler)
SLOW_CC = pytest.param("CC", marks=[needs_c_compiler, pytest.mark.slow])
