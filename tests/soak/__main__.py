"""`make soak` and `python -m soak` (in the folder `tests`): random programs until a time is over.

python -m soak --minutes 60 --device CPU --device WASM
python -m soak --replay build/soak/1234-CPU-gradients.json
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import time
from dataclasses import asdict
from pathlib import Path

from tqdm import tqdm

from soak.suites import SEEDS, Failure, Report, again, run_seeds

FOLDER = Path("build/soak")
PATIENCE = 900.0  # seconds for one; more is a program that does not end


def keep(f: Failure, folder: Path) -> Path:
    """Write a failure to a file of its own."""
    path = folder / f"{f.seed}-{f.device}-{f.way}.json"
    path.write_text(json.dumps(asdict(f), indent=1) + "\n")
    return path


def replay(path: Path) -> str:
    """Run the program of such a file again; how it fails, or empty."""
    return again(Failure(**json.loads(path.read_text())))


def soak(minutes: float, first: int | None, devices: tuple[str, ...], jobs: int) -> int:
    """Run seeds, from where the last run ended unless `first` says it; the number of failures."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    state_path = FOLDER / "state.json"
    state = json.loads(state_path.read_text()) if state_path.exists() else {"next": 0, "pairs": []}
    seed = state["next"] if first is None else first
    pairs, found, end = set(state["pairs"]), 0, time.monotonic() + 60 * minutes
    with (
        multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=20) as pool,
        tqdm(unit=" seeds") as bar,
    ):
        waiting: list[tuple[int, multiprocessing.pool.AsyncResult[Report]]] = []
        while waiting or time.monotonic() < end:
            while len(waiting) < jobs and time.monotonic() < end:
                waiting.append((seed, pool.apply_async(run_seeds, (seed, devices))))
                seed += SEEDS
            number, result = waiting.pop(0)
            try:
                new, failures = result.get(PATIENCE)
            except multiprocessing.TimeoutError:
                bar.write(f"seeds {number} to {number + SEEDS - 1}: not done after {PATIENCE:.0f} s")
                return found + 1
            pairs |= new
            found += len(failures)
            for f in failures:
                bar.write(f"{keep(f, FOLDER)}: {f.message.splitlines()[0]}")
            state_path.write_text(json.dumps({"next": number + SEEDS, "pairs": sorted(pairs)}))
            bar.update(SEEDS)
            bar.set_postfix({"seed": number, "pairs of operations": len(pairs), "failures": found})
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, help="the first seed (where the last run ended)")
    parser.add_argument("--device", action="append", help="several times for several (CPU, WASM, CC)")
    parser.add_argument("--jobs", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--replay", type=Path, metavar="FILE", help="a failure that was kept")
    options = parser.parse_args()
    if options.replay:
        message = replay(options.replay)
        sys.stdout.write(f"{message or 'right'}\n")
        return bool(message)
    devices = tuple(options.device or ("CPU", "WASM", "CC"))
    return bool(soak(options.minutes, options.first, devices, options.jobs))


if __name__ == "__main__":
    sys.exit(main())
