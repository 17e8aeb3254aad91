"""What the loaders of all kinds of exported files share: their options, and how these open a file."""

from __future__ import annotations

import os
from typing import Any, TypedDict

from polygrad.export.files import open_file
from polygrad.export.signing import read_signed
from polygrad.runtime.bundle import Bundle


class LoadOptions(TypedDict, total=False):
    """The keyword arguments of loaders: `export.load` says what they mean."""

    native: bool
    device: str | None
    public_key: str | os.PathLike[str] | None
    signature: Any
    max_bytes: int | None


def open_model(
    source: Any,
    kind: str,
    *,
    native: bool = False,
    device: str | None = None,
    public_key: str | os.PathLike[str] | None = None,
    signature: Any = None,
    max_bytes: int | None = None,
) -> tuple[Bundle, memoryview, bool]:
    """A file of a kind, its values, and `native`. Raises as `export.load` does."""
    data = read_signed(source, public_key, signature)
    return (*open_file(data, kind, native, device, max_bytes), native)
