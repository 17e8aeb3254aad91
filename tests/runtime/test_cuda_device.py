"""Device CUDA: memory, streams, graphs, and what happens when something goes wrong. The driver is that of
tests/gpu_emulation, under the package cuda-bindings."""

from __future__ import annotations

import ctypes.util
import itertools
import os
import shutil
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
if shutil.which("g++") is None:
    pytest.skip("there is no g++", allow_module_level=True)

import numpy as np

from polygrad import Device, Tensor
from polygrad.engine import devices
from polygrad.errors import CompileError, DeviceError, OutOfMemoryError, ProgramError
from polygrad.runtime.cuda.device import CUDARuntime
from polygrad.runtime.cuda.host import COMPUTE, COPY
from polygrad.runtime.cuda.native import open_host
from polygrad.runtime.memory_pool import MemoryPool
from tests.gpu_emulation.driver import library, open_runtime
from tests.runtime.grid_programs import (
    FIVE,
    SCRATCH,
    check_captured_steps_of_many_sizes,
    filled,
    floats,
    programs_of,
    run_captured_steps,
    twice,
)

DEVICE = "EMULATED_DRIVER"
ILLEGAL_ADDRESS, INVALID_VALUE = 700, 1  # CUDA's numbers
TEXT = """
extern "C" __global__ void twice(float *out, float *x, int n) {
  int i = (int)blockIdx.x;
  out[i] = 2.0f * x[i] + (float)n;
}
"""
KERNEL = twice("cuda", TEXT)
program = programs_of(DEVICE, KERNEL)


@pytest.fixture(params=[None, COMPUTE, COPY], ids=["at once", "COMPUTE is late", "COPY is late"])
def runtime(request: pytest.FixtureRequest) -> Iterator[CUDARuntime]:
    """A device of its own. A stream that is late does nothing before somebody waits for it."""
    library().fake_reset()
    made = open_runtime()
    library().fake_lazy(-1 if request.param is None else request.param)
    yield made
    library().fake_reset()
    made.host.close()


# --- Programs


def test_a_program_that_runs_again_is_one_graph_launch(runtime):
    x, out, arena = filled(runtime, [1, 2, 3, 4, 5]), runtime.allocate(20), runtime.allocate(1024)
    step = runtime.load(program((2, 1), (0, 2), buffers=(FIVE, FIVE, SCRATCH)))
    step.run([out, x, None], arena, {"n": 3})
    assert floats(runtime, out) == [13, 17, 21, 25, 29]
    step.run([out, x, None], arena, {"n": 3})
    made = replace(runtime.host.counters)
    assert (made.launches, made.graphs, made.graph_launches, made.updates) == (2, 1, 1, 0)
    step.run([out, x, None], arena, {"n": 3})
    now = runtime.host.counters
    assert (now.launches, now.graphs, now.graph_launches, now.updates) == (2, 1, 2, 0)
    assert floats(runtime, out) == [13, 17, 21, 25, 29]


def test_other_buffers_and_variables_update_the_kernels_that_they_concern(runtime):
    x, out, arena = filled(runtime, [1, 2, 3, 4, 5]), runtime.allocate(20), runtime.allocate(1024)
    step = runtime.load(program((2, 1), (0, 2), buffers=(FIVE, FIVE, SCRATCH)))
    for _ in range(2):
        step.run([out, x, None], arena, {"n": 0})
    y = filled(runtime, [5, 4, 3, 2, 1])
    step.run([out, y, None], arena, {"n": 0})
    assert runtime.host.counters.updates == 1  # the first kernel reads y, the second none of it
    assert floats(runtime, out) == [20, 16, 12, 8, 4]
    step.run([out, y, None], arena, {"n": 1})
    assert runtime.host.counters.updates == 3
    assert floats(runtime, out) == [23, 19, 15, 11, 7]
    assert runtime.host.counters.graphs == 1


def test_a_launch_of_a_graph_keeps_its_arguments_when_the_next_has_others(runtime):
    x, y, out = filled(runtime, [1] * 5), filled(runtime, [2] * 5), runtime.allocate(20)
    step = runtime.load(program((0, 1), (0, 1)))
    other = runtime.allocate(20)
    for a, b in ((out, x), (out, x), (other, y), (out, x)):
        step.run([a, b], None, {"n": 0})
    assert (floats(runtime, out), floats(runtime, other)) == ([2] * 5, [4] * 5)


def test_a_grid_of_variables_may_be_empty(runtime):
    x, out = filled(runtime, [1, 2, 3, 4, 5]), filled(runtime, [0] * 5)
    step = runtime.load(program((0, 1), (0, 1), grid=("n", 1, 1)))
    for n, want in ((0, [0] * 5), (0, [0] * 5), (2, [4, 6, 0, 0, 0]), (0, [4, 6, 0, 0, 0])):
        step.run([out, x], None, {"n": n})
        assert floats(runtime, out) == want
    assert runtime.host.counters.graphs == 1


