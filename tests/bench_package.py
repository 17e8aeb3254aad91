"""The package `bench`, which is beside this folder and is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOT = str(Path(__file__).resolve().parents[1])

sys.path.append(_ROOT)  # last: polygrad stays the one that is tested
import bench  # noqa: E402, F401

sys.path.remove(_ROOT)
