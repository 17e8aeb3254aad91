"""polygrad comes in two parts: tensors and training, and the packages that use them (models, tokenizers,
ONNX). A page fetches the second part when one of its packages is first imported.

This module is in the first part of the standard library, and knows the packages of the second by name.
"""

import gzip
import importlib
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

APPLICATIONS: frozenset[str] = frozenset()  # packages of the second part; the build writes them in
PLACE = "/lib/polygrad-applications.zip"
GZIP = b"\x1f\x8b"  # what a gzip file begins with: CDNs compress no archives


class ApplicationsFinder:
    """Finds packages of the second part, after all other finders, and loads that part."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in APPLICATIONS:
            return None
        complete()
        return PathFinder.find_spec(name, path)


_finder = ApplicationsFinder()


def install() -> None:
    """Make imports look into the second part when no other finder has the package."""
    sys.meta_path.append(_finder)


def complete() -> None:
    """Add the second part to the paths of polygrad's packages. Raises ImportError when it cannot be read."""
    if _finder not in sys.meta_path:
        return
    try:
        importlib.import_module("polygrad_host").completePackage(PLACE)
        archive = Path(PLACE)
        if (read := archive.read_bytes()).startswith(GZIP):
            archive.write_bytes(gzip.decompress(read))
    except Exception as error:
        raise ImportError(f"the second part of polygrad could not be read: {error}") from error
    sys.modules["polygrad"].__path__.append(f"{PLACE}/polygrad")
    sys.meta_path.remove(_finder)
    importlib.invalidate_caches()