def test_what_a_run_lacks_is_named(runtime):
    step, x = runtime.load(program((0, 1))), runtime.allocate(20)
    with pytest.raises(ProgramError, match=r"\[1\] have no memory"):
        step.run([x, None], None, {"n": 0})
    with pytest.raises(ProgramError, match="expected variable n from 0 to 10, got 11"):
        step.run([x, x], None, {"n": 11})
    with pytest.raises(ProgramError, match="expected a Program for EMULATED_DRIVER, got one for CPU"):
        runtime.load(replace(program((0, 1)), device="CPU"))


def test_a_kernel_is_loaded_once_and_forgotten_with_its_last_program(runtime):
    runtime.load(program((0, 1)))
    runtime.load(program((0, 1), (0, 1)))
    assert runtime.host.counters.modules == 1


def test_the_time_of_a_run_is_that_of_the_device(runtime):
    x, out = filled(runtime, [1, 2, 3, 4, 5]), runtime.allocate(20)
    step = runtime.load(program((0, 1)))
    assert 0 < step.measure([out, x], None, {"n": 0}) < 10
    assert floats(runtime, out) == [2, 4, 6, 8, 10]


# --- copies beside kernels


def test_a_write_waits_for_the_runs_that_use_the_memory(runtime):
    x, out = filled(runtime, [1] * 5), runtime.allocate(20)
    step = runtime.load(program((0, 1)))
    got = []
    for value in range(2, 30):  # more runs than there are fences
        step.run([out, x], None, {"n": 0})
        runtime.write(x, 0, memoryview(struct.pack("5f", *[value] * 5)))
        got.append(out)
        out = runtime.allocate(20)
    assert [floats(runtime, handle)[0] for handle in got] == [2.0 * v for v in range(1, 29)]


def test_a_run_waits_for_what_was_written(runtime):
    x, out = runtime.allocate(20), runtime.allocate(20)
    step = runtime.load(program((0, 1)))
    for value in range(5):
        runtime.write(x, 0, memoryview(struct.pack("5f", *[value] * 5)))
        step.run([out, x], None, {"n": 1})
        assert floats(runtime, out) == [2 * value + 1] * 5


def test_memory_that_was_freed_is_not_written_before_its_last_run_is_done(runtime):
    step, results = runtime.load(program((0, 1))), []
    for value in range(20):
        x, out = filled(runtime, [value] * 5), runtime.allocate(20)
        step.run([out, x], None, {"n": 0})
        runtime.free(x)  # the next write is to the same memory
        results.append(out)
    assert [floats(runtime, out)[0] for out in results] == [2.0 * v for v in range(20)]
    assert runtime.host.counters.allocations <= 22


@pytest.mark.parametrize("nbytes", [1, 3, (4 << 20) - 1, 4 << 20, (21 << 20) + 5])
def test_bytes_of_any_number(runtime, nbytes):
    data = np.random.default_rng(0).integers(0, 256, nbytes, np.uint8)
    handle = runtime.allocate(nbytes)
    runtime.write(handle, 0, memoryview(data.tobytes()))
    assert bytes(runtime.read(handle, 0, nbytes)) == data.tobytes()
    start = nbytes // 3
    runtime.write(handle, start, memoryview(b"\x07"))
    data[start] = 7
    assert bytes(runtime.read(handle, start, nbytes - start)) == data[start:].tobytes()


# --- memory


def test_after_too_much_memory_smaller_work_runs(runtime):
    used = library().fake_used()
    library().fake_limit(used + 4096)
    with pytest.raises(OutOfMemoryError, match="no room for 8192 bytes"):
        runtime.allocate(8192)
    x = filled(runtime, [1, 2, 3, 4, 5])
    runtime.load(program((0, 1))).run([x, x], None, {"n": 0})
    assert floats(runtime, x) == [2, 4, 6, 8, 10]


def test_freed_memory_is_kept_and_given_back_when_it_is_needed(runtime):
    handles = [runtime.allocate(1000) for _ in range(3)]
    made = runtime.host.counters.allocations
    for handle in handles:
        runtime.free(handle)
    assert runtime.allocate(1001) in handles
    assert runtime.host.counters.allocations == made
    library().fake_limit(library().fake_used() + 1024)
    assert runtime.allocate(2048)


def test_a_pool_keeps_no_more_than_it_may():
    live, numbers = set(), itertools.count(1)

    def create(nbytes):
        live.add(number := next(numbers))
        return number

    pool = MemoryPool(create, live.remove, 256, 4096)
    memory = [pool.allocate(1024) for _ in range(8)]
    for handle in memory:
        pool.free(handle)
    assert pool.kept_bytes == 1024 * len(live) <= 4096
    pool.trim(0)
    assert not live and not pool.kept_bytes
    assert [pool.size_class(n) for n in (1, 257, 4096, 4097)] == [256, 512, 4096, 5120]


