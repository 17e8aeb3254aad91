"""The kinds of figures that suites ask for, in words and as tests."""

from __future__ import annotations

from bench.contest import Figures, Goal


def times_best_peer(factor: float, better: str = "higher") -> Goal:
    """At least `factor` times as fast as the fastest peer that ran; met where none could."""

    def met(f: Figures) -> bool:
        best = f.best(better)
        return best is None or (f.value >= factor * best if better == "higher" else f.value <= best / factor)

    if better == "higher":
        return Goal(f"≥ {factor:g}× the best peer", met)
    return Goal(f"≤ {_fraction(factor)} the best peer's time", met)


def at_most_times(limit: float, peer: str) -> Goal:
    """At most `limit` times the time of one peer; met where it could not run."""
    return Goal(
        f"≤ {_fraction(1 / limit)} {peer}'s time",
        lambda f: peer not in f.peers or f.value <= limit * f.peers[peer],
    )


def share_of_peak(share: float) -> Goal:
    """Of the multiply-add peak that the run has measured."""
    words = f"≥ {share:.0%} of the peak".replace("%", " %")
    return Goal(words, lambda f: f.value >= share * f.earlier["multiply-add peak", 1])


def times_one_thread(factor: float, case: str) -> Goal:
    def met(f: Figures) -> bool:
        one = f.earlier.get((case, 1))
        return one is not None and f.value >= factor * one

    return Goal(f"≥ {factor:g}× one thread", met)


def _fraction(factor: float) -> str:
    """A time allowed: 1/5 of, or 1.2 times."""
    if factor == 1:
        return ""
    return f"1/{factor:g} of" if factor > 1 else f"{1 / factor:g}×"
