"""The word that native kernels read at their safepoints: if it is not 0, they return."""

from __future__ import annotations

import ctypes

WORD = ctypes.c_int64(0)
ADDRESS = ctypes.addressof(WORD)