# --- what goes wrong


def test_a_launch_that_is_refused_is_a_device_error_and_the_next_runs(runtime):
    x, out = filled(runtime, [1, 2, 3, 4, 5]), runtime.allocate(20)
    step = runtime.load(program((0, 1)))
    library().fake_refuse(INVALID_VALUE)
    with pytest.raises(DeviceError, match=r"a launch of \(1, 1, 1\) threads in \(5, 1, 1\) blocks failed"):
        step.run([out, x], None, {"n": 0})
    assert not runtime.lost
    for _ in range(2):
        step.run([out, x], None, {"n": 0})
        assert floats(runtime, out) == [2, 4, 6, 8, 10]


def test_more_threads_than_a_block_has_is_a_device_error(runtime):
    kernel = replace(KERNEL, workgroup=(2048, 1, 1))
    x = filled(runtime, [1, 2, 3, 4, 5])
    with pytest.raises(DeviceError, match=r"a launch of \(2048, 1, 1\) threads"):
        runtime.load(program((0, 1), kernel=kernel)).run([x, x], None, {"n": 0})


def test_an_illegal_address_loses_the_device_and_another_opens(runtime):
    Device[DEVICE].host.close()  # which has the same context
    x = filled(runtime, [1, 2, 3, 4, 5])
    step = runtime.load(program((0, 1), (0, 1)))
    for _ in range(2):
        step.run([x, x], None, {"n": 0})
    library().fake_poison(ILLEGAL_ADDRESS)
    with pytest.raises(DeviceError, match=r"CUDA_ERROR_ILLEGAL_ADDRESS .* of this or an earlier kernel"):
        step.run([x, x], None, {"n": 0})
        runtime.read(x, 0, 20)
    assert runtime.lost
    with pytest.raises(DeviceError, match=r"the context is lost .*opens another"):
        runtime.allocate(20)
    runtime.free(x)  # what gives something back still may be called
    runtime.host.close()
    other = open_runtime()
    y = filled(other, [1, 2, 3, 4, 5])
    other.load(program((0, 1))).run([y, y], None, {"n": 0})
    assert floats(other, y) == [2, 4, 6, 8, 10]
    other.host.close()


def test_code_that_is_none_is_a_compile_error(runtime):
    with pytest.raises(CompileError, match="kernel k: expected code for sm_90"):
        runtime.host.load(b"no code\0", "k")
    with pytest.raises(CompileError, match="kernel k: expected code that has it"):
        runtime.host.load(runtime._to_code(TEXT), "k")


def test_any_thread_may_call(runtime):
    got = []

    def work():
        x = filled(runtime, [1, 2, 3, 4, 5])
        runtime.load(program((0, 1))).run([x, x], None, {"n": 0})
        got.append(floats(runtime, x))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert got == [[2, 4, 6, 8, 10]]


# --- what is missing


def test_a_missing_gpu_is_named(runtime):
    library().fake_devices(0)
    with pytest.raises(DeviceError, match=r"the driver sees no NVIDIA GPU: look at"):
        open_host()


def test_a_missing_driver_is_named():
    found = ctypes.util.find_library("cuda")
    if found:
        pytest.skip(f"there is one: {found}")
    code = "from polygrad import Device; Device['CUDA']"
    folder = Path(devices.__file__).parents[2]
    env = os.environ | {"PYTHONPATH": str(folder), "DEVICE": ""}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    message = done.stderr.splitlines()[-1]
    assert "DeviceError: device CUDA: NVIDIA's driver (libcuda) was not found" in message
    assert message.endswith("install the driver of the GPU (https://www.nvidia.com/drivers)")


# --- the device below Tensors


@pytest.fixture
def emulated() -> str:
    library().fake_reset()
    return DEVICE


def test_a_captured_step_is_one_graph_launch(emulated):
    host = Device[emulated].host
    before, after = run_captured_steps(emulated, lambda: replace(host.counters))
    assert after.graph_launches == before.graph_launches + 1
    assert after.launches == before.launches


def test_a_captured_step_of_many_sizes(emulated):
    check_captured_steps_of_many_sizes(emulated)


def test_a_search_takes_the_device_s_times(emulated, monkeypatch):
    monkeypatch.setenv("BEAM", "1")
    monkeypatch.setenv("POLYGRAD_CACHE", "0")
    x = np.arange(6, dtype=np.float32)
    assert (Tensor(x, device=emulated) * 3 + 1).numpy().tolist() == (x * 3 + 1).tolist()
