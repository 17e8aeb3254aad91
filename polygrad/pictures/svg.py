"""SVG text: elements, and the colours and letters that all pictures share."""

from __future__ import annotations

from html import escape

CHARACTER, LINE = 6.6, 15  # of the letters, in pixels
INK, MUTED, GRID, PAPER = "#1f2430", "#5b6472", "#e3e6ec", "#ffffff"
SERIES = ("#2f6fde", "#d9622b", "#2a9d5c", "#8a4fc4", "#b8860b", "#c23b6b")


def element(tag: str, content: str = "", **attributes: str | float) -> str:
    """An element; `text_anchor` is the attribute text-anchor, numbers have at most two decimals."""
    written = [f' {k.replace("_", "-")}="{escape(number(v))}"' for k, v in attributes.items()]
    return f"<{tag}{''.join(written)}>{content}</{tag}>" if content else f"<{tag}{''.join(written)}/>"


def number(value: str | float) -> str:
    """A coordinate as short as it can be; text stays."""
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def text(x: float, y: float, content: str, **attributes: str | float) -> str:
    """A line of text whose baseline begins at (x, y), unless `text_anchor` says otherwise."""
    return element("text", escape(content), x=x, y=y, **({"fill": INK} | attributes))


def title(content: str) -> str:
    """What a browser shows when the pointer is over the element that this is in."""
    return element("title", escape(content))


def document(width: float, height: float, parts: list[str]) -> str:
    """A whole picture on paper of its own, legible on pages of any colour."""
    body = "\n".join([element("rect", width=width, height=height, rx=6, fill=PAPER), *parts])
    return element(
        "svg",
        f"\n{body}\n",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {number(width)} {number(height)}",
        width=width,
        height=height,
        font_family="ui-monospace, Menlo, Consolas, monospace",
        font_size=11,
    )
