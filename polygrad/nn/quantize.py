"""`quantize` packs the weights of a model into few bits, in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from polygrad.errors import ArgumentError
from polygrad.nn.integer_products import CODES
from polygrad.nn.packed import PackedWeight, check_activations, takes_int8
from polygrad.nn.quantization import find_kind_to_pack
from polygrad.nn.state import named_objects
from polygrad.tensor.tensor import Tensor


@dataclass(frozen=True)
class WeightLocation:
    """The location of a weight that can be packed: attribute `attribute` of `owner`, and its `name` in the
    model."""

    name: str
    owner: Any
    attribute: str

    @property
    def weight(self) -> Tensor | PackedWeight:
        """The weight at this location."""
        weight: Tensor | PackedWeight = vars(self.owner)[self.attribute]
        return weight

    def put(self, weight: Tensor | PackedWeight) -> None:
        """Set the attribute."""
        setattr(self.owner, self.attribute, weight)


def find_packable_weights(model: Any, skip: str | Iterable[str] = ()) -> dict[str, WeightLocation]:
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


def find_weights_to_pack(
    model: Any, kind: str, skip: str | Iterable[str] = (), activations: str | None = None
) -> dict[str, WeightLocation]:
    """The weights that `quantize` packs, by name. Raises ArgumentError as it does."""
    block = find_kind_to_pack(kind).block or 1
    check_activations(activations)
    places = find_packable_weights(model, skip)
    for name, place in places.items():
        weight, columns = place.weight, place.weight.shape[-1]
        if isinstance(weight, Tensor) and (columns % block or not columns):
            raise ArgumentError(
                f"quantize: {name}: {kind} has blocks of {block} numbers, and a row has {columns}: leave it "
                f"out by skip={name.removesuffix('.weight')!r}"
            )
        stored_kind = weight.kind if isinstance(weight, PackedWeight) else kind
        if activations == "int8" and weight.ndim == 2 and not takes_int8(stored_kind, weight.shape):
            raise ArgumentError(
                f"quantize: {name}: {stored_kind} of {columns} columns takes no activations of 8 bits: they "
                f"are for rows of a multiple of 32 numbers, of the kinds {', '.join(CODES)}"
            )
    return {name: place for name, place in places.items() if isinstance(place.weight, Tensor)}


def activations_of(shape: tuple[Any, ...], activations: str | None) -> str | None:
    """The activations of a model's packed weight, where `quantize` was asked for these: experts, which are
    several matrices, keep float32."""
    return activations if len(shape) == 2 else "float32"


def round_activations(weight: PackedWeight, activations: str | None) -> PackedWeight:
    """A model's packed weight with the activations that `quantize` was asked for: see `activations_of`.
    Raises ArgumentError."""
    return weight.with_activations(activations_of(weight.shape, activations))


def quantize(model: Any, kind: str, skip: str | Iterable[str] = (), activations: str | None = None) -> Any:
    """Pack the weights of `model` into few bits, in place; returns `model`.

    These are the weights of Linear and Embedding layers, of experts, and of other layers that name some (see
    `polygrad.nn.layer.Layer.packable`). They become PackedWeights one after the other, so that at most one
    weight is in memory in both forms. Packed weights are not trained; gradients flow through them. Weights
    that are packed already keep their kind; `activations`, where it is given, applies to them, too.

    `kind`: `int8` (a scale for each row), `fp8` (likewise, fp8e4m3), `int4` (a scale and a zero for 32
    numbers), or GGUF's `q4_0`, `q4_1`, `q5_0`, `q5_1`, `q8_0`. `skip`: paths, or components of paths, as
    `lm_head` or `layers.0`, whose weights are not packed. `activations`: what the inputs of products are
    rounded to: `int8`, in blocks of 32 or 16 numbers with a scale, or `float32`, which is exact. None:
    `int8` if the device multiplies bytes and the kind has integer codes (all but `fp8`, `q5_0` and `q5_1`).
    That is several times as fast, and its error is less than that of packing the weights. Products whose
    input needs a gradient use float32. Raises ArgumentError for an unknown kind, a kind that can only be
    read, and a weight whose rows are not a whole number of blocks; then nothing is packed.

    >>> import polygrad
    >>> from polygrad import Tensor, nn
    >>> model = [nn.Linear(64, 32), Tensor.relu, nn.Linear(32, 10)]
    >>> _ = polygrad.quantize(model, "int8", skip=["2"])
    >>> model[0].weight
    <PackedWeight int8 (32, 64) on CPU, 2176 bytes>
    >>> Tensor.ones(1, 64).sequential(model).shape
    (1, 10)
    >>> _ = polygrad.quantize(model, "int8", skip=["2"], activations="float32")
    >>> model[0].weight.activations
    'float32'
    """
    places = find_weights_to_pack(model, kind, skip, activations)
    if activations is not None:
        _change_activations(find_packable_weights(model, skip).values(), activations)
    readers = Counter(id(place.weight) for place in places.values())
    packed_by_id: dict[int, PackedWeight] = {}  # weights that several layers share are packed once
    for place in places.values():
        weight = place.weight
        assert isinstance(weight, Tensor)
        packed_weight = packed_by_id.get(id(weight))
        if packed_weight is None:
            packed_weight = PackedWeight.of(weight, kind, activations_of(weight.shape, activations))
        if readers[id(weight)] > 1:
            packed_by_id[id(weight)] = packed_weight
        place.put(packed_weight)
    return model


def _change_activations(places: Iterable[WeightLocation], activations: str) -> None:
    """Give the weights that are packed these activations. Weights that several layers share stay shared."""
    places_by_id: dict[int, list[WeightLocation]] = {}
    for place in places:
        if isinstance(place.weight, PackedWeight):
            places_by_id.setdefault(id(place.weight), []).append(place)
    for same_weight in places_by_id.values():
        weight = same_weight[0].weight
        assert isinstance(weight, PackedWeight)
        weight = round_activations(weight, activations)
        for place in same_weight:
            place.put(weight)
