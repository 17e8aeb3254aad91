"""Beside what mkdocs does: the guides' pictures are drawn, the section Internals is made of docstrings, and
pages may load nothing from elsewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).resolve().parent))
from docstrings import to_markdown
from internals import pages
from pictures import drawn

# What a browser would fetch: scripts, styles, pictures, fonts, frames. Links that one may follow are none.
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|link(?![^>]*rel="(?:canonical|next|prev)"))[^>]*?\s(?:src|href)="((?:https?:)?//[^"]+)"""
)
IMPORTED = re.compile(r"""(?:url\(|@import\s+)["']?((?:https?:)?//[^)"']+)""")


def on_files(files: Any, config: Any) -> Any:
    """Add the pictures, which are made by running what the guides say, and the pages of internals."""
    for name, svg in drawn().items():
        files.append(File.generated(config, f"pictures/{name}.svg", content=svg))
    for path, text in pages(to_markdown).items():
        files.append(File.generated(config, path, content=text))
    return files


def on_post_build(config: Any) -> None:
    """Refuse a site that would load something from another place."""
    site = Path(config["site_dir"])
    found = [
        f"{path.relative_to(site)}: {address}"
        for pattern, suffix in ((LOADED, "*.html"), (IMPORTED, "*.css"))
        for path in sorted(site.rglob(suffix))
        for address in pattern.findall(path.read_text(encoding="utf-8"))
    ]
    if found:
        raise PluginError("pages load from elsewhere: " + "; ".join(found[:10]))
