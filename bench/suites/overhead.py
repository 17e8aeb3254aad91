"""What an operation costs when it is called from JavaScript, beside the same in Python, in Node.

Nothing is computed: the operations only make Tensors, which are disposed of. The quickest of many rounds.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

from bench.hosts import NODE, ROOT, TIMEOUT, build_javascript
from bench.report import Result

ROUNDS, QUICK_ROUNDS = 30, 3
LIMIT = 15.0  # microseconds more than in Python


def run(quick: bool) -> Iterator[Result]:
    """Microseconds of a call; its peer is the same call in Python."""
    build_javascript()
    command = ["node", str(ROOT / "bench" / "overhead.mjs"), str(QUICK_ROUNDS if quick else ROUNDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, cwd=ROOT)
    if done.returncode:
        yield result("all", None, {}, skipped={"polygrad": done.stderr.strip()[-200:]})
        return
    for operation, micros in json.loads(done.stdout).items():
        yield result(operation, micros["javascript"], {"python": micros["python"]})


def result(case: str, value: float | None, peers: dict[str, float], **rest: Any) -> Result:
    return Result(
        suite="overhead",
        case=case,
        host=NODE,
        device="WASM",
        value=value,
        unit="µs",
        better="lower",
        target=f"≤ {LIMIT:g} µs more than python",
        met=value is not None and value - peers["python"] <= LIMIT,
        peers=peers,
        **rest,
    )
