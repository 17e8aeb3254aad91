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


def save(suite: str, results: list[Result], *, partial: bool = False) -> None:
    """Keep a run, and show it. Of a partial one, the rows of other hosts and numbers of threads stay."""
    KEPT.mkdir(exist_ok=True)
    path, run = kept_in(suite), {(r.host, r.threads) for r in results}
    lines = path.read_text().splitlines() if partial and path.exists() else []
    older = [r for r in map(report.from_json, lines) if (r.host, r.threads) not in run]
    path.write_text("".join(f"{r.json()}\n" for r in (*older, *results)))
    publish(suite)


def publish(suite: str) -> None:
    """The picture and the table of what is kept."""
    lines = kept_in(suite).read_text().splitlines()
    table = report.table([report.from_json(line) for line in lines])
    PAGE.write_text(with_table(PAGE.read_text(), suite, table))
    try:
        command = [str(peer_python()), "-m", "bench.pictures", suite]
        subprocess.run(command, cwd=ROOT, check=True, stdout=sys.stderr)
    except Unavailable as reason:
        print(f"no picture of {suite}: {reason}", file=sys.stderr)


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
