"""Functions made with CBuilder, run on arrays: many are compiled at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from renderer.llvm_functions import numpy_type, same

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.engine.backends.native import with_disk_cache
from polygrad.renderer.builder import Address
from polygrad.renderer.cstyle.base import FunctionText, module
from polygrad.renderer.cstyle.c import CBuilder
from polygrad.renderer.cstyle.c_compile import compile_c, compiler_version, host_target
from polygrad.runtime.cpu.cc import CCRuntime
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program
from polygrad.uop.ops import Ops

LANES = (1, 4, 16)
RUNTIME = CCRuntime()
AVX512 = Target("CC", 64, 32, fma=True)


@dataclass
class _Case:
    what: str
    arrays: list[np.ndarray]  # the first is written
    want: np.ndarray
    out: DType
    loose_zero: bool


class Functions:
    """`add` one after the other, then `check` them all."""

    def __init__(self, target: Target = AVX512, native_half: bool = False) -> None:
        self.target, self.native_half = target, native_half
        self._functions: list[FunctionText] = []
        self._cases: list[_Case] = []

    def builder(self) -> CBuilder:
        return CBuilder(self.target, self.native_half)

    def compile(self, source: str) -> bytes:
        return with_disk_cache(compile_c, f"{compiler_version()} {host_target().processor}")(source)

    @property
    def name(self) -> str:
        """Of the next function."""
        return f"k{len(self._functions)}"

    def add(
        self, what: str, function: FunctionText, arrays: Sequence[np.ndarray], want: np.ndarray, out: DType,
        loose_zero: bool = False,
    ) -> None:  # fmt: skip
        """A function of the name that `name` was, whose first array is to become `want`."""
        self._functions.append(function)
        self._cases.append(_Case(what, [np.array(a) for a in arrays], want, out, loose_zero))

    def elementwise(
        self,
        what: str,
        args: Sequence[tuple[DType, np.ndarray]],
        want: np.ndarray,
        out: DType,
        body: Callable[[CBuilder, list[Any], int], Any],
        loose_zero: bool = False,
        widths: Sequence[int] = (1, 16),
    ) -> None:
        """`body(builder, operands, lanes)` over whole arrays, `lanes` elements a round."""
        n = len(args[0][1])
        for lanes in widths:
            b = self.builder()
            (result, *operands), _ = b.begin(self.name, [out, *(d for d, _ in args)], [])
            i = b.loop(b.const(dtypes.index, n // lanes, 1))
            at = b.alu(Ops.MUL, dtypes.index, [i, b.const(dtypes.index, lanes, 1)], 1)
            loaded = [b.load(Address(p, at), d, lanes) for p, (d, _) in zip(operands, args, strict=True)]
            b.store(Address(result, at), body(b, loaded, lanes), out, lanes)
            b.end_loop()
            arrays = [np.zeros(n, numpy_type(out)), *(a for _, a in args)]
            self.add(f"{what}, {lanes} lanes", b.finish(), arrays, want, out, loose_zero)

    def check(self) -> None:
        code = self.compile(module(self._functions))
        for i, case in enumerate(self._cases):
            kernel = Kernel(f"k{i}", code, len(case.arrays), language="library", writes=(0,))
            specs = tuple(BufferSpec(a.nbytes, "uint8", "state") for a in case.arrays)
            launch = Launch(0, tuple(Binding(j) for j in range(len(specs))))
            handles = [RUNTIME.allocate(max(a.nbytes, 1)) for a in case.arrays]
            for handle, array in zip(handles, case.arrays, strict=True):
                RUNTIME.write(handle, 0, memoryview(np.ascontiguousarray(array)).cast("B"))
            RUNTIME.load(Program("CC", "", specs, (kernel,), (launch,))).run(handles, None, {})
            first = case.arrays[0]
            got = np.frombuffer(RUNTIME.read(handles[0], 0, first.nbytes), first.dtype)
            for handle in handles:
                RUNTIME.free(handle)
            try:
                same(got, case.want, case.out, case.loose_zero)
            except AssertionError as e:
                raise AssertionError(f"{case.what}:\n{self._functions[i]}") from e
