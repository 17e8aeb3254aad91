"""Quantized matrices that replace layers' weights.

A PackedWeight has the operations that layers use: rows by index, and the transpose for a product. Each is a
lazy expression over the bytes, computed where it is read: in registers, within the product's kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import prod
from polygrad.nn.parameter import keep_as_planes
from polygrad.nn.quantization import find_kind, find_kind_to_pack
from polygrad.tensor.tensor import Tensor


class PackedWeight:
    """A matrix (*rows, columns) of float32 numbers that are stored in few bits.

    `kind`: a key of `polygrad.nn.quantization.KINDS`. `planes`: its parts by name, (*rows, blocks, ...). They
    are computed and copied, and become attributes, as buffers: they are saved with the model and not trained.
    Raises ArgumentError for an unknown kind.

    >>> from polygrad import Tensor
    >>> from polygrad.nn.packed import PackedWeight
    >>> packed = PackedWeight.of(Tensor.ones(2, 64), "int8")
    >>> packed.shape, packed.nbytes(), packed.dense()[1, :2].tolist()
    ((2, 64), 136, [1.0, 1.0])
    """

    def __init__(self, kind: str, planes: Mapping[str, Tensor]) -> None:
        self.kind = kind.lower()
        copies = {name: plane.detach().clone() for name, plane in planes.items()}
        first, *other_planes = copies.values()
        first.realize(*other_planes)
        keep_as_planes(copies.values())
        self._names = tuple(copies)
        vars(self).update(copies)
        numbers, axes = find_kind(kind).dense(copies).shape, copies["scales"].ndim
        self.columns = prod(numbers[axes - 1 :])

    @classmethod
    def of(cls, weight: Tensor, kind: str) -> PackedWeight:
        """Quantize floats (*rows, columns) to a kind.

        Raises ArgumentError for a kind that cannot be written or columns that are not a multiple of its
        blocks, ShapeError for fewer than two axes.
        """
        format = find_kind_to_pack(kind)
        if weight.ndim < 2:
            raise ShapeError(f"quantize: expected a matrix, got shape {weight.shape}")
        *rows, columns = weight.shape
        block = format.block or columns
        if not columns or columns % block:
            raise ArgumentError(
                f"quantize: {kind}: expected a multiple of {block or 1} columns, got {columns}"
            )
        blocks = weight.detach().float().reshape(*rows, columns // block, block)
        assert format.pack is not None
        with Tensor.no_grad():
            return cls(kind, format.pack(blocks))

    @classmethod
    def of_blocks(cls, blocks: Tensor, kind: str) -> PackedWeight:
        """The matrix of ggml's blocks of a kind, uint8 (*rows, blocks, bytes of a block).

        Raises ArgumentError, ShapeError.
        """
        split, nbytes = find_kind(kind).split, find_kind(kind).nbytes
        if split is None:
            raise ArgumentError(f"quantize: {kind} is no kind of ggml")
        if blocks.ndim < 2 or blocks.shape[-1] != nbytes or blocks.dtype is not dtypes.uint8:
            raise ShapeError(
                f"quantize: {kind}: expected uint8 of shape (..., {nbytes}), got {blocks.dtype} "
                f"{blocks.shape}"
            )
        return cls(kind, split(blocks))

    @property
    def planes(self) -> dict[str, Tensor]:
        """The parts by name."""
        return {name: vars(self)[name] for name in self._names}

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the matrix."""
        return (*self.planes["scales"].shape[:-1], self.columns)

    @property
    def ndim(self) -> int:
        """The number of axes of the matrix."""
        return self.planes["scales"].ndim

    @property
    def dtype(self) -> DType:
        """The dtype of the numbers, float32."""
        return dtypes.float32

    @property
    def device(self) -> Any:
        """The device of the planes."""
        return self.planes["scales"].device

    def numel(self) -> Any:
        """The number of elements of the matrix."""
        return prod(self.shape)

    def nbytes(self) -> int:
        """Bytes of all planes."""
        return sum(plane.nbytes() for plane in self.planes.values())

    def dense(self) -> Tensor:
        """The matrix, a lazy expression over the planes."""
        return self._matrix(self.planes)

    def transpose(self, dim0: int = 1, dim1: int = 0) -> Tensor:
        """The matrix with two axes exchanged, as `dense`."""
        return self.dense().transpose(dim0, dim1)

    @property
    def T(self) -> Tensor:
        """The matrix with its axes in the other order."""
        return self.dense().T

    def __getitem__(self, index: Any) -> Any:
        """Rows, along the first axis. A slice is a PackedWeight, a copy. An integer or a Tensor of integers
        gives float rows, and only the bytes of these are read. Raises ArgumentError for other indices.
        """
        if not isinstance(index, (int, slice, Tensor)):
            raise ArgumentError(
                f"packed weight: expected rows by an int, a slice or a Tensor, got {type(index).__name__}"
            )
        parts = {name: plane[index] for name, plane in self.planes.items()}
        return PackedWeight(self.kind, parts) if isinstance(index, slice) else self._matrix(parts)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f"<PackedWeight {self.kind} {self.shape} on {self.device}, {self.nbytes()} bytes>"

    def _matrix(self, planes: Mapping[str, Tensor]) -> Tensor:
        rows = planes["scales"].shape[:-1]
        return find_kind(self.kind).dense(planes).reshape(*rows, self.columns)
