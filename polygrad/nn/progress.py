"""A progress bar: one line that is redrawn on a terminal; elsewhere a plain line after every tenth."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Protocol, TypeVar

T = TypeVar("T")

_WIDTH, _REDRAW = 20, 0.1  # letters, seconds
_SYMBOLS = " ▏▎▍▌▋▊▉█"


class Named(Protocol):
    """An object with lists of numbers by name, as `History`."""

    @property
    def values(self) -> dict[str, list[float]]: ...


def progress(
    items: Iterable[T], label: str = "", total: int | None = None, history: Named | None = None
) -> Iterator[T]:
    """Iterate over the items with a progress bar on standard error: count, speed, and measured values.

    `total`: the number of items, if they have no `len`. `history`: a `History`, whose last values are shown.

    >>> for x in progress(range(3), "counting"):
    ...     pass
    """
    count = len(items) if total is None and isinstance(items, Sized) else total
    live = sys.stderr.isatty()
    start = shown = time.perf_counter()
    finished, tenth = 0, 0
    for item in items:
        yield item
        finished += 1
        now = time.perf_counter()
        reached = 10 * finished // count if count else finished.bit_length()
        if finished == count or (now - shown >= _REDRAW if live else reached > tenth):
            shown, tenth = now, reached
            _draw(_line(label, finished, count, now - start, history), live, finished == count)
    if finished != count and finished:
        _draw(_line(label, finished, count, time.perf_counter() - start, history), live, True)


def _draw(line: str, live: bool, last: bool) -> None:
    print(f"\r{line}" if live else line, end="" if live and not last else "\n", file=sys.stderr, flush=True)


def _line(label: str, count: int, total: int | None, seconds: float, history: Named | None) -> str:
    rate = count / seconds if seconds else 0.0
    facts = [f"{seconds:.1f}s", f"{rate:.0f} it/s" if rate >= 10 else f"{rate:.2g} it/s"]
    if history is not None:
        facts += [f"{name} {values[-1]:.4g}" for name, values in history.values.items() if values]
    of = f"{count}/{total}" if total else str(count)
    bar = f"|{_bar(count / total)}| " if total else ""
    return f"{label} {bar}{of} [{', '.join(facts)}]".strip()


def _bar(fraction: float) -> str:
    full_cells, eighths = divmod(round(8 * _WIDTH * min(fraction, 1.0)), 8)
    return ("█" * full_cells + (_SYMBOLS[eighths] if eighths else "")).ljust(_WIDTH)
