"""`make fuzz` and `python -m fuzz` (in the folder `tests`): damaged files until a time is over.

python -m fuzz --parser gguf --seconds 600
python -m fuzz --read tests/fuzz/found/gguf-1234.bin
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tqdm import tqdm

from fuzz.judge import verdict
from fuzz.parsers import PARSERS, Parser

FOLDER = Path("build/fuzz")
_MEASURED = 16  # of how many files one has its memory measured
_REDUCTIONS = 400


@dataclass
class Found:
    """`count` files, of which `read` were read; and one file by what is wrong with it."""

    count: int = 0
    read: int = 0
    wrong: dict[str, bytes] = field(default_factory=dict)


def file_of(parser: Parser, files: list[bytes], seed: int) -> bytes:
    """The damaged file of a seed."""
    rng = random.Random(seed)
    data = parser.change(files, rng)
    return parser.seal(data) if seed % 2 else data


def kind_of(wrong: str) -> str:
    """What is wrong, without its numbers."""
    return "".join("#" if c.isdigit() else c for c in wrong)[:80]


def smaller(parser: Parser, data: bytes, wrong: str) -> bytes:
    """A part of a file with the same thing wrong."""
    kind, size, tries = kind_of(wrong), len(data) // 2, 0
    while size and tries < _REDUCTIONS:
        for at in range(0, len(data), size):
            tries += 1
            less = data[:at] + data[at + size :]
            if tries < _REDUCTIONS and kind_of(verdict(parser.read, less)[1]) == kind:
                data = less
                break
        else:
            size //= 2
    return data


def fuzz(
    parser: Parser, first: int, goes_on: Callable[[int], bool], tell: Callable[[int], object] = lambda n: None
) -> Found:
    """Read damaged files from the seed `first` on, while `goes_on`, which is told their number."""
    files, found = parser.files(), Found()
    for data in files:  # what modules and tables take is not theirs
        is_read, wrong = verdict(parser.read, data)
        assert is_read and not wrong, f"a good file: {wrong or 'it is refused'}: {data[:200]!r}"
    while goes_on(found.count):
        seed = first + found.count
        data = file_of(parser, files, seed)
        is_measured = seed % _MEASURED == 0
        is_read, wrong = verdict(parser.read, data, is_measured)
        if wrong and is_measured:  # memory that another thread took is not the file's, and not taken again
            is_read, wrong = verdict(parser.read, data, is_measured)
        found.count += 1
        found.read += is_read
        if wrong and kind_of(wrong) not in map(kind_of, found.wrong):
            found.wrong[wrong] = smaller(parser, data, wrong)
        tell(found.count)
    return found


def main() -> int:
    options = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    options.add_argument("--parser", action="append", choices=PARSERS, help="several times for several (all)")
    options.add_argument("--seconds", type=float, default=60.0, help="for each")
    options.add_argument("--count", type=int, default=1 << 60, help="the most files for each")
    options.add_argument("--first", type=int, help="the first seed (the clock's)")
    options.add_argument(
        "--read", type=Path, metavar="FILE", help="a file that was kept; its name is PARSER-*"
    )
    given = options.parse_args()
    if given.read:
        parser = PARSERS[given.read.stem.rpartition("-")[0]]
        is_read, wrong = verdict(parser.read, given.read.read_bytes(), measured=False)
        sys.stdout.write(f"{wrong or ('read' if is_read else 'refused')}\n")
        return bool(wrong)
    failed = 0
    first = time.time_ns() if given.first is None else given.first
    for name in given.parser or PARSERS:
        end = time.monotonic() + given.seconds
        with tqdm(desc=name, unit=" files", mininterval=1) as bar:
            found = fuzz(
                PARSERS[name],
                first,
                lambda n, end=end: n < given.count and time.monotonic() < end,
                lambda n, bar=bar: bar.update(),
            )
        sys.stdout.write(
            f"{name}: {found.count} files, {found.read} read, {len(found.wrong)} kinds of failure\n"
        )
        sys.stdout.flush()
        for i, (wrong, data) in enumerate(found.wrong.items()):
            FOLDER.mkdir(parents=True, exist_ok=True)
            path = FOLDER / f"{name}-{first % 10**6}{i:02}.bin"
            path.write_bytes(data)
            sys.stdout.write(f"  {path}: {wrong[:300]}\n")
        failed += len(found.wrong)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
