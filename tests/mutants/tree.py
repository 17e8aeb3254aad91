"""A copy of the checkout, where a file is changed and put back."""

from __future__ import annotations

import compileall
import os
import py_compile
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mutants.change import Change

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "mutants"  # what is kept from one run to the next


def make_tree(folder: Path) -> Path:
    """Copy what git knows or would add to `folder`; packages of npm are shared, but for links to ours."""
    command = ["git", "ls-files", "-coz", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    _share_packages(ROOT / "node_modules", folder / "node_modules")
    # Compiled files are found by a hash of their source: a change may keep size and second of the file.
    mode = py_compile.PycInvalidationMode.CHECKED_HASH
    compileall.compile_dir(folder / "polygrad", quiet=2, invalidation_mode=mode)
    return folder


def _share_packages(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for entry in source.iterdir() if source.exists() else ():
        to = target / entry.name
        if entry.is_symlink():  # a workspace: it is relative
            to.symlink_to(os.readlink(entry))
        elif entry.is_dir() and any(x.is_symlink() for x in entry.iterdir()):
            _share_packages(entry, to)
        else:
            to.symlink_to(entry)


@contextmanager
def changed(file: Path, change: Change) -> Iterator[None]:
    source = file.read_text(encoding="utf-8")
    file.write_text(change.apply(source), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(source, encoding="utf-8")
