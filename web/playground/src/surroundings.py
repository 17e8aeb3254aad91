"""What a Python program of the playground finds: a folder of its own, its place there, files it reads.

`_playground_enter(name)` before it runs, `_playground_pictures()` afterwards: the pictures it left, as JSON.
"""

import json
import os
import pathlib
import sys

import js

_PLAYGROUND_FOLDER = pathlib.Path("/home/pyodide/playground")


def _playground_enter(name):
    for file in js.programFiles:
        path = _PLAYGROUND_FOLDER / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.bytes.to_bytes())
    _PLAYGROUND_FOLDER.mkdir(parents=True, exist_ok=True)
    os.chdir(_PLAYGROUND_FOLDER)
    for path in _PLAYGROUND_FOLDER.glob("*.svg"):
        path.unlink()
    sys.argv[:] = [str(_PLAYGROUND_FOLDER / name)]
    globals()["__file__"] = sys.argv[0]


def _playground_pictures():
    found = sorted(_PLAYGROUND_FOLDER.glob("*.svg"), key=lambda path: path.stat().st_mtime)
    return json.dumps([[path.name, path.read_text(encoding="utf-8")] for path in found])
