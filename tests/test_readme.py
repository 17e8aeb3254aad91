"""The Python of the README and of the guides runs, each page's snippets in order in one program; a `text`
block after a snippet is what it prints. `test_c_guide.py` runs the guide of C."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from pathlib import Path
from typing import Any

import pytest

from polygrad import Device

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
NAMES = [str(p.relative_to(ROOT)) for p in PAGES]
# Pages without Python of their own: tests of JavaScript, libpolygrad and the examples run what they have.
WITHOUT = {n for n in NAMES if n.startswith(("docs/guides/javascript", "docs/guides/from_"))}
WITHOUT.add("docs/guides/examples.md")
WITHOUT.remove("docs/guides/javascript_models.md")  # Python makes its model
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[str, str | None]]:
    """Each Python snippet with the output that is promised for it, if any."""
    return [(m[1], m[2]) for m in BLOCK.finditer(text)]


@pytest.mark.parametrize("name", sorted(set(NAMES) - WITHOUT - {"docs/guides/without_python_c.md"}))
def test_every_python_snippet_runs_and_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some save files
    monkeypatch.setattr(Device, "DEFAULT", Device.DEFAULT)  # some choose a device
    path = ROOT / name
    found = blocks(path.read_text(encoding="utf-8"))
    assert found, f"{name} has no Python snippet"
    namespace: dict[str, object] = {"__name__": "readme"}
    for i, (source, promised) in enumerate(found):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, f"{name}, snippet {i + 1}", "exec"), namespace)
        if promised is not None:
            assert printed.getvalue() == promised, source


@pytest.mark.parametrize("name", sorted(WITHOUT))
def test_pages_without_python_have_none(name: str) -> None:
    assert blocks((ROOT / name).read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_to_files(name: str) -> None:
    """Pictures of the guides are made by the documentation's build, which checks links to them."""
    path = ROOT / name
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\((?!https?:)([^)#]+)", text)
    missing = [link for link in links if "pictures/" not in link and not (path.parent / link).exists()]
    assert missing == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```python\na\n```\n", [("a\n", None)]),
        ("```python\na\n```\n\n```text\nb\n```\n", [("a\n", "b\n")]),
        ("```python\na\n```\n\nwords\n\n```text\nb\n```\n", [("a\n", None)]),
        ("```js\na\n```\n", []),
    ],
)
def test_a_snippet_is_paired_with_the_text_right_after_it(text: str, expected: list[object]) -> None:
    assert blocks(text) == expected


def metadata_hook() -> Any:
    path = ROOT / "scripts" / "readme_of_wheel.py"
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def readme_in_metadata(urls: dict[str, str]) -> str:
    metadata: dict[str, Any] = {"version": "1.2.3", "urls": urls}
    metadata_hook().Readme(str(ROOT), {}).update(metadata)
    text: str = metadata["readme"]["text"]
    return text


def test_the_readme_of_the_package_has_the_addresses_of_the_repository() -> None:
    text = readme_in_metadata({"Repository": "https://example.org/polygrad/"})
    links = re.findall(r"\]\(([^)#]+)", text)
    ours = [x.removeprefix("https://example.org/polygrad/") for x in links if "example.org" in x]
    assert all(link.startswith("https:") for link in links)
    kinds = {(path.split("/")[0], Path(path).suffix) for path in ours}
    assert {("raw", ".png"), ("raw", ".svg"), ("blob", ".md")} <= kinds
    assert all((kind == "raw") == (suffix in (".png", ".svg")) for kind, suffix in kinds)
    assert all((ROOT / path.split("/v1.2.3/")[1]).exists() for path in ours)


def test_the_readme_of_a_package_without_a_repository_has_no_relative_links_and_its_code() -> None:
    text, own = readme_in_metadata({}), (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(link.startswith(("https:", "#")) for link in re.findall(r"\]\(([^)]+)", text))
    assert "![" not in text and "quick start, training" in text
    assert re.findall("^```.*?^```", text, re.DOTALL | re.M) == re.findall(
        "^```.*?^```", own, re.DOTALL | re.M
    )


def test_links_in_code_stay_as_they_are() -> None:
    text = "[a](b) ![c](d)\n```js\nx[i](j)\n```\n[e](#f) [g](https://h)\n"
    absolute = metadata_hook().absolute
    assert absolute(text, None, "1") == "a \n```js\nx[i](j)\n```\n[e](#f) [g](https://h)\n"
    assert absolute(text, "https://r", "1").startswith("[a](https://r/blob/v1/b) ![c](https://r/raw/v1/d)\n")


def test_the_readme_of_the_npm_package_has_no_relative_links() -> None:
    text = (ROOT / "node" / "README.md").read_text(encoding="utf-8")
    assert all(link.startswith("https:") for link in re.findall(r"\]\(([^)]+)", text))
