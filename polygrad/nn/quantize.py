"""`quantize`: the weights of a model in few bits, in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from polygrad.errors import ArgumentError
from polygrad.nn.packed import PackedWeight
from polygrad.nn.quantization import find_kind_to_pack
from polygrad.nn.state import named_objects
from polygrad.tensor.tensor import Tensor


@dataclass(frozen=True)
class WeightLocation:
    """Where a weight that can be packed is: attribute `attribute` of `owner`, and `name` from the model."""

    name: str
    owner: Any
    attribute: str

    @property
    def weight(self) -> Tensor | PackedWeight:
        """What is there now."""
        found: Tensor | PackedWeight = vars(self.owner)[self.attribute]
        return found

    def put(self, weight: Tensor | PackedWeight) -> None:
        """Set the attribute."""
        setattr(self.owner, self.attribute, weight)


def find_places(model: Any, skip: str | Iterable[str] = ()) -> dict[str, WeightLocation]:
    """The weights of `model` that can be packed, packed or not, by name: see `quantize`."""
    left_out = (skip,) if isinstance(skip, str) else tuple(skip)
    out = {}
    for path, owner in named_objects(model):
        for attribute in getattr(type(owner), "packable", ()):
            name = f"{path}.{attribute}" if path else attribute
            if any(f".{part}." in f".{name}." for part in left_out):
                continue
            if isinstance(vars(owner).get(attribute), (Tensor, PackedWeight)):
                out[name] = WeightLocation(name, owner, attribute)
    return out


def find_places_to_pack(model: Any, kind: str, skip: str | Iterable[str] = ()) -> dict[str, WeightLocation]:
    """The weights that `quantize` packs, by name. Raises ArgumentError as it does."""
    block = find_kind_to_pack(kind).block or 1
    places = find_places(model, skip)
    for name, place in places.items():
        columns = place.weight.shape[-1]
        if isinstance(place.weight, Tensor) and (columns % block or not columns):
            raise ArgumentError(
                f"quantize: {name}: {kind} has blocks of {block} numbers, and a row has {columns}: leave it "
                f"out by skip={name.removesuffix('.weight')!r}"
            )
    return {name: place for name, place in places.items() if isinstance(place.weight, Tensor)}


def quantize(model: Any, kind: str, skip: str | Iterable[str] = ()) -> Any:
    """Pack the weights of `model` in few bits, in place; `model`.

    These are the weights of Linear and Embedding layers, of experts, and of other layers that name some (see
    `polygrad.nn.layer.Layer.packable`). They become PackedWeights, one after the other, so that no more than
    one of them is in memory twice. Packed weights are not trained; gradients go through them to what is
    below. Those that are packed already stay.

    `kind`: `int8` (a scale for each row), `fp8` (likewise, fp8e4m3), `int4` (a scale and a zero for 32
    numbers), or GGUF's `q4_0`, `q4_1`, `q5_0`, `q5_1`, `q8_0`. `skip`: paths, or components of paths, as
    `lm_head` or `layers.0`, whose weights stay. Raises ArgumentError for an unknown kind, one that is only
    read from files, and a weight whose rows have no whole number of blocks; then nothing is packed.

    >>> import polygrad
    >>> from polygrad import Tensor, nn
    >>> model = [nn.Linear(64, 32), Tensor.relu, nn.Linear(32, 10)]
    >>> _ = polygrad.quantize(model, "int8", skip=["2"])
    >>> model[0].weight
    <PackedWeight int8 (32, 64) on CPU, 2176 bytes>
    >>> Tensor.ones(1, 64).sequential(model).shape
    (1, 10)
    """
    places = find_places_to_pack(model, kind, skip)
    readers = Counter(id(place.weight) for place in places.values())
    packed: dict[int, PackedWeight] = {}  # those that several layers have
    for place in places.values():
        weight = place.weight
        assert isinstance(weight, Tensor)
        found = packed.get(id(weight)) or PackedWeight.of(weight, kind)
        if readers[id(weight)] > 1:
            packed[id(weight)] = found
        place.put(found)
    return model
