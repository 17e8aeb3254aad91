"""docs/guides/without_python_c.md: its Python runs in order, its C is compiled and run as its shell blocks
say, and prints what it says."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from polygrad import Device

PAGE = Path(__file__).resolve().parent.parent / "docs" / "guides" / "without_python_c.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcc") is None, reason="this machine has no gcc")
def test_every_program_prints_what_the_guide_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Device, "DEFAULT", Device.DEFAULT)
    namespace: dict[str, object] = {"__name__": "guide"}
    printed, kinds = "", []
    for kind, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        kinds.append(kind)
        if kind == "python":
            exec(compile(text, PAGE.name, "exec"), namespace)
        elif kind == "c":
            name = re.match(r"/\* (\w+\.c)\b", text)
            assert name is not None, text[:40]
            Path(name[1]).write_text(text)
        elif kind == "sh":
            done = subprocess.run(["bash", "-ec", text], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            printed = done.stdout
        else:
            assert kind == "text"
            assert text == printed if kinds[-2] == "sh" else text in Path("train.h").read_text(), text
    assert kinds.count("sh") == kinds.count("c") == 3
