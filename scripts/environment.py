"""Writes the tables of docs/guides/debugging.md that are made from polygrad/environment.py.

python scripts/environment.py             rewrites them
python scripts/environment.py --check     fails where they differ
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from polygrad.environment import debug_table, variables_table

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "debugging.md"
TABLES = {"debug levels": debug_table, "environment variables": variables_table}


def written(text: str) -> str:
    """`text` with the tables as the code says now."""
    for name, table in TABLES.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise SystemExit(f"{PAGE}: expected {begin} and {end} once")
        start, stop = pattern.search(text).span()
        text = f"{text[:start]}{begin}\n\n{table()}\n\n{end}{text[stop:]}"
    return text


def main() -> None:
    before = PAGE.read_text(encoding="utf-8")
    after = written(before)
    if "--check" not in sys.argv:
        PAGE.write_text(after, encoding="utf-8")
    elif after != before:
        raise SystemExit(f"{PAGE} differs from polygrad/environment.py: run scripts/environment.py")


if __name__ == "__main__":
    main()
