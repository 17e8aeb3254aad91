"""Strided loads as the emitter writes them: they read nothing beyond the elements of their lanes."""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np
import pytest
from renderer.llvm_functions import RUNTIME, builder

from polygrad.codegen.lower.passes import LoweringContext, run_passes
from polygrad.dtype import dtypes
from polygrad.renderer.emit import emit
from polygrad.renderer.llvm.compile import compile_ir, host_target
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program
from polygrad.uop.args import Axis, AxisKind, Param
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

LANES = 16


def strided_copy(step: int, span: int) -> Program:
    """out[lane] = x[start + step * lane], of `span` elements x."""
    out, x = (UOp(Ops.PARAM, dtypes.float32, (), Param(i, n)) for i, n in enumerate((LANES, span)))
    lane = UOp.range(LANES, Axis((0,), AxisKind.LANE))
    position = lane * step + (span - 1 if step < 0 else 0)
    value = UOp(Ops.LOAD, dtypes.float32, (UOp(Ops.INDEX, dtypes.float32, (x, position)),))
    store = UOp(Ops.STORE, dtypes.void, (UOp(Ops.INDEX, dtypes.float32, (out, lane)), value))
    linear = run_passes(UOp.sink(store), LoweringContext(host_target()), after="lower-stages")
    assert isinstance(linear, list)
    text = emit("k", linear, builder())
    assert "shufflevector" in text, "expected blocks, not a load for each lane"
    specs = (BufferSpec(4 * LANES, "uint8", "state"), BufferSpec(4 * span, "uint8", "state"))
    kernel = Kernel("k", compile_ir(text), 2, language="object", writes=(0,))
    return Program("CPU", "", specs, (kernel,), (Launch(0, (Binding(0), Binding(1))),))


@pytest.mark.skipif(sys.platform != "linux", reason="mprotect by way of the C library")
@pytest.mark.parametrize("at_end", [False, True], ids=["page starts", "page ends"])
@pytest.mark.parametrize("step", [-3, -1, 2, 3, 7])
def test_strided_lanes_read_no_further_than_their_elements(step: int, at_end: bool) -> None:
    """The source starts or ends with a page, between two that a read of would end the process."""
    span, page = abs(step) * (LANES - 1) + 1, mmap.PAGESIZE
    pages = mmap.mmap(-1, 3 * page, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    start = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    protect = ctypes.CDLL(None).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for number in (0, 2):
        assert protect(start + number * page, page, 0) == 0
    x = np.arange(span, dtype=np.float32)
    source = start + 2 * page - x.nbytes if at_end else start + page
    ctypes.memmove(source, x.ctypes.data, x.nbytes)
    out = RUNTIME.allocate(4 * LANES)
    RUNTIME.load(strided_copy(step, span)).run([out, source], None, {})
    got = np.frombuffer(RUNTIME.read(out, 0, 4 * LANES), np.float32)
    RUNTIME.free(out)
    np.testing.assert_array_equal(got, x[::step])
