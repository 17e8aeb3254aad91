"""Device METAL: memory, command buffers, and what happens when something goes wrong, on the host of
tests/gpu_emulation."""

from __future__ import annotations

import shutil
import struct
from dataclasses import replace

import pytest

from polygrad import Device, Tensor
from polygrad.errors import DeviceError, OutOfMemoryError, ProgramError
from tests.gpu_emulation.metal import EmulatedMetalHost, EmulatedMetalRuntime
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

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")

DEVICE = "EMULATED_METAL"
TEXT = """#include <metal_stdlib>
using namespace metal;

kernel void twice(device float *data0 [[buffer(0)]],
                  device float *data1 [[buffer(1)]],
                  constant int &n [[buffer(2)]],
                  uint3 workgroup [[threadgroup_position_in_grid]],
                  uint3 invocation [[thread_position_in_threadgroup]]) {
  int i = (int)workgroup.x;
  data0[i] = 2.0f * data1[i] + (float)n;
}
"""
KERNEL = twice("msl", TEXT)
program = programs_of(DEVICE, KERNEL)


@pytest.fixture
def runtime() -> EmulatedMetalRuntime:
    return EmulatedMetalRuntime(EmulatedMetalHost())


def test_a_run_is_one_command_buffer(runtime):
    x, out, arena = filled(runtime, [1, 2, 3, 4, 5]), runtime.allocate(20), runtime.allocate(1024)
    step = runtime.load(program((2, 1), (0, 2), buffers=(FIVE, FIVE, SCRATCH)))
    for n, want in ((3, [13, 17, 21, 25, 29]), (0, [4, 8, 12, 16, 20])):
        step.run([out, x, None], arena, {"n": n})
        assert floats(runtime, out) == want
    counters = runtime.host.counters
    assert (counters.command_buffers, counters.dispatches, counters.pipelines) == (2, 4, 1)


def test_a_grid_of_variables_may_be_empty(runtime):
    x, out = filled(runtime, [1, 2, 3, 4, 5]), filled(runtime, [0] * 5)
    step = runtime.load(program((0, 1), grid=("n", 1, 1)))
    for n, want in ((0, [0] * 5), (2, [4, 6, 0, 0, 0]), (0, [4, 6, 0, 0, 0])):
        step.run([out, x], None, {"n": n})
        assert floats(runtime, out) == want
    assert runtime.host.counters.command_buffers == 1
    assert step.measure([out, x], None, {"n": 0}) == 0.0


def test_reads_and_writes_wait_for_the_runs_that_use_the_memory(runtime):
    x, step, results = filled(runtime, [1] * 5), runtime.load(program((0, 1))), []
    for value in range(2, 100):  # more than may be on their way
        out = runtime.allocate(20)
        step.run([out, x], None, {"n": 0})
        runtime.write(x, 0, memoryview(struct.pack("5f", *[value] * 5)))
        results.append(out)
    assert [floats(runtime, out)[0] for out in results] == [2.0 * v for v in range(1, 99)]


def test_no_more_command_buffers_are_on_their_way_than_a_queue_has(runtime):
    x = filled(runtime, [0] * 5)
    step = runtime.load(program((0, 1)))
    for _ in range(200):
        step.run([x, x], None, {"n": 0})
    assert len(runtime._unwaited) <= 64
    floats(runtime, x)
    assert not runtime._unwaited


def test_what_freed_memory_was_used_for_is_done_before_it_is_written(runtime):
    step, results = runtime.load(program((0, 1))), []
    for value in range(20):
        x, out = filled(runtime, [value] * 5), runtime.allocate(20)
        step.run([out, x], None, {"n": 0})
        runtime.free(x)
        results.append(out)
    assert [floats(runtime, out)[0] for out in results] == [2.0 * v for v in range(20)]
    assert runtime.host.counters.buffers <= 22


def test_a_failure_is_said_once_and_the_next_run_is_right(runtime):
    x, out = filled(runtime, [1, 2, 3, 4, 5]), runtime.allocate(20)
    step = runtime.load(program((0, 1)))
    runtime.host.failure = "Caused GPU Timeout Error"
    step.run([out, x], None, {"n": 0})
    with pytest.raises(DeviceError, match="expected kernels that run to their end, got Caused GPU Timeout"):
        runtime.read(out, 0, 20)
    step.run([out, x], None, {"n": 0})
    assert floats(runtime, out) == [2, 4, 6, 8, 10]


def test_a_launch_that_is_refused_is_a_device_error(runtime):
    x = filled(runtime, [1, 2, 3, 4, 5])
    kernel = replace(KERNEL, workgroup=(2048, 1, 1))
    with pytest.raises(DeviceError, match=r"expected a launch .*, got \(2048, 1, 1\)"):
        runtime.load(program((0, 1), kernel=kernel)).run([x, x], None, {"n": 0})
    assert floats(runtime, x) == [1, 2, 3, 4, 5]


def test_after_too_much_memory_smaller_work_runs(runtime):
    runtime.host.limit = 4096
    with pytest.raises(OutOfMemoryError, match="no room for 8192 bytes"):
        runtime.allocate(8192)
    with pytest.raises(OutOfMemoryError, match="at most 1073741824 bytes"):
        runtime.allocate(2 << 30)
    x = filled(runtime, [1, 2, 3, 4, 5])
    runtime.load(program((0, 1))).run([x, x], None, {"n": 0})
    assert floats(runtime, x) == [2, 4, 6, 8, 10]


def test_another_device_s_program_is_refused(runtime):
    with pytest.raises(ProgramError, match="expected a Program for EMULATED_METAL, got one for CPU"):
        runtime.load(replace(program((0, 1)), device="CPU"))


# --- the device below Tensors


def test_a_captured_step_is_one_command_buffer():
    host = Device[DEVICE].host
    before, after = run_captured_steps(DEVICE, lambda: replace(host.counters))
    assert after.command_buffers == before.command_buffers + 1
    assert after.pipelines == before.pipelines


def test_a_captured_step_of_many_sizes():
    check_captured_steps_of_many_sizes(DEVICE)


def test_float64_is_refused_and_float32_named():
    with pytest.raises(DeviceError, match=r"the device has no such dtype: use float32 \(Tensor.float\(\)\)"):
        (Tensor([1.0], dtype="float64", device=DEVICE) + 1).realize()
