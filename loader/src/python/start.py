"""Prepares a Python that was started, or restored from a snapshot."""

import gc
import importlib
import os
import random
import sys
from importlib.machinery import FileFinder
from typing import Any


def add_package(archive: str) -> None:
    """Import polygrad from `archive`, and end what sitecustomize.py began. The second part of the standard
    library has the modules that the first lacks.

    What imports made stays, so no collection of garbage looks at it: the first would take a quarter of the
    time of the first kernel's compilation.
    """
    sys.path.append(archive)
    imports = importlib.import_module("_polygrad_imports")
    try:
        imports.begin(archive)
        importlib.import_module("_polygrad_stdlib").install()
        importlib.import_module("_polygrad_applications").install()
        importlib.import_module("polygrad.preload")
        gc.freeze()
    finally:
        imports.end()
        gc.enable()


def refresh() -> None:
    """After a restore, renew the state that every process has of its own."""
    random.seed()
    for finder in sys.path_importer_cache.values():
        if isinstance(finder, FileFinder):
            finder.invalidate_caches()  # they remember folders of another file system


def keep_kernels(store: Any) -> None:
    """Have compiled kernels kept in `store`, a JavaScript object."""
    importlib.import_module("polygrad.engine.cache").use_host(store)


def set_environment(variables: dict[str, str]) -> None:
    os.environ.update(variables)
