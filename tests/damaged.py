"""What readers of files say of damaged ones: recorded in `damaged.json`, by reader and damage.

`UPDATE=1 pytest ...` records the messages anew; read the difference.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polygrad.errors import ArgumentError

_FILE = Path(__file__).with_name("damaged.json")


def check_refused(reader: str, damage: str, read: Callable[[], Any], varying: str = "0x[0-9a-f]{6,}") -> None:
    """`read()` raises ArgumentError with the recorded message. `varying`: what differs between processes."""
    with pytest.raises(ArgumentError) as error:
        read()
    message = re.sub(varying, "N", str(error.value))
    recorded = json.loads(_FILE.read_text()) if _FILE.exists() else {}
    if os.environ.get("UPDATE"):
        recorded.setdefault(reader, {})[damage] = message
        _FILE.write_text(json.dumps(recorded, indent=1, sort_keys=True) + "\n")
    assert recorded[reader][damage] == message
