"""The standard library comes in two parts: what starting takes, and all of it when anything else is imported.

This module is in the first part. The second is Pyodide's own archive, which then lies where the first one
lay, so that packages whose modules are in both parts stay one package.
"""

import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

REST: frozenset[str] = frozenset()  # the modules of the second part; the build writes them in


class RestFinder:
    """The last finder: a name that nobody found, and which the second part has, brings that part in."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in REST:
            return None
        complete()
        return PathFinder.find_spec(name, path, target)


_finder = RestFinder()


def install() -> None:
    """Have imports look at the second part when nothing else has the module."""
    sys.meta_path.append(_finder)


def complete() -> None:
    """Put the second part in the place of the first. Raises ImportError when it cannot be read."""
    if _finder not in sys.meta_path:
        return
    host = importlib.import_module("polygrad_host")
    try:
        host.completeStdlib(sys.modules[__name__].__loader__.archive)
    except Exception as error:
        raise ImportError(f"the rest of the standard library could not be read: {error}") from error
    sys.meta_path.remove(_finder)
    importlib.invalidate_caches()
