"""What a benchmark reports: one record per case, as a JSON line or a table row. Knows no suite."""

from __future__ import annotations

import json
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Result:
    """Medians of one case. `value` is None when ours could not run (`skipped` says why)."""

    suite: str
    case: str
    host: str
    device: str
    value: float | None
    unit: str
    better: str  # "lower" or "higher"
    target: str
    met: bool
    threads: int = 1
    peers: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def ratio(self) -> float | None:
        """Ours against the best peer of the same run; above 1 is ours ahead."""
        if self.value is None or not self.peers:
            return None
        if self.better == "lower":
            return min(self.peers.values()) / self.value if self.value else None
        return self.value / max(self.peers.values())

    def json(self) -> str:
        names = ("suite", "case", "host", "device", "threads", "value", "unit", "better", "peers", "skipped")
        record = {name: getattr(self, name) for name in names}
        return json.dumps(record | {"ratio": self.ratio, "target": self.target, "met": self.met})


def from_json(line: str) -> Result:
    record = json.loads(line)
    del record["ratio"]
    return Result(**record)


HEADER = ("case", "host", "device", "threads", "polygrad", "peers", "ratio", "target", "met")


def table(results: list[Result]) -> str:
    """The results as a Markdown table, with the reasons of what was skipped below it."""
    rows = [HEADER, tuple("---" for _ in HEADER)]
    for r in results:
        peers = ", ".join(f"{name} {number(v, r.unit)}" for name, v in r.peers.items()) or "-"
        ratio = "-" if r.ratio is None else f"{r.ratio:.2f}"
        value = number(r.value, r.unit)
        met = "yes" if r.met else "no"
        rows.append((r.case, r.host, r.device, str(r.threads), value, peers, ratio, r.target, met))
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADER))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |" for row in rows]
    notes = {f"{name} ({r.host}): {why}" for r in results for name, why in r.skipped.items()}
    return "\n".join(lines + [f"skipped: {note}" for note in sorted(notes)])


def number(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "×":
        return f"{value:.2f}×"
    if unit == "kernels":
        return f"{value:.0f}"
    return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
