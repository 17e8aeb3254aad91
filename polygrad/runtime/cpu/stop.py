"""The word that native kernels look at, at their safepoints: not 0, and they return."""

from __future__ import annotations

import ctypes

WORD = ctypes.c_int64(0)
ADDRESS = ctypes.addressof(WORD)
