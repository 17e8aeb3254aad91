"""`make mutants` and `python -m mutants` (in the folder `tests`): do tests notice a small change?

python -m mutants --seed 1 --count 300
python -m mutants --language typescript --count 100
python -m mutants --again --seconds 300
python -m mutants --show

A mutant is killed by a quick test that passes without the change and fails with it, or does not end. One that
survives is for somebody to read: a test is missing, or the program is the same. Results are kept in
`build/mutants`, and a run goes on where the last one stopped. `--again` tries survivors again, `--show`
prints them.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tqdm import tqdm

from mutants.change import Change, Mutant
from mutants.languages import LANGUAGES, Language
from mutants.tree import BUILD, ROOT, make_tree


@dataclass
class Result:
    """A mutant, by its number in the sample, and what killed it: nothing where it survived."""

    number: int
    path: str
    change: Change
    killed: str
    seconds: float


def read(path: Path) -> list[Result]:
    """The results of a file; the last one of each mutant counts."""
    lines = path.read_text().splitlines() if path.exists() else []
    results = [Result(**{**x, "change": Change(**x["change"])}) for x in map(json.loads, lines)]
    return sorted({r.number: r for r in results}.values(), key=lambda r: r.number)


def sample(language: Language, seed: int, count: int) -> list[Mutant]:
    """Changes of a language's sources, each as likely as any other; paths are relative to the checkout."""
    every = [(path, change) for path, found in language.changes().items() for change in found]
    random.Random(seed).shuffle(every)
    drawn: list[Mutant] = []
    for path, change in every:
        if len(drawn) == count:
            break
        if language.is_valid(change.apply((ROOT / path).read_text(encoding="utf-8"))):
            drawn.append(Mutant(len(drawn), path, change))
    return drawn


def difference(result: Result) -> str:
    """What a mutant changes, as a unified diff."""
    source = (ROOT / result.path).read_text(encoding="utf-8")
    lines = [text.splitlines() for text in (source, result.change.apply(source))]
    return "\n".join(list(difflib.unified_diff(*lines, n=3, lineterm=""))[2:])


def report(results: Iterable[Result]) -> str:
    """Killed mutants of all, by package and by kind."""
    results = list(results)
    killed = [r for r in results if r.killed]
    lines = [f"{len(killed)} of {len(results)} mutants were killed"]
    for name, key in (
        ("package", lambda r: "/".join(r.path.split("/")[:2])),
        ("kind", lambda r: r.change.kind),
    ):
        every, dead = Counter(map(key, results)), Counter(map(key, killed))
        lines.append(f"by {name}: " + "; ".join(f"{x} {dead[x]} of {n}" for x, n in sorted(every.items())))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--language", choices=LANGUAGES, default="python")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=30.0, help="of a processor, for each")
    parser.add_argument("--again", action="store_true", help="try those again that survived")
    parser.add_argument("--number", type=int, action="append", help="one of them; several times for several")
    parser.add_argument("--show", action="store_true", help="print those that survived, and try none")
    options = parser.parse_args()
    language = LANGUAGES[options.language]
    mutants = sample(language, options.seed, options.count)
    digest = hashlib.sha256(repr(mutants).encode()).hexdigest()[:12]
    BUILD.mkdir(parents=True, exist_ok=True)
    kept = BUILD / f"{options.language}-{options.seed}-{digest}.jsonl"
    done = {r.number: r for r in read(kept)}
    if not options.show:
        again = [m for m in mutants if m.number not in done or (options.again and not done[m.number].killed)]
        chosen = [mutants[i] for i in options.number] if options.number else again
        with (
            tempfile.TemporaryDirectory(prefix="mutants-") as folder,
            kept.open("a") as file,
            tqdm(total=len(chosen), unit=" mutants") as bar,
        ):

            def note(m: Mutant, work: Callable[[], str]) -> None:
                start = time.monotonic()
                killed = work()
                seconds = round(time.monotonic() - start, 1)
                file.write(json.dumps(asdict(Result(m.number, m.path, m.change, killed, seconds))) + "\n")
                file.flush()
                bar.update()

            language.try_mutants(make_tree(Path(folder) / "tree"), chosen, options.seconds, note)
    results = read(kept)
    for r in results:
        if not r.killed:
            head = f"{r.number}: {r.path}:{r.change.line}: {r.change.kind}"
            print(f"{head}\n{difference(r)}\n")
    print(report(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
