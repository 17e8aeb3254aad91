"""The JavaScript functions that WASM and WEBGPU call under Pyodide: the module `polygrad_host`.

polygrad's own loaders register it before Python starts. A Pyodide that something else started (micropip,
PyScript, JupyterLite) gets it from `host.js` beside this file, the bundle of `web/src/plain_host.ts`. There
kernels run on one thread.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from polygrad.errors import DeviceError

NAME = "polygrad_host"


def page_host() -> Any:
    """The module. Raises DeviceError where the page forbids what it takes, ImportError outside of Pyodide."""
    try:
        return importlib.import_module(NAME)
    except ModuleNotFoundError:
        register()
        return importlib.import_module(NAME)


def register() -> None:
    """Evaluate `host.js` and register what it returns."""
    code, js, ffi = map(importlib.import_module, ("pyodide.code", "pyodide_js", "pyodide.ffi"))
    with open(os.path.join(os.path.dirname(__file__), "host.js"), encoding="utf-8") as file:
        source = file.read()
    try:
        functions = code.run_js(source)
    except ffi.JsException as e:
        reason = " ".join(e.message.split())
        raise DeviceError(
            f"polygrad: expected a page that may evaluate JavaScript, got {reason}: allow 'unsafe-eval' in "
            "its Content-Security-Policy, or load polygrad by its npm package, which needs no such permission"
        ) from e
    js.registerJsModule(NAME, functions)
