"""What one call does, over time: its launches, one below the other, each a bar from where it starts, as long
as it takes; or its Programs and exchanges."""

from __future__ import annotations

import re

from polygrad.engine.explain import work
from polygrad.engine.profile import Profile
from polygrad.engine.report import count_of, time_of
from polygrad.engine.trace import Trace
from polygrad.pictures.spans import spans
from polygrad.pictures.svg import CHARACTER, GRID, LINE, MUTED, SERIES, document, element, text, title

_WIDTH, _TOP, _ROW, _MARGIN, _RIGHT = 860, 44, 18, 14, 270


def timeline(profile: Profile | Trace) -> str:
    """The launches of a profile in order, with their times, operations and memory, or the Programs and
    exchanges of a trace over time, as SVG text.

        timeline(profile(lambda: step.run(x, y)))
        timeline(trace(lambda: step.run(x, y)))

    The longest launch is as dark as it gets. Times of a profile are means over its rounds.
    """
    return spans(profile) if isinstance(profile, Trace) else _launches(profile)


def _launches(profile: Profile) -> str:
    launches = profile.launches
    names = [re.sub(r"_[0-9a-f]{16}$", "", x.origin.kernel.name) for x in launches]
    left = _MARGIN + max(map(len, names), default=0) * CHARACTER + 12
    total = sum(x.seconds for x in launches) or 1.0
    longest = max((x.seconds for x in launches), default=1.0) or 1.0
    across = _WIDTH - left - _RIGHT
    head = f"{len(launches)} launches, {time_of(total)} in kernels, {time_of(profile.seconds)} a call"
    parts = [text(_MARGIN, 22, head, font_weight="bold", font_size=13)]
    start = 0.0
    for i, (launch, name) in enumerate(zip(launches, names, strict=True)):
        y = _TOP + i * _ROW
        todo = work(launch.origin)
        rate = f"{count_of(todo.flops)}FLOP {count_of(todo.nbytes)}B"
        bar = element(
            "rect",
            title(f"{i + 1}. {launch.origin.kernel.name}: {time_of(launch.seconds)}, {rate}"),
            x=left + across * start / total,
            y=y + 2,
            width=max(across * launch.seconds / total, 1.0),
            height=_ROW - 5,
            rx=2,
            fill=SERIES[0],
            fill_opacity=0.4 + 0.6 * launch.seconds / longest,
        )
        parts += [
            element("line", x1=left, x2=left + across, y1=y + _ROW, y2=y + _ROW, stroke=GRID),
            text(_MARGIN, y + LINE - 2, name),
            bar,
            text(left + across + 76, y + LINE - 2, time_of(launch.seconds), text_anchor="end"),
            text(left + across + 90, y + LINE - 2, rate, fill=MUTED),
        ]
        start += launch.seconds
    return document(_WIDTH, _TOP + len(launches) * _ROW + _MARGIN, parts)
