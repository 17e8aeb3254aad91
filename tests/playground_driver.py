"""What a driver of the playground in `tests/browser` saw."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from javascript_hosts import ROOT


def seen_by(driver: str, folder: Path) -> Any:
    """Run `tests/browser/DRIVER` in Node, which writes screenshots to `folder` and prints what it saw."""
    command = ["node", str(ROOT / "tests" / "browser" / driver), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
