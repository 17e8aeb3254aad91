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
    return Goal(f"≤ {_fraction(factor)}the best peer's time", met)


def at_most_times(limit: float, peer: str) -> Goal:
    """At most `limit` times the time of one peer; met where it could not run."""
    return Goal(
        f"≤ {_fraction(1 / limit)}{peer}'s time",
        lambda f: peer not in f.peers or f.value <= limit * f.peers[peer],
    )


def share_of(limit: str, share: float) -> Goal:
    """Of a limit that is a rate."""
    words = f"≥ {share:.0%} of the {limit}".replace("%", " %")
    return Goal(words, lambda f: limit in f.limits and f.value >= share * f.limits[limit])


def share_of_peer(peer: str, share: float) -> Goal:
    """Of a peer's rate; met where it could not run."""
    words = f"≥ {share:.0%} of {peer}'s".replace("%", " %")
    return Goal(words, lambda f: peer not in f.peers or f.value >= share * f.peers[peer])


def times(limit: str, factor: float) -> Goal:
    """At least as many times a limit that is a rate."""
    words = f"≥ {factor:g}× {limit}"
    return Goal(words, lambda f: limit in f.limits and f.value >= factor * f.limits[limit])


def within(limit: str, factor: float) -> Goal:
    """At most as many times a limit that is a time."""
    words = f"≤ {factor:g}× a {limit}"
    return Goal(words, lambda f: limit in f.limits and f.value <= factor * f.limits[limit])


def microseconds(limit: float) -> Goal:
    """Of a case whose unit is milliseconds."""
    return Goal(f"≤ {limit:g} µs", lambda f: f.value <= limit / 1e3)


def milliseconds(limit: float) -> Goal:
    """Of a case whose unit is milliseconds."""
    return Goal(f"≤ {limit:g} ms", lambda f: f.value <= limit)


def _fraction(factor: float) -> str:
    """A time allowed: "1/5 of", "1.2×", or nothing."""
    if factor == 1:
        return ""
    return f"1/{factor:g} of " if factor > 1 else f"{1 / factor:g}× "
