"""Imports modules of archives of bytecode while Python starts, in a third of zipimport's time.

A start imports several hundred modules, and zipimport reads and decodes each one twice: for the name of its
file, and to run it. Modules that are imported here look as zipimport would have left them. Later imports are
zipimport's.
"""

import marshal
import os
import sys
import zipimport
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from zipimport import zipimporter

_ZIP_HEADER = 30  # bytes before a file's name
_PYC_HEADER = 16


class ArchiveFinder:
    """Finds and runs modules of the archive at the path `place`, which bundle.py made."""

    def __init__(self, place: str) -> None:
        self._place = place
        zipimporter(place)  # reads the directory
        self._files = zipimport._zip_directory_cache[place]  # type: ignore[attr-defined]
        self._descriptor = os.open(place, os.O_RDONLY)
        self._bytecode: dict[str, bytes] = {}

    def close(self) -> None:
        os.close(self._descriptor)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """None for a module that is not in the archive, or for which another folder may come first."""
        parent, _, base = name.rpartition(".")
        folder = f"{self._place}/{parent.replace('.', '/')}" if parent else self._place
        if path is not None and list(path[:1]) != [folder]:
            return None
        stem = name.replace(".", "/")
        for file, is_package in ((f"{stem}/__init__.pyc", True), (f"{stem}.pyc", False)):
            if (bytecode := self._read(file)) is None:
                continue
            self._bytecode[name] = bytecode
            spec = ModuleSpec(name, self, origin=f"{self._place}/{file}", is_package=is_package)
            spec.has_location = True
            if is_package:
                spec.submodule_search_locations = [f"{folder}/{base}"]
            return spec
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name, spec = module.__name__, module.__spec__
        assert spec is not None
        assert spec.origin is not None
        folder = spec.origin.removesuffix("/__init__.pyc").rpartition("/")[0]
        spec.loader = module.__loader__ = _importer(folder)
        exec(marshal.loads(self._bytecode.pop(name)), module.__dict__)

    def _read(self, file: str) -> bytes | None:
        """The bytecode in `file`; None when the archive has no such file, or another file took its place."""
        if (entry := self._files.get(file)) is None:
            return None
        size, at = entry[2], entry[4]
        header = _ZIP_HEADER + len(file)
        data = os.pread(self._descriptor, header + size, at)
        if data[_ZIP_HEADER:header] != file.encode() or len(data) != header + size:
            return None
        return data[header + _PYC_HEADER :]


def _importer(folder: str) -> zipimporter:
    """What PathFinder imports from `folder` with."""
    found = sys.path_importer_cache.get(folder)
    if not isinstance(found, zipimporter):
        found = sys.path_importer_cache[folder] = zipimporter(folder)
    return found


def begin(place: str) -> None:
    """Import modules of the archive `place` quickly from now on."""
    sys.meta_path.insert(sys.meta_path.index(PathFinder), ArchiveFinder(place))


def end() -> None:
    """Import as Python does from now on."""
    for finder in [finder for finder in sys.meta_path if isinstance(finder, ArchiveFinder)]:
        sys.meta_path.remove(finder)
        finder.close()
