"""The README as the package's page shows it: a hook of hatchling for the metadata.

A package index resolves no relative links. They become absolute, to the tag of the version in the project's
`Repository` (`[project.urls]` in pyproject.toml), by GitHub's addresses. A project without one has the text
of its links, and no pictures.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def absolute(text: str, repository: str | None, version: str) -> str:
    """Markdown without relative links. `repository`: its address, if it has one."""

    def replace(match: re.Match[str]) -> str:
        picture, label, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        if repository is None:
            return "" if picture else label
        kind = "raw" if picture else "blob"
        return f"{picture}[{label}]({repository.rstrip('/')}/{kind}/v{version}/{target})"

    parts = _FENCE.split(text)
    parts[::2] = [re.sub(r"\n{3,}", "\n\n", _LINK.sub(replace, part)) for part in parts[::2]]
    return "".join(parts)


class Readme(MetadataHookInterface):
    """Sets `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        content = absolute(text, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": content}
