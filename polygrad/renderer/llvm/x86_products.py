"""Instructions of x86 that multiply words of several numbers, as LLVM names them: dot products of AVX-512,
and products of matrices in the tile registers of AMX.
"""

from __future__ import annotations

from typing import NamedTuple

from polygrad.dtype import dtypes
from polygrad.uop.args import Dot


class X86Dot(NamedTuple):
    """A dot product of x86: LLVM's name for it without the number of bits, and the feature that has it. For
    each lane it takes `per_lane` elements of a type."""

    name: str
    feature: str
    total: str = "i32"
    element: str = "i32"
    per_lane: int = 1

    def types(self, lanes: int) -> tuple[str, str]:
        """Of the sums of 4 lanes and more, and of an operand."""
        return f"<{lanes} x {self.total}>", f"<{self.per_lane * lanes} x {self.element}>"


# The instructions of x86, by kind. Sums of integers are exact, modulo 2**32.
X86_DOTS = {
    Dot(dtypes.uint8, dtypes.int8): X86Dot("llvm.x86.avx512.vpdpbusd", "avx512vnni"),
    Dot(dtypes.int16, dtypes.int16): X86Dot("llvm.x86.avx512.vpdpwssd", "avx512vnni"),
    Dot(dtypes.bfloat16, dtypes.bfloat16): X86Dot(
        "llvm.x86.avx512bf16.dpbf16ps", "avx512bf16", "float", "bfloat", 2
    ),
}


class X86Matmul(NamedTuple):
    """A product of matrices in AMX's tile registers: LLVM's name for it, and the feature that has it."""

    name: str
    feature: str


X86_MATMULS = {
    Dot(dtypes.uint8, dtypes.int8): X86Matmul("llvm.x86.tdpbusd.internal", "amx-int8"),
    Dot(dtypes.int8, dtypes.uint8): X86Matmul("llvm.x86.tdpbsud.internal", "amx-int8"),
    Dot(dtypes.bfloat16, dtypes.bfloat16): X86Matmul("llvm.x86.tdpbf16ps.internal", "amx-bf16"),
}
TILE = "x86_amx"
# The functions of tiles, and their types. The first operands are the numbers of rows and of bytes in a row.
TILE_FUNCTIONS = {
    "llvm.x86.tilezero.internal": "x86_amx (i16, i16)",
    "llvm.x86.tileloadd64.internal": "x86_amx (i16, i16, ptr, i64)",
    "llvm.x86.tilestored64.internal": "void (i16, i16, ptr, i64, x86_amx)",
    **{m.name: "x86_amx (i16, i16, i16, x86_amx, x86_amx, x86_amx)" for m in X86_MATMULS.values()},
}
