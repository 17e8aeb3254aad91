"""Compiled kernels as they are kept: in the memory of the process, and as bytes for the disk."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass

from polygrad.codegen.lower import signature
from polygrad.engine.cache import DiskCache
from polygrad.runtime.program import Kernel
from polygrad.uop.node import UOp

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class Built:
    """A compiled kernel, which of its AST's PARAMs it still has (simplification may have dropped some), and
    the bytes of each buffer that it wants for itself."""

    kernel: Kernel
    slots: tuple[int, ...]
    local: tuple[int, ...] = ()

    def to_bytes(self) -> bytes:
        """u32 length (little-endian) | JSON | the kernel's code."""
        k = self.kernel
        fields = [k.name, k.n_buffers, k.variables, k.language, self.slots, self.local]
        head = json.dumps(fields).encode()
        return _LENGTH.pack(len(head)) + head + k.code

    @staticmethod
    def from_bytes(data: bytes) -> Built:
        """What `to_bytes` wrote; the cache sees to it that it is nothing else."""
        (length,) = _LENGTH.unpack_from(data)
        start = _LENGTH.size + length
        name, n_buffers, variables, language, slots, local = json.loads(data[_LENGTH.size : start])
        kernel = Kernel(name, data[start:], n_buffers, tuple(variables), language=language)
        return Built(kernel, tuple(slots), tuple(local))


def built_key(ast: UOp, *how: object) -> str:
    """The key of the kernel that an AST becomes. `how`: all that its code depends on beside the AST and
    polygrad's own code."""
    return DiskCache.key(f"kernel {how!r}", signature(ast.toposort()))
