"""The Programs and exchanges of one call, on two lines over time."""

from __future__ import annotations

from polygrad.engine.report import time_of
from polygrad.engine.trace import EXCHANGE, PROGRAM, Trace
from polygrad.pictures.curves import round_ticks
from polygrad.pictures.svg import GRID, MUTED, SERIES, document, element, text, title

_WIDTH, _LEFT, _RIGHT, _TOP, _LANE, _BAR, _BOTTOM = 860, 90, 24, 44, 38, 26, 30
_LANES = ((PROGRAM, "Programs"), (EXCHANGE, "exchanges"))


def spans(trace: Trace) -> str:
    """A line for Programs and one for exchanges, with a bar for each from its begin to its end."""
    across = _WIDTH - _LEFT - _RIGHT
    bottom = _TOP + len(_LANES) * _LANE
    longest = trace.seconds or 1e-9

    def x_of(seconds: float) -> float:
        return _LEFT + across * seconds / longest

    parts = [text(14, 22, trace.headline, font_weight="bold", font_size=13)]
    for tick in round_ticks(0.0, longest):
        if tick <= longest:
            x = x_of(tick)
            parts.append(element("line", x1=x, x2=x, y1=_TOP - 6, y2=bottom, stroke=GRID))
            parts.append(text(x, bottom + 16, time_of(tick), fill=MUTED, text_anchor="middle"))
    for lane, (kind, name) in enumerate(_LANES):
        y = _TOP + lane * _LANE
        parts.append(text(14, y + _BAR / 2 + 4, name))
        for span in trace.of_kind(kind):
            parts.append(
                element(
                    "rect",
                    title(f"{span.label}: {time_of(span.seconds)} from {time_of(span.start)} on"),
                    x=x_of(span.start),
                    y=y,
                    width=max(across * span.seconds / longest, 1.0),
                    height=_BAR,
                    rx=2,
                    fill=SERIES[lane],
                    fill_opacity=0.85,
                )
            )
    return document(_WIDTH, bottom + _BOTTOM, parts)
