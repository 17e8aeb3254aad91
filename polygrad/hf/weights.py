"""Gives a model the weights of a checkpoint, packed where the file has them so or they are to be."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from polygrad import nn
from polygrad.dtype import DType
from polygrad.hf.gguf_tensors import StoredTensor
from polygrad.models.instance import NOT_QUANTIZED
from polygrad.models.names import Names, find_sources
from polygrad.nn.packed import check_activations
from polygrad.nn.quantize import (
    activations_of,
    find_packable_weights,
    find_weights_to_pack,
    round_activations,
)
from polygrad.tensor.tensor import Tensor
from polygrad.uop.ops import Ops

Value = Tensor | nn.PackedWeight | StoredTensor


class WeightReader:
    """The weights of `module`, of which `sources` says by name where they are in `checkpoint`. They are read
    in any order: all at once by `read_all`, or one by one by `read`.

    `dtype`: what floats become. `quantize`, `activations`, `device`: see `load_hf`. Raises ModelError for a
    checkpoint that does not fit, ArgumentError.
    """

    def __init__(
        self,
        module: Any,
        names: Names,
        checkpoint: Any,
        dtype: DType,
        device: str | None = None,
        quantize: str | None = None,
        activations: str | None = None,
    ) -> None:
        self._state = nn.state.get_state_dict(module)
        shapes = {name: tuple(t.shape) for name, t in self._state.items()}
        self.sources = find_sources(shapes, names, checkpoint.shapes, checkpoint.where)
        self.checkpoint, self._dtype, self._device = checkpoint, dtype, device
        self._kind, self._activations = quantize, activations
        self._places = find_packable_weights(module)
        check_activations(activations)
        self._to_pack = (
            {} if quantize is None else find_weights_to_pack(module, quantize, NOT_QUANTIZED, activations)
        )

    @property
    def used(self) -> set[str]:
        """The tensors of the checkpoint that weights are read from."""
        return {n for source in self.sources.values() for n in source.names}

    def read_all(self) -> None:
        """Read all weights. The tensor read last is kept: parts of it may be asked for one by one."""
        names: Iterable[str] = self.sources
        if sys.stderr.isatty():
            names = nn.data.progress(names, "loading", len(self.sources))
        last: dict[str, Value] = {}

        def read(name: str) -> Any:
            if name not in last:
                last.clear()
                last[name] = self.checkpoint.read(name, self._device)
            return last[name]

        for name in names:
            self._put(name, self.sources[name].read([read(n) for n in self.sources[name].names]))

    def read(self, name: str) -> None:
        """Read one weight, all of whose tensors are there."""
        source = self.sources[name]
        self._put(name, source.read([self.checkpoint.read(n, self._device) for n in source.names]))

    def sizes(self, packed_bytes: Mapping[str, int]) -> list[int]:
        """The number of bytes that each weight takes, or a little less. `packed_bytes`: of the tensors that
        the file has in few bits."""
        return [self._size(name, packed_bytes) for name in self.sources]

    def _size(self, name: str, packed_bytes: Mapping[str, int]) -> int:
        tensor, source = self._state[name], self.sources[name]
        count = int(tensor.numel())
        if name in self._places and source.names[0] in packed_bytes:
            first, last, rows = source.part or (0, 1, 1)
            return sum(packed_bytes[n] for n in source.names) * (last - first) // rows
        if name in self._to_pack:
            return count // 2
        return count * (self._dtype if tensor.dtype.is_float else tensor.dtype).itemsize

    def _put(self, name: str, value: Value) -> None:
        """Give a weight its value, which is converted and packed."""
        with Tensor.no_grad():
            if isinstance(value, StoredTensor):
                if value.is_packed and name in self._places:
                    self._places[name].put(value.pack(activations_of(value.shape, self._activations)))
                    return
                value = value.read()
            if isinstance(value, nn.PackedWeight):
                if name in self._places:
                    self._places[name].put(round_activations(value, self._activations))
                    return
                value = value.dense()
            if self._kind is not None and name in self._to_pack:
                asked = activations_of(value.shape, self._activations)
                self._to_pack[name].put(nn.PackedWeight.of(value, self._kind, asked))
                return
            # integers, as positions and counts, keep their dtype; a value without other owners is not copied
            weight = self._state[name]
            value = value.cast(self._dtype if weight.dtype.is_float else weight.dtype)
            weight._become(value if _is_own(value) else value.clone())
            weight.realize()


def _is_own(value: Tensor) -> bool:
    """Whether a value is memory as it was read, not a part or a conversion of it."""
    node = value.uop
    while node.op is Ops.RESHAPE:
        node = node.src[0]
    return node.op is Ops.BUFFER
