"""What is kept of a run: `bench/results/SUITE.jsonl`, a picture, and the suite's table in `bench/RESULTS.md`.

`python -m bench.results` makes pictures and tables anew from the kept lines. A table stands between the lines
`<!-- SUITE -->` and `<!-- end of SUITE -->`; the words around it are written by hand.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from bench import report
from bench.hosts import ROOT, Unavailable, peer_python
from bench.report import Result

PAGE = ROOT / "bench" / "RESULTS.md"
KEPT = ROOT / "bench" / "results"


def save(suite: str, results: list[Result]) -> None:
    """Keep a run, and show it."""
    KEPT.mkdir(exist_ok=True)
    kept_in(suite).write_text("".join(f"{r.json()}\n" for r in results))
    publish(suite)


def kept(suite: str) -> list[Result]:
    """The results that are kept of a suite."""
    path = kept_in(suite)
    return list(map(report.from_json, path.read_text().splitlines())) if path.exists() else []


def with_hosts_of(kept: list[Result], found: list[Result]) -> list[Result]:
    """The rows of an earlier run, with those of one host in the places of what was measured there."""
    hosts = {result.host for result in found}
    return [*(result for result in kept if result.host not in hosts), *found]


def publish(suite: str) -> None:
    """The picture and the table of what is kept."""
    PAGE.write_text(with_table(PAGE.read_text(), suite, report.table(kept(suite))))
    try:
        draw(suite)
    except Unavailable as reason:
        print(f"no picture of {suite}: {reason}", file=sys.stderr)


def draw(suite: str) -> None:
    """The picture of what is kept, in the peers' environment. Raises Unavailable with the last words of what
    draws, as where that environment has no matplotlib."""
    command = [str(peer_python()), "-m", "bench.pictures", suite]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Unavailable((done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1])


def with_table(page: str, suite: str, table: str) -> str:
    """`page` with the suite's table replaced."""
    start, end = f"<!-- {suite} -->", f"<!-- end of {suite} -->"
    if start not in page or end not in page:
        raise ValueError(f"RESULTS.md: expected a line {start} and a line {end}")
    pattern = f"{re.escape(start)}.*{re.escape(end)}"
    lines, *notes = re.split(r"\n(?=skipped: )", table)
    text = "\n\n".join([lines, "\n".join(f"- {note}" for note in notes)] if notes else [lines])
    return re.sub(pattern, lambda _: f"{start}\n\n{text}\n\n{end}", page, flags=re.DOTALL)


def kept_in(suite: str) -> Path:
    return KEPT / f"{suite}.jsonl"


if __name__ == "__main__":
    for path in sorted(KEPT.glob("*.jsonl")):
        publish(path.stem)
