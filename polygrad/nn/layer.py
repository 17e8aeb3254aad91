"""The base of layers, which explains names that only torch's modules have."""

from __future__ import annotations

from typing import Any, ClassVar

from polygrad.missing import missing


class Layer:
    """A layer is any object with Tensors. This base class only names replacements for a torch module's
    methods.

    `packable`: the names of matrix attributes that `polygrad.quantize` may pack, because the layer uses only
    operations that a PackedWeight has, too.
    """

    packable: ClassVar[tuple[str, ...]] = ()

    def __getattr__(self, name: str) -> Any:
        """Raises AttributeError: called only for names that do not exist."""
        raise AttributeError(missing("layer", repr(type(self).__name__), name), name=name, obj=self)
