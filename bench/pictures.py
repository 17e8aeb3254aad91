"""A picture of a suite's kept results: `python -m bench.pictures SUITE`, in the peers' environment.

A panel for each host and number of threads: bars are speed, polygrad's is 1, and carry the measured figure.
Where there are many cases, a bar for each: our speed, the fastest peer's is 1.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import matplotlib as mpl
from matplotlib import pyplot as plt

from bench.colors import COLORS
from bench.report import Result, from_json, number

HERE = Path(__file__).parent
MANY = 20  # cases in a panel that are too many for groups of bars


def speeds(result: Result) -> dict[str, float]:
    """Library to speed as a multiple of ours."""
    ours = result.value
    assert ours is not None
    relative = {n: v / ours if result.better == "higher" else ours / v for n, v in result.peers.items()}
    return {"polygrad": 1.0, **relative}


def panel(axes: plt.Axes, title: str, results: list[Result]) -> None:
    libraries = list(dict.fromkeys(name for r in results for name in speeds(r)))
    width = 0.8 / len(libraries)
    for i, library in enumerate(libraries):
        for j, r in enumerate(results):
            if library not in speeds(r):
                continue
            figure = r.value if library == "polygrad" else r.peers[library]
            label = library if j == next(k for k, x in enumerate(results) if library in speeds(x)) else None
            bar = axes.bar(
                j + (i - len(libraries) / 2 + 0.5) * width,
                speeds(r)[library],
                width,
                color=COLORS.get(library),
                label=label,
            )
            axes.bar_label(bar, [number(figure, r.unit)], fontsize=6, rotation=90, padding=2)
    axes.set_xticks(range(len(results)), [r.case for r in results], fontsize=8)
    axes.set_title(title, fontsize=9, pad=10)
    axes.set_ylabel("speed, polygrad = 1", fontsize=8)
    axes.margins(y=0.4)  # for the figures over the bars
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))


def ratio_panel(axes: plt.Axes, title: str, results: list[Result]) -> None:
    """Bars go left where the fastest peer is ahead, right where we are, in powers of two."""
    ratios = [r.ratio for r in results]
    colors = [COLORS["polygrad"] if ratio >= 1 else COLORS["tinygrad"] for ratio in ratios]
    places = range(len(ratios))
    axes.barh(places, [math.log2(ratio) for ratio in ratios], color=colors)
    axes.axvline(0, color="black", linewidth=0.5)
    axes.set_yticks(places, [r.case for r in results], fontsize=5)
    limit = math.ceil(max(abs(math.log2(ratio)) for ratio in ratios))
    ticks = range(-limit, limit + 1)
    axes.set_xticks(ticks, [f"{2.0**tick:.3g}" for tick in ticks], fontsize=6)
    axes.margins(y=0.01)
    axes.invert_yaxis()
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("speed, fastest peer = 1", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def draw(suite: str) -> None:
    lines = (HERE / "results" / f"{suite}.jsonl").read_text().splitlines()
    shown = [r for r in map(from_json, lines) if r.value and r.peers]
    panels: dict[str, list[Result]] = {}
    seen: dict[tuple[str, str, str], int] = {}
    for r in shown:  # a case comes once for each number of threads that the peers may use
        turn = seen[r.host, r.device, r.case] = seen.get((r.host, r.device, r.case), 0) + 1
        panels.setdefault(f"{r.host}, {r.device}, {turn} thread{'s' * (turn > 1)}", []).append(r)
    mpl.rcParams.update({"svg.hashsalt": suite, "svg.fonttype": "none", "font.family": "sans-serif"})
    rows = max(1, len(panels))
    many = any(len(results) > MANY for results in panels.values())
    heights = [0.11 * len(results) + 0.8 if many else 2.8 for results in panels.values()] or [2.8]
    figure, all_axes = plt.subplots(
        rows, 1, figsize=(8, sum(heights)), height_ratios=heights, squeeze=False, layout="constrained"
    )
    for axes, (title, results) in zip(all_axes[:, 0], panels.items(), strict=False):
        (ratio_panel if many else panel)(axes, f"{suite}: {title}", results)
    (HERE / "pictures").mkdir(exist_ok=True)
    figure.savefig(HERE / "pictures" / f"{suite}.svg", metadata={"Date": None})


if __name__ == "__main__":
    draw(sys.argv[1])
