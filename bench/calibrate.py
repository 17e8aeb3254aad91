"""How far the cost model (polygrad/codegen/opts/cost.py) is from this machine: `python bench/calibrate.py`.

Measures what its numbers stand for, with kernels whose Opts are given by hand, on one thread but for the
last:

- what operations cost, in multiply-adds of one SIMD value;
- register tiles of a product: the speed of each, beside what the model says, and what its choice loses;
- a load of one lane, where lanes are not neighbours;
- from how many operations on threads pay.

Prints a table and, with `--json`, the same as one JSON object. Run it on a quiet machine.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))

from polygrad import Device, Tensor, TinyJit, set_num_threads
from polygrad.codegen.opts import cost
from polygrad.engine.peak_flops import peak_flops
from polygrad.uop.ops import Ops

ROUNDS, SECONDS = 5, 0.05
ELEMENTS = 4096  # of an array that is in the nearest cache
TERMS = 8  # applications of an operation in a kernel
PRODUCT = 384
TILES = [(rows, vectors) for vectors in (1, 2, 3, 4) for rows in (1, 2, 4, 6, 8, 12, 14)]

OPERATIONS: dict[Ops, Callable[[Tensor], Tensor]] = {
    Ops.EXP2: lambda x: x.exp2(),
    Ops.LOG2: lambda x: x.log2(),
    Ops.SIN: lambda x: x.sin(),
    Ops.POW: lambda x: x**x,
    Ops.RECIPROCAL: lambda x: x.reciprocal(),
    Ops.SQRT: lambda x: x.sqrt(),
}


class Figure(NamedTuple):
    """One number of the model and what was measured instead."""

    name: str
    model: float
    measured: float

    @property
    def off(self) -> float:
        """How many times the measured number is the model's."""
        return self.measured / self.model


def seconds(compute: Callable[[], Tensor]) -> float:
    """The least time of one call."""
    step = TinyJit(lambda: compute().realize())
    for _ in range(3):
        step()
    best = float("inf")
    for _ in range(ROUNDS):
        times, started = 0, time.perf_counter()
        while (spent := time.perf_counter() - started) < SECONDS:
            step()
            times += 1
        best = min(best, spent / times)
    return best


def uniform(*shape: int) -> Tensor:
    return Tensor.uniform(*shape, low=0.5, high=1.5).realize()


def operations(unit: float, lanes: int) -> list[Figure]:
    """What one value costs beside a multiply-add; `unit`: seconds of one SIMD multiply-add."""
    x = uniform(ELEMENTS)
    opts = f"SIMD r0 {lanes} 1"

    def total(f: Callable[[Tensor], Tensor]) -> float:
        return seconds(lambda: sum(f(x + i / TERMS) for i in range(1, TERMS + 1)).contiguous(opts=opts))

    without = total(lambda x: x)
    vectors = TERMS * ELEMENTS / lanes
    return [
        Figure(op.name, cost.run_cost(op), max(total(f) - without, 0.0) / vectors / unit)
        for op, f in OPERATIONS.items()
    ]


def register_tiles(device: str) -> tuple[list[Figure], str]:
    """The speed of each tile beside the best one's, and a line that says what the model's choice loses."""
    target = Device.backend(device).target
    lanes, n = cost.native_lanes(target), PRODUCT
    a, b = uniform(n, n), uniform(n, n)
    fits = [t for t in TILES if t[0] * t[1] + t[1] + 1 <= target.registers]

    def model(tile: tuple[int, int]) -> float:
        rows, vectors = tile
        return cost.tile_speed(rows * vectors, vectors, rows, target)

    chosen = max(itertools.product(range(1, cost.MAX_ROWS + 1), range(1, cost.VECTORS + 1)), key=model)
    measured = {}
    for rows, vectors in dict.fromkeys([*fits, chosen]):
        upcast = f", UPCAST r0 {rows}" if rows > 1 else ""
        opts = f"SIMD r1 {lanes} {vectors}{upcast}"
        measured[rows, vectors] = 1 / seconds(lambda opts=opts: (a @ b).contiguous(opts=opts))
    best, most = max(measured.values()), model(chosen)
    figures = [Figure(f"tile {r} x {v}", model((r, v)) / most, measured[r, v] / best) for r, v in measured]
    fastest = max(measured, key=measured.__getitem__)
    loses = f"{1 - measured[chosen] / best:.0%}"
    return figures, f"chosen {chosen[0]} x {chosen[1]}, fastest {fastest[0]} x {fastest[1]}: {loses} lost"


def scattered_load(unit: float, lanes: int) -> Figure:
    """A load of one lane, in multiply-adds; a column of vectors is read across its rows."""
    x = uniform(ELEMENTS // 64, 64)
    across = seconds(lambda: x.T.contiguous(opts=f"SIMD r1 {lanes} 1"))
    along = seconds(lambda: (x + 1).contiguous(opts=f"MERGE r0 r1, SIMD r0 {lanes} 1"))
    return Figure("SCATTERED_LOAD", cost.SCATTERED_LOAD, max(across - along, 0.0) / ELEMENTS / unit)


def parallel(device: str, lanes: int) -> Figure:
    """From how many operations on a kernel is faster on all threads: a sum of squares of each row."""
    threads = Device.backend(device).target.threads
    set_num_threads(threads)
    columns, rows = 64 * lanes, 4 * threads
    while True:
        x = uniform(rows, columns)
        one = f"SIMD r1 {lanes} 4"
        both = (one, f"{one}, PARALLEL r0 {threads}")
        alone, together = [seconds(lambda x=x, o=o: (x * x).sum(1).contiguous(opts=o)) for o in both]
        if together < alone or rows > 1 << 16:
            set_num_threads(1)
            return Figure("PARALLEL", cost.PARALLEL, rows * columns / lanes * 3)  # load, square, add
        rows *= 2


def calibrate(device: str) -> tuple[list[Figure], str]:
    """All figures of a device, and what is to be said of register tiles."""
    Device.DEFAULT = device
    set_num_threads(1)
    target = Device.backend(device).target
    lanes = cost.native_lanes(target)
    unit = 2 * lanes / peak_flops(device)
    tiles, note = register_tiles(device)
    figures = [*operations(unit, lanes), scattered_load(unit, lanes), *tiles]
    if target.threads > 1:
        figures.append(parallel(device, lanes))
    return figures, note


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="CPU")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    args = parser.parse_args()
    figures, note = calibrate(args.device)
    target = Device.backend(args.device).target
    peak = peak_flops(args.device) / 1e9
    if args.json:
        rows = [f._asdict() for f in figures]
        print(json.dumps({"target": target.key, "peak_gflops": peak, "figures": rows, "tiles": note}))
        return
    print(f"{target.key}: {peak:.0f} GFLOP/s, caches {target.cache[0] >> 10} and {target.cache[1] >> 10} KiB")
    print(f"{'':<16}{'model':>10}{'measured':>10}{'off':>7}")
    for f in figures:
        print(f"{f.name:<16}{f.model:>10.3g}{f.measured:>10.3g}{f.off:>7.2f}")
    print(note)


if __name__ == "__main__":
    main()
