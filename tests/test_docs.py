"""The documentation: every page is in its contents, what the reference names exists, what is generated is."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from polygrad import Tensor

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
PAGES = sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md"))
REFERENCE = {p: (DOCS / p).read_text(encoding="utf-8") for p in PAGES if p.startswith("reference/")}
sys.path.insert(0, str(ROOT / "scripts" / "docs"))
internals: Any = importlib.import_module("internals")


def found_at(place: str) -> Any:
    """What is at a dotted place."""
    parts = place.split(".")
    for i in range(len(parts), 0, -1):
        try:
            value: Any = importlib.import_module(".".join(parts[:i]))
        except ModuleNotFoundError:
            continue
        for name in parts[i:]:
            value = getattr(value, name)
        return value
    raise ModuleNotFoundError(place)


def test_every_page_is_in_the_contents_once() -> None:
    nav = CONFIG[CONFIG.index("\nnav:") :]
    generated = internals.pages(str)
    assert sorted(re.findall(r": (\S+\.md)$", nav, re.MULTILINE)) == sorted([*PAGES, *generated])


def test_every_package_says_what_it_is() -> None:
    folders = {path.parent for path in (ROOT / "polygrad").rglob("*.py")}
    assert [str(f) for f in folders if len(internals.docstring(f / "__init__.py")) < 60] == []


def test_what_the_architecture_names_exists() -> None:
    """Of `engine/compile.py` and the like, in ARCHITECTURE.md and in the packages' docstrings."""
    texts = {"ARCHITECTURE.md": (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")}
    texts |= {p: internals.docstring(ROOT / "polygrad" / p / "__init__.py") for p in internals.PACKAGES}
    sources = [*(ROOT / "polygrad").rglob("*.py"), *(ROOT / "wasm_runtime/src").rglob("*.ts")]
    sources += [*(ROOT / "loader/src").rglob("*.ts"), *(ROOT / "scripts").glob("*")]
    names = {path.name for path in sources}
    missing = []
    for place, text in texts.items():
        for name in re.findall(r"[`\s(]((?:[\w-]+/)*[\w-]+\.(?:py|ts))\b", text):
            folders = [ROOT, ROOT / "polygrad", ROOT / "polygrad" / place]
            exists = any((f / name).is_file() for f in folders) if "/" in name else name in names
            missing += [] if exists else [f"{place}: {name}"]
    assert missing == []


@pytest.mark.parametrize("page", REFERENCE)
def test_what_a_page_of_the_reference_names_exists(page: str) -> None:
    entries = re.findall(r"^::: (\S+)\n((?: +.*\n)*)", REFERENCE[page] + "\n", re.MULTILINE)
    assert entries
    for place, options in entries:
        value = found_at(place)
        members = re.search(r"members: \[(.*)\]", options)
        for name in members[1].split(", ") if members else []:
            assert getattr(value, name).__doc__, f"{place}.{name}"


def test_every_module_of_tensor_methods_has_a_page() -> None:
    text = "\n".join(REFERENCE.values())
    mixins = {c for c in Tensor.__mro__ if c.__name__.endswith("Mixin")} - {
        c
        for c in Tensor.__mro__
        if c.__name__ == "CopyingMixin"  # what copy and pickle call
    }
    assert len(mixins) > 15
    assert [
        f"{c.__module__}.{c.__name__}" for c in mixins if f"{c.__module__}.{c.__name__}" not in text
    ] == []


def test_the_guides_pictures_are_drawn() -> None:
    pictures: Any = importlib.import_module("pictures")
    drawn = pictures.drawn()
    text = "\n".join((DOCS / p).read_text(encoding="utf-8") for p in PAGES)
    assert set(re.findall(r"\(\.\./pictures/(\w+)\.svg\)", text)) == set(drawn)
    assert all(svg.startswith("<svg") for svg in drawn.values())


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("One line.", "One line."),
        ("It: does.\n\nfn: a\n    b\nx: c", "It: does.\n\n- `fn`: a b\n- `x`: c"),
        ("Sum.\n\n>>> 1 + 1\n2", "Sum.\n\n```pycon\n>>> 1 + 1\n2\n```"),
        ("Sum.\n\n`n`: how many.\n>>> 1\n1", "Sum.\n\n- `n`: how many.\n\n```pycon\n>>> 1\n1\n```"),
        ("Sum.\n\nNot a list, but: words", "Sum.\n\nNot a list, but: words"),
        ("Sum.\n\n    code: x", "Sum.\n\n    code: x"),
    ],
)
def test_docstrings_become_markdown(text: str, want: str) -> None:
    pytest.importorskip("griffe", reason="the packages of `make docs` are not installed")
    docstrings: Any = importlib.import_module("docstrings")
    assert docstrings.to_markdown(text) == want


@pytest.mark.slow
@pytest.mark.e2e
def test_the_reference_of_javascript_has_every_class(tmp_path: Path) -> None:
    command = ["npx", "typedoc", "--logLevel", "Warn", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = {p.stem for p in tmp_path.rglob("*.html")}
    assert {"polygrad.Tensor", "polygrad.Linear", "polygrad.FetchError", "polygrad_runtime"} <= pages


@pytest.mark.parametrize(
    ("page", "want"),
    [
        ('<script src="https://cdn.example/x.js">', ["https://cdn.example/x.js"]),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', ["//cdn.example/x.css"]),
        ('<a href="https://example.org">', []),
        ('<link rel="canonical" href="https://example.org">', []),
        ('<script src="assets/x.js">', []),
    ],
)
def test_what_a_page_would_load_from_elsewhere_is_found(page: str, want: list[str]) -> None:
    pytest.importorskip("mkdocs", reason="the packages of `make docs` are not installed")
    hooks: Any = importlib.import_module("hooks")
    assert hooks.LOADED.findall(page) == want
