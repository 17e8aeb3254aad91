"""What layers have in common: what to say where torch's modules have a name and they do not."""

from __future__ import annotations

from typing import Any, ClassVar

from polygrad.missing import missing


class Layer:
    """A layer is any object that has Tensors in it; this base says what to use instead of a module's
    methods.

    `packable`: the names of attributes that are matrices, of which the layer asks only what a PackedWeight
    can do, too: `polygrad.quantize` packs them.
    """

    packable: ClassVar[tuple[str, ...]] = ()

    def __getattr__(self, name: str) -> Any:
        """Raises AttributeError: asked only for names that are not there."""
        raise AttributeError(missing("layer", repr(type(self).__name__), name), name=name, obj=self)
