"""A progress bar: a line that redraws itself on a terminal, elsewhere a plain line every tenth of the way."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Protocol, TypeVar

T = TypeVar("T")

_WIDTH, _REDRAW = 20, 0.1  # letters, seconds
_SYMBOLS = " ▏▎▍▌▋▊▉█"


class Named(Protocol):
    """What has lists of numbers by name, as `History` has."""

    values: dict[str, list[float]]


def progress(
    items: Iterable[T], label: str = "", total: int | None = None, history: Named | None = None
) -> Iterator[T]:
    """The items, with a progress bar on standard error: how many are done, how fast, and what was measured.

    `total`: how many there are, where `len(items)` does not say. `history`: a `History`, whose last values
    are shown.

    >>> for x in progress(range(3), "counting"):
    ...     pass
    """
    count = len(items) if total is None and isinstance(items, Sized) else total
    live = sys.stderr.isatty()
    start = shown = time.perf_counter()
    done, tenth = 0, 0
    for item in items:
        yield item
        done += 1
        now = time.perf_counter()
        reached = 10 * done // count if count else done.bit_length()
        if done == count or (now - shown >= _REDRAW if live else reached > tenth):
            shown, tenth = now, reached
            _draw(_line(label, done, count, now - start, history), live, done == count)
    if done != count and done:
        _draw(_line(label, done, count, time.perf_counter() - start, history), live, True)


def _draw(line: str, live: bool, last: bool) -> None:
    print(f"\r{line}" if live else line, end="" if live and not last else "\n", file=sys.stderr, flush=True)


def _line(label: str, done: int, total: int | None, seconds: float, history: Named | None) -> str:
    rate = done / seconds if seconds else 0.0
    facts = [f"{seconds:.1f}s", f"{rate:.0f} it/s" if rate >= 10 else f"{rate:.2g} it/s"]
    if history is not None:
        facts += [f"{name} {values[-1]:.4g}" for name, values in history.values.items() if values]
    of = f"{done}/{total}" if total else str(done)
    bar = f"|{_bar(done / total)}| " if total else ""
    return f"{label} {bar}{of} [{', '.join(facts)}]".strip()


def _bar(fraction: float) -> str:
    whole, eighths = divmod(round(8 * _WIDTH * min(fraction, 1.0)), 8)
    return ("█" * whole + (_SYMBOLS[eighths] if eighths else "")).ljust(_WIDTH)
