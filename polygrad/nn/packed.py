"""Quantized matrices that replace layers' weights.

A PackedWeight has the operations that layers use: rows by index, and the transpose for a product. Each is a
lazy expression over the bytes, computed where it is read: in registers, within the product's kernel. `linear`
is the product with activations rounded to 8 bits, where the weight asks for it; then its planes are stored in
panels (`panels.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from polygrad.dtype import DType, dtypes
from polygrad.engine.devices import Device
from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import prod
from polygrad.nn.integer_products import BYTE_PLANES, CODES, multiply_integers
from polygrad.nn.panels import by_rows, to_panels, with_rows_first
from polygrad.nn.parameter import keep_as_planes
from polygrad.nn.quantization import find_kind, find_kind_to_pack
from polygrad.tensor.tensor import Tensor

ACTIVATIONS = ("float32", "int8")


class PackedWeight:
    """A matrix (*rows, columns) of float32 numbers that are stored in few bits.

    `kind`: a key of `polygrad.nn.quantization.KINDS`. `planes`: its parts by name, (*rows, blocks, ...). They
    are computed and copied, and become attributes, as buffers: they are saved with the model and not trained.
    `activations`: `float32`, or `int8`: `linear` rounds its input to integers of 8 bits, in blocks with a
    scale. Raises ArgumentError for an unknown kind, and for `int8` where `takes_int8` is false.

    >>> from polygrad import Tensor
    >>> from polygrad.nn.packed import PackedWeight
    >>> packed = PackedWeight.of(Tensor.ones(2, 64), "int8")
    >>> packed.shape, packed.nbytes(), packed.dense()[1, :2].tolist()
    ((2, 64), 136, [1.0, 1.0])
    """

    def __init__(self, kind: str, planes: Mapping[str, Tensor], activations: str = "float32") -> None:
        self.kind, self.activations = kind.lower(), activations
        numbers, axes = find_kind(kind).dense(planes).shape, planes["scales"].ndim
        self.columns = prod(numbers[axes - 1 :])
        check_activations(activations)
        self.rows = planes["scales"].shape[:-1]
        in_panels = activations == "int8"
        if in_panels and not takes_int8(self.kind, (*self.rows, self.columns)):
            raise ArgumentError(
                f"activations: int8 is for matrices of the kinds {', '.join(CODES)} whose rows have a "
                f"multiple of 32 numbers, got {kind} and {self.columns} columns in {axes} axes"
            )
        parts = {
            name: (to_panels(plane, name in BYTE_PLANES) if in_panels else plane).detach().clone()
            for name, plane in planes.items()
        }
        first, *others = parts.values()
        first.realize(*others)
        keep_as_planes(parts.values())
        self._names = tuple(parts)
        vars(self).update(parts)

    @classmethod
    def of(cls, weight: Tensor, kind: str, activations: str | None = "float32") -> PackedWeight:
        """Quantize floats (*rows, columns) to a kind. `activations`: see `with_activations`.

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
        activations = _resolve_activations(activations, kind, weight.shape, weight.device)
        with Tensor.no_grad():
            return cls(kind, format.pack(blocks), activations)

    @classmethod
    def of_blocks(cls, blocks: Tensor, kind: str, activations: str | None = "float32") -> PackedWeight:
        """The matrix of ggml's blocks of a kind, uint8 (*rows, blocks, bytes of a block). `activations`: see
        `with_activations`. Raises ArgumentError, ShapeError.
        """
        split, nbytes = find_kind(kind).split, find_kind(kind).nbytes
        if split is None:
            raise ArgumentError(f"quantize: {kind} is no kind of ggml")
        if blocks.ndim < 2 or blocks.shape[-1] != nbytes or blocks.dtype is not dtypes.uint8:
            raise ShapeError(
                f"quantize: {kind}: expected uint8 of shape (..., {nbytes}), got {blocks.dtype} "
                f"{blocks.shape}"
            )
        numbers = find_kind(kind).block or 1
        shape = (*blocks.shape[:-2], blocks.shape[-2] * numbers)
        return cls(kind, split(blocks), _resolve_activations(activations, kind, shape, blocks.device))

    @property
    def planes(self) -> dict[str, Tensor]:
        """The parts by name, (*rows, blocks, ...); views of those in panels."""
        parts = {name: vars(self)[name] for name in self._names}
        if self.activations == "float32":
            return parts
        (rows,) = self.rows
        return {name: by_rows(plane, rows, name in BYTE_PLANES) for name, plane in parts.items()}

    def with_activations(self, activations: str | None = None) -> PackedWeight:
        """This matrix with other activations: a copy, if they are others. None: `int8` where it takes them
        and its device multiplies bytes. Raises ArgumentError as the class does.

        >>> from polygrad import Tensor
        >>> from polygrad.nn.packed import PackedWeight
        >>> PackedWeight.of(Tensor.ones(32, 64), "q8_0").with_activations("int8").activations
        'int8'
        """
        activations = _resolve_activations(activations, self.kind, self.shape, self.device)
        return self if activations == self.activations else PackedWeight(self.kind, self.planes, activations)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of the matrix."""
        return (*self.rows, self.columns)

    @property
    def ndim(self) -> int:
        """The number of axes of the matrix."""
        return len(self.rows) + 1

    @property
    def dtype(self) -> DType:
        """The dtype of the numbers, float32."""
        return dtypes.float32

    @property
    def device(self) -> Any:
        """The device of the planes."""
        return vars(self)["scales"].device

    def numel(self) -> Any:
        """The number of elements of the matrix."""
        return prod(self.shape)

    def nbytes(self) -> int:
        """Bytes of all planes."""
        return sum(vars(self)[name].nbytes() for name in self._names)

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
        """Rows, along the first axis. A slice gives a PackedWeight, a copy. An int or a Tensor gives float32
        rows as `Tensor.__getitem__` does, and reads the bytes of these rows alone: one is (columns,), those
        of a Tensor of integers are (*its shape, columns). Raises ArgumentError for other indices, AxisError,
        DTypeError.
        """
        if not isinstance(index, (int, slice, Tensor)):
            raise ArgumentError(
                f"packed weight: expected rows by an int, a slice or a Tensor, got {type(index).__name__}"
            )
        parts = {name: plane[index] for name, plane in self.planes.items()}
        if isinstance(index, slice):
            return PackedWeight(self.kind, parts, self.activations)
        return self._matrix(parts)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __repr__(self) -> str:
        return f"<PackedWeight {self.kind} {self.shape} on {self.device}, {self.nbytes()} bytes>"

    def multiply(self, x: Tensor) -> Tensor:
        """x (..., columns) times the transpose of a matrix whose activations are `int8`: float32 (..., rows).

        Raises ShapeError.
        """
        if x.ndim < 1 or x.shape[-1] != self.columns:
            raise ShapeError(f"linear: expected (..., {self.columns}) for {self!r}, got {x.shape}")
        parts = {name: with_rows_first(vars(self)[name], name in BYTE_PLANES) for name in self._names}
        out = multiply_integers(x, CODES[self.kind](parts), 2).flatten(-2)
        (rows,) = self.rows
        return out if out.shape[-1] == rows else out.contiguous()[..., :rows]  # tiles are of whole panels

    def _matrix(self, planes: Mapping[str, Tensor]) -> Tensor:
        rows = planes["scales"].shape[:-1]
        return find_kind(self.kind).dense(planes).reshape(*rows, self.columns)


def check_activations(activations: str | None) -> None:
    """Raises ArgumentError for a name that is none of `ACTIVATIONS`."""
    if activations is not None and activations not in ACTIVATIONS:
        raise ArgumentError(f"activations: expected one of {', '.join(ACTIVATIONS)}, got {activations!r}")


def takes_int8(kind: str, shape: tuple[Any, ...]) -> bool:
    """Whether a packed matrix of this shape can be multiplied by activations in 8 bits: it has integer codes,
    two axes, and whole blocks."""
    return kind.lower() in CODES and len(shape) == 2 and shape[-1] % 32 == 0


def _resolve_activations(activations: str | None, kind: str, shape: tuple[Any, ...], device: Any) -> str:
    """`activations`, or if they are None those of a packed matrix of this shape on `device`."""
    if activations is None:
        return "int8" if takes_int8(kind, shape) and _multiplies_bytes(device) else "float32"
    return activations


def _multiplies_bytes(device: str | Sequence[str]) -> bool:
    """Whether one device has dot products of bytes; a matrix on several has floats."""
    return isinstance(device, str) and any(d.a.itemsize == 1 for d in Device.backend(device).target.dots)


def linear(x: Tensor, weight: Tensor | PackedWeight, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias: (..., columns), (rows, columns) and (rows,) to (..., rows).

    Of a PackedWeight whose activations are `int8`, the product is of integers. It is of floats where a
    gradient of `x` may be asked for, as rounding has none, and where `x` is float64. A block of `x` with an
    infinite number gives NaN in a product of integers. Raises ShapeError.

    >>> from polygrad import Tensor
    >>> from polygrad.nn.packed import PackedWeight, linear
    >>> weight = PackedWeight.of(Tensor.ones(16, 64), "q8_0").with_activations("int8")
    >>> linear(Tensor.ones(1, 64), weight)[0, :2].tolist()
    [64.0, 64.0]
    """
    is_packed = isinstance(weight, PackedWeight) and weight.activations == "int8"
    if not is_packed or x.requires_grad or x.dtype is dtypes.float64:
        if isinstance(weight, Tensor):
            return x._linear_of_rows(weight, bias)
        return x.linear(weight.transpose(), bias)
    out = weight.multiply(x)
    return out if bias is None else out + bias
