"""Numbers and tables as text for people."""

from __future__ import annotations

from collections.abc import Sequence


def time_of(seconds: float) -> str:
    """Seconds with a unit that fits: 12.3 µs."""
    value, unit = (seconds * 1e6, "µs") if seconds < 1e-3 else (seconds * 1e3, "ms")
    return f"{value:.3g} {unit}" if value < 1000 else f"{seconds:.2f} s"


def count_of(value: float) -> str:
    """A count with a decimal prefix: 12.3 k."""
    for prefix in ("", "k", "M", "G"):
        if value < 1000:
            return f"{value:.3g} {prefix}"
        value /= 1000
    return f"{value:.3g} T"


def table_of(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Rows of text below a head, in columns: the first `left` of them aligned left, the others right."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = []
    for row in (head, ["-" * width for width in widths], *rows):
        cells = [
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def html_table_of(head: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """`table_of` as HTML; the cells are names and numbers of ours, without markup."""

    def cells(tag: str, row: Sequence[str]) -> str:
        sides = ["left" if i < left else "right" for i in range(len(row))]
        parts = [f'<{tag} style="text-align:{s}">{c}</{tag}>' for s, c in zip(sides, row, strict=True)]
        return f"<tr>{''.join(parts)}</tr>"

    return f"<table>{cells('th', head)}{''.join(cells('td', row) for row in rows)}</table>"
