"""The picture of the README: times in a page with each library, from kept results. `python -m bench.overview`
draws it.

The longest bar of a panel is as wide as the panel, and each has its measured figure. The first visit, where
polygrad is behind, is among the panels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bench.colors import COLORS
from bench.report import Result, number
from bench.results import ROOT, kept
from polygrad.pictures.svg import INK, MUTED, document, element, text

PATH = ROOT / "docs" / "images" / "speed.svg"


@dataclass(frozen=True)
class Panel:
    """A case of a suite that was measured in Chromium with this many threads, and what a reader calls it."""

    title: str
    suite: str
    case: str
    threads: int = 2


PANELS = (
    Panel("Training step, small perceptron", "train", "mlp step"),
    Panel("Training step, convolutional network", "conv", "convnet step"),
    Panel("Transformer block, forward", "attention", "block forward"),
    Panel("Transformer block, with gradients", "attention", "block backward"),
    Panel("A token of a small GPT-2, 8-bit weights", "models", "GPT-2 6×512 Q8_0: a token"),
    Panel("32 sentences to vectors, MiniLM", "models", "MiniLM F32: 32 sentences of 64 tokens"),
    Panel("First visit to first result", "startup", "first visit", threads=1),
    Panel("First visit, exported model", "startup", "first visit, exported model", threads=1),
)

_COLUMNS, _WIDTH, _GAP, _TOP = 2, 400, 24, 44
_NAME, _FIGURE = 112, 58  # widths of a library's name and of a figure
_BAR, _HEAD = 15, 26  # heights of a bar and of a title


def result(panel: Panel) -> Result:
    """The kept result of a panel. Raises LookupError where there is none."""
    for r in kept(panel.suite):
        if (r.case, r.host, r.threads) == (panel.case, "chromium", panel.threads) and r.value and r.peers:
            return r
    raise LookupError(f"expected a result of {panel.suite}: {panel.case} in a page, got none")


def bars(panel: Panel, x: float, y: float) -> list[str]:
    """The panel, with its upper left corner at (x, y)."""
    r = result(panel)
    assert r.value is not None
    times = {"polygrad": r.value, **dict(sorted(r.peers.items()))}
    longest = max(times.values())
    parts = [text(x, y + 12, panel.title, font_weight="bold", font_size=12)]
    for i, (name, value) in enumerate(times.items()):
        top = y + _HEAD + i * _BAR
        width = max(2.0, (_WIDTH - _NAME - _FIGURE) * value / longest)
        weight = {"font_weight": "bold"} if name == "polygrad" else {}
        parts.append(text(x + _NAME - 8, top + 9, name, text_anchor="end", **weight))
        parts.append(
            element("rect", x=x + _NAME, y=top, width=width, height=_BAR - 4, rx=2, fill=COLORS[name])
        )
        parts.append(text(x + _NAME + width + 5, top + 9, number(value, r.unit), fill=INK, **weight))
    return parts


def picture() -> str:
    """All panels as SVG text."""
    heading = "Time in a page (Chromium, WebAssembly). Shorter is better; each panel has a scale of its own."
    parts = [text(_GAP, 26, heading, fill=MUTED)]
    y = _TOP
    for start in range(0, len(PANELS), _COLUMNS):
        row = PANELS[start : start + _COLUMNS]
        for column, panel in enumerate(row):
            parts += bars(panel, _GAP + column * (_WIDTH + _GAP), y)
        y += _HEAD + max(1 + len(result(panel).peers) for panel in row) * _BAR + 14
    return document(_COLUMNS * (_WIDTH + _GAP) + _GAP, y, parts) + "\n"


def draw(path: Path = PATH) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    draw()
