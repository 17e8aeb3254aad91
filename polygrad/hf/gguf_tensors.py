"""A tensor of a GGUF file where it is stored: rows of it can be chosen, and what is left is read once, in the
form that the model needs.

Of a file that is mapped into the device's memory, large tensors of floats are its pages, without a copy, and
blocks of few bits are read from there into their planes.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace

from polygrad.dtype import DType, dtypes
from polygrad.nn.files import tensor_of_bytes
from polygrad.nn.gguf import Blocks
from polygrad.nn.packed import PackedWeight
from polygrad.nn.quantization import dequantize
from polygrad.tensor.tensor import Tensor

Shape = tuple[int, ...]
_COPIED_BYTES = 1 << 16  # smaller tensors are copied, so that they do not keep the file mapped


@dataclass(frozen=True)
class StoredTensor:
    """`blocks`: its bytes. `heads`: its rows are adjacent rotary pairs of as many heads in the file, and
    halves in the model; 0: they are as the model has them. `added`: what numbers have more than the model's.
    `is_mapped`: the bytes are in memory that `device` uses, with 64 readable bytes before and after them."""

    blocks: Blocks
    device: str | None
    heads: int = 0
    added: int = 0
    is_mapped: bool = False

    @property
    def shape(self) -> Shape:
        return self.blocks.shape

    @property
    def is_packed(self) -> bool:
        """Whether it becomes a PackedWeight: a matrix, or several, in blocks of few bits."""
        return self.blocks.encoding.dtype is None and len(self.shape) > 1 and 0 not in self.shape

    def __getitem__(self, rows: slice) -> StoredTensor:
        """Some rows, one after the other; not of a tensor with `heads`."""
        assert not self.heads
        first, last, _ = rows.indices(self.shape[0])
        row = len(self.blocks.data) // self.shape[0]  # bytes, or elements of a Tensor
        part = replace(
            self.blocks,
            shape=(last - first, *self.shape[1:]),
            data=self.blocks.data[first * row : last * row],
        )
        return replace(self, blocks=part)

    def pack(self, activations: str | None) -> PackedWeight:
        """The matrix as its file has it, for products with these activations: see
        `PackedWeight.with_activations`."""
        blocks = self._permute(self._block_bytes())
        return PackedWeight.of_blocks(blocks, self.blocks.encoding.name, activations)

    def read(self) -> Tensor:
        """The numbers: in the file's dtype, or lazily in float32."""
        encoding = self.blocks.encoding
        if encoding.dtype is None:
            return dequantize(encoding.name, self._permute(self._block_bytes())).reshape(self.shape)
        value = self._permute(self._tensor(encoding.dtype, self.shape))
        return value.float() - self.added if self.added else value

    def _block_bytes(self) -> Tensor:
        """uint8 (*rows, blocks, bytes of a block)."""
        encoding = self.blocks.encoding
        *rows, columns = self.shape
        return self._tensor(dtypes.uint8, (*rows, columns // encoding.elements, encoding.nbytes))

    def _tensor(self, dtype: DType, shape: Shape) -> Tensor:
        data = self.blocks.data
        if self.is_mapped and len(data) >= _COPIED_BYTES:
            owner = (ctypes.c_char * len(data)).from_buffer(data)
            address = ctypes.addressof(owner)
            if address % dtype.itemsize == 0:
                return Tensor.from_blob(address, shape, dtype, self.device, owner)
        return tensor_of_bytes(data, dtype, shape, self.device)

    def _permute(self, x: Tensor) -> Tensor:
        """Permute rows from adjacent rotary pairs to halves: the first elements of all pairs come first."""
        if not self.heads:
            return x
        rows, *sizes = x.shape
        pairs = x.reshape(self.heads, rows // self.heads // 2, 2, *sizes)
        return pairs.transpose(1, 2).reshape(rows, *sizes)
