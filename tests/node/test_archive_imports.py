"""`loader/src/python/archive_imports.py` beside zipimport, under this Python: modules look the same."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from javascript_hosts import ROOT

LOADER = ROOT / "loader" / "src" / "python"
FILES = {
    "top.py": "VALUE = 1\n",
    "pack/__init__.py": '"""A package."""\nfrom pack.inner import deep\n',
    "pack/text.py": "def lines():\n    return 3\n",
    "pack/inner/__init__.py": "",
    "pack/inner/deep.py": "LOADER = type(__loader__).__name__\nNAME = __spec__.name\n",
    "pack/broken.py": "raise KeyError(__name__)\n",
}
PROGRAM = """
import importlib, json, sys
sys.path.insert(0, {loader!r})
import archive_imports as imports
sys.path.insert(0, {archive!r})
if {quick}:
    imports.begin({archive!r})
seen = {{}}
{body}
for name in ("top", "pack", "pack.text", "pack.inner", "pack.inner.deep"):
    module = importlib.import_module(name)
    spec = module.__spec__
    folder = module.__file__.removesuffix("/__init__.pyc").rpartition("/")[0]
    of_module = ("__file__", "__path__", "__package__", "__cached__", "__doc__")
    of_spec = ("name", "origin", "cached", "parent", "has_location", "loader_state", "loader")
    seen[name] = [
        *(repr(getattr(module, key, None)) for key in of_module),
        *(repr(getattr(spec, key)) for key in of_spec),
        spec.loader is module.__loader__ is sys.path_importer_cache.get(folder),
        module.__loader__.get_source(name),
    ]
deep = importlib.import_module("pack.inner.deep")
seen["while it runs"] = [deep.LOADER, deep.NAME]
try:
    importlib.import_module("pack.broken")
except KeyError as error:
    seen["broken"] = [str(error), "pack.broken" in sys.modules]
try:
    importlib.import_module("pack.absent")
except ModuleNotFoundError as error:
    seen["absent"] = str(error)
seen["lines"] = importlib.import_module("pack.text").lines.__code__.co_filename
imports.end()
seen["after"] = [sum(isinstance(f, imports.ArchiveFinder) for f in sys.meta_path)]
print(json.dumps(seen))
"""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    source, made = tmp_path / "source.zip", tmp_path / "made.zip"
    with zipfile.ZipFile(source, "w") as written:
        for name, text in FILES.items():
            written.writestr(name, text)
    namespace: dict[str, Any] = {}
    exec((LOADER / "bundle.py").read_text(), namespace)
    made.write_bytes(namespace["bundle"](str(source), str(made), None, [], {}))
    return made


def imported(archive: Path, quick: bool, body: str = "") -> dict[str, Any]:
    """What a new Python sees of the modules, after it has run `body`."""
    program = PROGRAM.format(loader=str(LOADER), archive=str(archive), quick=quick, body=body)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr[-2000:]
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


def test_modules_look_as_zipimport_leaves_them(archive: Path) -> None:
    quick = imported(archive, quick=True)
    assert quick == imported(archive, quick=False)
    assert quick["while it runs"] == ["zipimporter", "pack.inner.deep"]
    assert quick["broken"] == ["'pack.broken'", False]
    assert "/made.zip/pack/text.py" in quick["lines"] and quick["after"] == [0]


def test_zipimport_is_asked_for_what_the_archive_lacks_alone(archive: Path) -> None:
    record = """
import zipimport
seen["asked"], find = [], zipimport.zipimporter.find_spec
def recorded(self, name, target=None):
    seen["asked"].append(name)
    return find(self, name, target)
zipimport.zipimporter.find_spec = recorded
"""
    assert imported(archive, True, record)["asked"] == ["pack.absent"]
    assert imported(archive, False, record)["asked"][:2] == ["top", "pack"]


def test_a_file_in_the_archives_place_is_left_to_zipimport(archive: Path) -> None:
    """As when the whole standard library takes the place of its first part."""
    other = archive.with_name("other.zip")
    with zipfile.ZipFile(other, "w") as made:
        made.writestr("longer_name.py", "x = 1\n" * 50)
        for name, text in FILES.items():
            made.writestr(name, text.replace("VALUE = 1", "VALUE = 2"))
    body = f"""
with open({str(archive)!r}, "r+b") as file:
    file.truncate()
    file.write(open({str(other)!r}, "rb").read())
sys.path_importer_cache.clear()
importlib.invalidate_caches()
import zipimport
zipimport._zip_directory_cache.clear()
import top
seen["value"] = top.VALUE
"""
    assert imported(archive, True, body)["value"] == 2


def test_a_package_whose_path_has_another_folder_first_is_left_to_python(
    archive: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "extra.py").write_text("VALUE = 'mine'")
    (tmp_path / "mine" / "text.py").write_text("VALUE = 'mine'")
    body = f"""
import pack
pack.__path__.insert(0, {str(tmp_path / "mine")!r})
import pack.text
seen["value"] = pack.text.VALUE
del sys.modules["pack.text"], pack.__path__[0]
"""
    assert imported(archive, True, body)["value"] == "mine"
