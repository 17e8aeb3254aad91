"""The JavaScript of the documentation: each block, and what the block after it says that it prints."""

from __future__ import annotations

import re
from dataclasses import dataclass

from javascript_hosts import ROOT

PAGES = (
    "README.md",
    "node/README.md",
    *(f"docs/guides/{path.name}" for path in sorted((ROOT / "docs" / "guides").glob("*.md"))),
)
_BLOCK = re.compile(r"^```(js|ts|jsx|html)\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Snippet:
    page: str
    kind: str  # the language
    source: str
    promised: str | None

    @property
    def runner(self) -> str:
        """What runs it: a process, a page that is served in some way, a framework, or nothing."""
        if self.kind == "jsx":
            return "framework"
        if self.kind == "html":
            if "cdn.jsdelivr.net" in self.source:
                return "cdn"
            return "static host" if "polygrad-service-worker.js" in self.source else "page"
        if self.page in ("docs/guides/saving.md", "docs/guides/exporting.md"):
            return "exported"  # reads what Python exported
        return "process" if self.promised is not None else "none"


def snippets(runner: str) -> list[Snippet]:
    """The blocks of all pages that `runner` runs, in order."""
    found = [
        Snippet(page, kind, source, promised or None)
        for page in PAGES
        for kind, source, promised in _BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    ]
    return [snippet for snippet in found if snippet.runner == runner]
