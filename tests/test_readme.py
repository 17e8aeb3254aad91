"""The README's Python runs, in order, in one program; a `text` block after a snippet is what it prints."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from polygrad import Device

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[str, str | None]]:
    """Each Python snippet with the output that is promised for it, if any."""
    return [(m[1], m[2]) for m in BLOCK.finditer(text)]


def test_every_python_snippet_runs_and_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some save files
    monkeypatch.setattr(Device, "DEFAULT", Device.DEFAULT)  # some choose a device
    found = blocks(README.read_text(encoding="utf-8"))
    assert found, "the README has no Python snippet"
    namespace: dict[str, object] = {"__name__": "readme"}
    for source, promised in found:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, str(README), "exec"), namespace)
        if promised is not None:
            assert printed.getvalue() == promised


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
