"""The emulated machine finds what is wrong with a kernel, and nothing in one that is right."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program
from tests.gpu_emulation.device import EmulatedRuntime, EmulationError

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")
HEADS = {
    "cuda": 'extern "C" __global__ void k(float *out, float *x, int n) {\n',
    "msl": "#include <metal_stdlib>\nusing namespace metal;\nkernel void k(device float *out [[buffer(0)]],\n"
    "device float *x [[buffer(1)]], constant int &n [[buffer(2)]],\n"
    "uint3 workgroup [[threadgroup_position_in_grid]],\n"
    "uint3 invocation [[thread_position_in_threadgroup]]) {\n",
}
WORDS = {
    "cuda": {
        "SHARED": "__shared__",
        "BARRIER": "__syncthreads();",
        "SHUFFLE(": "__shfl_xor_sync(0xffffffffu, ",
        "G": "blockIdx.x",
        "L": "threadIdx.x",
    },
    "msl": {
        "SHARED": "threadgroup",
        "BARRIER": "threadgroup_barrier(mem_flags::mem_threadgroup);",
        "SHUFFLE(": "simd_shuffle_xor(",
        "G": "workgroup.x",
        "L": "invocation.x",
    },
}
REVERSED = """
  SHARED float shared0[8];
  int l = (int)L;
  shared0[l] = x[(int)G * 8 + l];
  BARRIER
  out[(int)G * 8 + l] = shared0[7 - l];
"""


def run(body, language="cuda", checked=True, size=16, grid=(2, 1, 1), invocations=8, writes=(0,)):
    """What a kernel of this body makes of 0, 1, 2, ..."""
    for word, spelled in WORDS[language].items():
        body = (
            body.replace(word, spelled) if len(word) > 1 else body.replace(f"(int){word}", f"(int){spelled}")
        )
    text = HEADS[language] + body + "}\n"
    runtime = EmulatedRuntime(language, checked)
    kernel = Kernel(
        "k", text.encode(), 2, ("n",), language=language, writes=writes, workgroup=(invocations, 1, 1)
    )
    specs = (BufferSpec(size, "float32", "output"), BufferSpec(size, "float32", "input"))
    launch = Launch(0, (Binding(0), Binding(1)), grid)
    program = Program(runtime.name, "", specs, (kernel,), (launch,))
    buffers = [runtime.allocate(4 * size) for _ in specs]
    runtime.write(buffers[1], 0, memoryview(np.arange(size, dtype=np.float32)).cast("B"))
    runtime.load(program).run(buffers, None, {"n": 3})
    return np.frombuffer(runtime.read(buffers[0], 0, 4 * size), np.float32), runtime.traffic


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("language", ["cuda", "msl"])
def test_workgroups_share_memory_and_wait_at_barriers(language, checked):
    got, traffic = run(REVERSED, language, checked)
    assert got.tolist() == [*range(7, -1, -1), *range(15, 7, -1)]
    assert (traffic.read, traffic.written) == ((64, 64) if checked else (0, 0))


@pytest.mark.parametrize("language", ["cuda", "msl"])
def test_variables_are_given(language):
    assert run("out[(int)G * 8 + (int)L] = (float)n;", language)[0].tolist() == [3.0] * 16


EXCHANGED = "out[(int)G * 32 + (int)L] = SHUFFLE(x[(int)G * 32 + (int)L], 2);"


@pytest.mark.parametrize("language", ["cuda", "msl"])
def test_subgroups_exchange_values(language):
    got, _ = run(EXCHANGED, language, size=64, invocations=32)
    assert got.tolist() == [float(i ^ 2) for i in range(64)]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (
            "int l = (int)L; float y = 0.0f; if (l < 4) y = SHUFFLE(x[l], 2);\n out[(int)G * 8 + l] = y;",
            "divergence: 4 invocations of workgroup 0 wait at a barrier that 4 never come to",
        ),
        (
            "int l = (int)L; float y;\n if (l < 4)\n y = SHUFFLE(x[l], 2);\n else\n y = SHUFFLE(1.0f, 2);\n"
            "out[(int)G * 8 + l] = y;",
            "divergence: invocations of workgroup 0 wait at different barriers",
        ),
        (
            # an exchange orders no memory
            "SHARED float shared0[8]; int l = (int)L; shared0[l] = SHUFFLE(x[l], 2);\n"
            "float y = SHUFFLE(x[l], 2);\n out[(int)G * 8 + l] = shared0[7 - l] + y;",
            "race: byte",
        ),
        (REVERSED.replace("BARRIER", ""), "(undefined|race): byte"),
        ("out[0] = x[0];", r"race: byte 0 of buffer 0: two invocations \(the second: 1 of workgroup 0\)"),
        ("if ((int)L == 0) out[0] = 1.0f;", r"race: .* \(the second: 0 of workgroup 1\)"),
        (
            "int i = (int)G * 8 + (int)L; out[i] = x[i + 1];",
            "bounds: invocation 7 of workgroup 1 reads 4 bytes",
        ),
        (
            "int i = (int)G * 8 + (int)L; out[i - 1] = x[i];",
            "bounds: invocation 0 of workgroup 0 writes 4 bytes",
        ),
        ("int i = (int)G * 8 + (int)L; x[i] = 1.0f;", "write: to buffer 1, which is only read"),
        (
            "SHARED float shared0[8]; int l = (int)L; shared0[l + 1] = 1.0f; BARRIER "
            "out[(int)G * 8 + l] = shared0[l];",
            "bounds: invocation 7 of workgroup 0 writes 4 bytes",
        ),
        (
            "SHARED float shared0[8]; int l = (int)L; if (l < 4) shared0[l] = 1.0f; BARRIER "
            "out[(int)G * 8 + l] = shared0[l];",
            "undefined: byte 16 of shared memory 2 is read by invocation 4",
        ),
        (
            "SHARED float shared0[8]; int l = (int)L; shared0[l] = 1.0f; BARRIER float y = shared0[7 - l]; "
            "shared0[l] = y; BARRIER out[(int)G * 8 + l] = shared0[l];",
            "race: byte .* of shared memory 2",
        ),
        (
            "if ((int)L < 4) { BARRIER } out[(int)G * 8 + (int)L] = 1.0f;",
            "divergence: 4 invocations of workgroup 0 wait at a barrier that 4 never come to",
        ),
        (
            "if ((int)L < 4) {\n BARRIER\n } else {\n BARRIER\n }\n out[(int)G * 8 + (int)L] = 1.0f;",
            "divergence: invocations of workgroup 0 wait at different barriers",
        ),
    ],
)
def test_what_is_wrong_is_found(body, found):
    with pytest.raises(EmulationError, match=found):
        run(body)


def test_a_grid_is_no_larger_than_machines_have():
    with pytest.raises(EmulationError, match=r"a grid of \[65536, 1, 1\]"):
        run("", grid=(65_536, 1, 1))
