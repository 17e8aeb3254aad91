"""Where a captured step's time goes: `profile.py KIND [SIZE=N ...]`, a line for each kernel, slowest first.

Runs under CPython (`DEVICE=CPU python bench/profile.py mlp`) and in a page (`node web/run-in-chromium.mjs
--files bench/libraries/shapes.py,bench/libraries/with_tensor.py --env DEVICE=WASM bench/profile.py mlp`).
`polygrad/engine/profile.py` does the work.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "libraries"))

import with_tensor

import polygrad
import polygrad.nn
from polygrad.engine.explain import opts_of, work
from polygrad.engine.profile import ProfiledLaunch, profile

SECONDS = 1.0
MOST_LINES = 20


class Maker(with_tensor.Maker):
    """Makes programs of random numbers."""

    def __init__(self) -> None:
        super().__init__(polygrad, lambda seed, count: polygrad.Tensor.rand(count) * 2 - 1)

    def tensor(self, seed: int, *shape: int, scale: float = 1.0) -> Any:
        return polygrad.Tensor.uniform(*shape, low=-scale, high=scale).realize()


def show(kind: str, sizes: dict[str, int]) -> None:
    program = Maker().make(kind, sizes)
    found = profile(program.step, SECONDS)
    alone = sum(launch.seconds for launch in found.launches)
    print(
        f"{kind} {sizes or ''}: {found.seconds * 1e3:.3f} ms; {len(found.launches)} launches, "
        f"alone {alone * 1e3:.3f} ms"
    )
    spent: Counter[str] = Counter()
    launches: dict[str, list[ProfiledLaunch]] = {}
    for launch in found.launches:
        name = launch.origin.kernel.name
        spent[name] += launch.seconds
        launches.setdefault(name, []).append(launch)
    for name, seconds in spent.most_common(MOST_LINES):
        same = launches[name]
        speed = work(same[0].origin).flops * len(same) / seconds / 1e9
        line = f"{seconds * 1e3:9.3f} ms {seconds / alone:6.1%} {speed:7.1f} GFLOP/s {len(same):3d}x  {name}"
        print(f"  {line}  {', '.join(map(str, opts_of(same[0].origin)))}")


if __name__ == "__main__":
    show(sys.argv[1], {k: int(v) for k, v in (a.split("=") for a in sys.argv[2:])})
