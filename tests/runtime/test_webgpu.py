"""Device WEBGPU: memory, lists of steps, and what happens when something goes wrong."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("wgpu", reason="it is WebGPU under CPython")
from adapter import needs_adapter

from polygrad import Device, Tensor, compile_step, nn
from polygrad.engine import devices
from polygrad.errors import CompileError, DeviceError, OutOfMemoryError, ProgramError
from polygrad.renderer.wgsl.builder import PACKED
from polygrad.runtime.program import (
    Kernel,
)
from polygrad.runtime.webgpu import device
from polygrad.runtime.webgpu.device import WebGPURuntime
from tests.runtime.grid_programs import FIVE, SCRATCH, filled, floats, programs_of

pytestmark = needs_adapter

TEXT = """
struct Arguments {
  infinity: f32,
  nan: f32,
  zero: f32,
  zero_bits: u32,
  v_n: i32,
}
@group(0) @binding(0) var<storage, read_write> data0: array<f32>;
@group(0) @binding(1) var<storage, read_write> data1: array<f32>;
@group(0) @binding(2) var<uniform> arguments: Arguments;

@compute @workgroup_size(1)
fn double(@builtin(workgroup_id) workgroup: vec3<u32>) {
  let i: i32 = i32(workgroup.x);
  data0[i] = data1[i] * 2.0f + f32(arguments.v_n);
}
"""
# The same, after some work that no compiler can leave out.
KERNEL_OF_ROUNDS = TEXT.replace(
    "  data0[i] =",
    """  var x: f32 = data1[i];
  for (var k: i32 = 0; k < ROUNDS; k++) { x = x * 0.5f + 1.0f; }
  data0[i] = min(x, arguments.zero) +""",
).encode()
KERNEL = Kernel("double", TEXT.encode(), 2, ("n",), language="wgsl", writes=(0,), workgroup=(1, 1, 1))
program = programs_of("WEBGPU", KERNEL)


@pytest.fixture
def runtime() -> Iterator[WebGPURuntime]:
    """A device of its own."""
    made = WebGPURuntime()
    yield made
    made.host.close()


def test_launches_run_in_order_in_one_submit(runtime):
    x, out, arena = filled(runtime, [1, 2, 3, 4, 5]), runtime.allocate(20), runtime.allocate(1024)
    run = runtime.load(program((2, 1), (0, 2), buffers=(FIVE, FIVE, SCRATCH)))
    submits = runtime.host.counters.submits
    run.run([out, x, None], arena, {"n": 3})
    assert runtime.host.counters.submits == submits + 1
    assert floats(runtime, out) == [13, 17, 21, 25, 29]
    run.run([out, x, None], arena, {"n": 4})
    assert floats(runtime, out) == [16, 20, 24, 28, 32]


def test_what_was_made_once_is_not_made_again(runtime):
    x, out = filled(runtime, [1, 2, 3, 4, 5]), runtime.allocate(20)
    runtime.load(program((0, 1))).run([out, x], None, {"n": 0})
    made = replace(runtime.host.counters)
    for _ in range(5):
        runtime.load(program((0, 1))).run([out, x], None, {"n": 0})
    now = runtime.host.counters
    assert (now.pipelines, now.submits) == (made.pipelines, made.submits + 5)
    run = runtime.load(program((0, 1), (0, 1)))
    run.run([out, x], None, {"n": 0})
    groups = runtime.host.counters.bind_groups
    for n in range(5):
        run.run([out, x], None, {"n": n})
    assert runtime.host.counters.bind_groups == groups


def test_freed_memory_is_used_again_with_its_bind_groups(runtime):
    x = filled(runtime, [1, 2, 3, 4, 5])
    out = runtime.allocate(20)
    run = runtime.load(program((0, 1)))
    run.run([out, x], None, {"n": 0})
    made = replace(runtime.host.counters)
    for _ in range(3):
        runtime.free(out)
        out = runtime.allocate(24)
        run.run([out, x], None, {"n": 0})
    now = runtime.host.counters
    assert (now.buffers, now.bind_groups) == (made.buffers, made.bind_groups)


def test_a_grid_of_variables(runtime):
    x, out = filled(runtime, [1, 2, 3, 4, 5]), filled(runtime, [0] * 5)
    run = runtime.load(program((0, 1), grid=(("ADD", "n", 1), 1, 1)))
    run.run([out, x], None, {"n": 2})
    assert floats(runtime, out) == [4, 6, 8, 0, 0]
    run.run([out, x], None, {"n": 3})
    assert floats(runtime, out) == [5, 7, 9, 11, 0]


@pytest.mark.parametrize("has_clock", [True, False])
def test_a_measurement_waits_for_the_gpu(runtime, has_clock):
    if not has_clock:
        runtime.host.adapter = replace(runtime.adapter, features=frozenset())
    x, out = filled(runtime, [1, 2, 3, 4, 5]), runtime.allocate(20)
    heavy = KERNEL_OF_ROUNDS.replace(b"ROUNDS", b"300000")
    seconds = []
    for code in (KERNEL_OF_ROUNDS.replace(b"ROUNDS", b"1"), heavy):
        run = runtime.load(program((0, 1), kernel=replace(KERNEL, code=code)))
        seconds.append(min(run.measure([out, x], None, {"n": 1}) for _ in range(3)))
        assert floats(runtime, out) == [3, 5, 7, 9, 11]
    assert 0 < seconds[0] < seconds[1] < 60


def test_a_buffer_that_is_read_and_written_is_copied_for_the_reader(runtime):
    x = filled(runtime, [1, 2, 3, 4, 5])
    run = runtime.load(program((0, 1)))
    for _ in range(2):
        run.run([x, x], None, {"n": 1})
    assert floats(runtime, x) == [4 * v + 3 for v in (1, 2, 3, 4, 5)]


def test_a_buffer_that_is_written_twice_in_a_launch_is_refused(runtime):
    both = replace(KERNEL, writes=(0, 1))
    x = filled(runtime, [1, 2, 3, 4, 5])
    with pytest.raises(ProgramError, match="writes to one buffer by two pointers"):
        runtime.load(program((0, 1), kernel=both)).run([x, x], None, {"n": 1})


def test_bytes_that_are_no_whole_words(runtime):
    handle = runtime.allocate(11)
    runtime.write(handle, 0, memoryview(bytes(range(11))))
    runtime.write(handle, 3, memoryview(b"xyz"))
    assert bytes(runtime.read(handle, 0, 11)) == b"\x00\x01\x02xyz\x06\x07\x08\x09\x0a"
    assert bytes(runtime.read(handle, 5, 2)) == b"z\x06"


def test_programs_that_do_not_fit(runtime):
    with pytest.raises(ProgramError, match="has no grid of workgroups"):
        runtime.load(program((0, 1), grid=None))
    with pytest.raises(ProgramError, match="multiple of 256 bytes, got 64"):
        runtime.load(program((0, 1), buffers=(replace(SCRATCH, offset=64), FIVE)))
    with pytest.raises(
        ProgramError, match=r"\[1\] have no memory: expected allocations for buffers \[0, 1\]"
    ):
        runtime.load(program((0, 1))).run([runtime.allocate(20), None], None, {"n": 0})
    with pytest.raises(ProgramError, match="expected variable n from 0 to 10, got 11"):
        runtime.load(program((0, 1))).run([filled(runtime, [0] * 5)] * 2, None, {"n": 11})


def test_a_kernel_that_is_not_accepted_is_named_with_its_line(runtime):
    bad = replace(KERNEL, code=TEXT.replace("* 2.0f", "* true").encode())
    with pytest.raises(CompileError, match=r"kernel double, line 16: data0\[i\] = data1\[i\] \* true"):
        runtime.load(program((0, 1), kernel=bad))
    x, out = filled(runtime, [1, 2, 3, 4, 5]), runtime.allocate(20)
    runtime.load(program((0, 1))).run([out, x], None, {"n": 0})
    assert floats(runtime, out) == [2, 4, 6, 8, 10]


def test_after_running_out_of_memory_smaller_work_runs(runtime):
    held = []
    size = runtime.adapter.buffer_bytes
    with pytest.raises(OutOfMemoryError, match="free tensors"):
        for _ in range(4096):
            held.append(runtime.allocate(size))
    with pytest.raises(OutOfMemoryError, match=f"at most {size} bytes"):
        runtime.allocate(2 * size)
    for handle in held:
        runtime.free(handle)
    x, out = filled(runtime, [1, 2, 3, 4, 5]), runtime.allocate(20)
    runtime.load(program((0, 1))).run([out, x], None, {"n": 0})
    assert floats(runtime, out) == [2, 4, 6, 8, 10]


def test_a_lost_device_says_so_at_every_call(runtime):
    x = filled(runtime, [1, 2, 3, 4, 5])
    run = runtime.load(program((0, 1)))
    runtime.host.close()
    assert runtime.lost
    for call in (
        lambda: runtime.read(x, 0, 4),
        lambda: runtime.write(x, 0, memoryview(b"1234")),
        lambda: runtime.allocate(1 << 20),
        lambda: run.run([x, x], None, {"n": 0}),
    ):
        with pytest.raises(DeviceError, match="got one that was lost"):
            call()
    runtime.free(x)


def test_a_lost_device_is_opened_anew():
    before = Tensor([1.0, 2.0], device="WEBGPU").realize()
    assert (before + 1).tolist() == [2.0, 3.0]
    lost = Device["WEBGPU"]
    lost.host.close()
    with pytest.raises(DeviceError, match=r"lost .*: make the tensors anew"):
        (before + 1).tolist()
    assert Device["WEBGPU"] is not lost and not Device["WEBGPU"].lost
    with pytest.raises(DeviceError, match="expected memory of this device"):
        (before + 2).tolist()
    after = Tensor([1.0, 2.0], device="WEBGPU")
    assert (after + 1).tolist() == [2.0, 3.0] and (after @ after).item() == 5.0


class LosingHost:
    """A host whose device is lost just before the call `at`, counted from 0."""

    def __init__(self, host: Any, at: int) -> None:
        self.host, self.at, self.calls = host, at, 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.host, name)
        if not callable(found):
            return found

        def call(*args: Any, **options: Any) -> Any:
            if self.calls == self.at:
                self.host.close()
            self.calls += 1
            return found(*args, **options)

        return call


@pytest.mark.slow
@pytest.mark.alone
def test_a_device_lost_at_any_call_is_an_error_and_the_next_one_is_right(monkeypatch: pytest.MonkeyPatch):
    def work() -> list[Any]:
        x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="WEBGPU", requires_grad=True)
        state = Tensor([1.0, 1.0], device="WEBGPU").realize()
        (x @ x).relu().sum().backward()
        state.assign(state + x.detach().sum(0)).realize()
        assert x.grad is not None
        return [x.grad.tolist(), state.tolist()]

    expected, opened = work(), device.default_host
    for at in itertools.count():
        Device["WEBGPU"].host.close()
        host = LosingHost(opened(), at)
        with monkeypatch.context() as patched:
            patched.setattr(device, "default_host", lambda: host)  # noqa: B023 - is called in this round
            assert Device["WEBGPU"].host is host
        try:
            assert work() == expected
        except DeviceError as error:
            assert "lost" in str(error), error
            assert host.lost
        if not host.lost:
            host.at = -1  # that was all calls: no later test loses it
            break
        assert work() == expected and Device["WEBGPU"].host is not host
    assert at > 10


def test_a_captured_training_step_is_one_submit():
    Tensor.manual_seed(0)
    layer = nn.Linear(4, 3)
    for t in nn.state.get_parameters(layer):
        t.replace(t.to("WEBGPU").realize())
    optimizer = nn.optim.SGD(nn.state.get_parameters(layer), lr=0.001)
    x = Tensor([[1.0, 2.0, 3.0, 4.0]], device="WEBGPU")
    step = compile_step(lambda model, batch: (model(batch) ** 2).sum(), layer, optimizer, x)
    step.run(x)
    losses = []
    for _ in range(2):
        step.run(x)
        losses.append(step.loss_value())
    host = Device["WEBGPU"].host
    before = replace(host.counters)
    step.run(x)
    losses.append(step.loss_value())
    after = host.counters
    assert after.submits == before.submits + 1 and after.reads == before.reads + 1
    made = ("buffers", "pipelines", "bind_groups")
    assert [getattr(after, name) for name in made] == [getattr(before, name) for name in made]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


def test_float64_is_refused_and_float32_named():
    x = Tensor([1.0, 2.0], device="WEBGPU", dtype="float64")
    assert x.tolist() == [1.0, 2.0]
    with pytest.raises(DeviceError, match=r"the device has no such dtype: use float32 \(Tensor.float\(\)\)"):
        (x + 1).tolist()
    with pytest.raises(DeviceError, match="no such dtype"):
        (x.sum().float() * 2).item()


def test_arrays_of_float64_become_another_dtype_on_the_way():
    x = Tensor(memoryview(struct.pack("2d", 1.5, 1 / 3)).cast("d"), device="WEBGPU", dtype="float32")
    assert (x + 0.5).tolist() == [2.0, (Tensor([1 / 3], device="INTERP") + 0.5).item()]


@pytest.mark.parametrize("software", [True, False])
def test_auto_is_a_gpu_and_no_processor_that_does_its_work(monkeypatch, capsys, software):
    runtime = Device["WEBGPU"]
    monkeypatch.setattr(runtime, "adapter", replace(runtime.adapter, software=software))
    registry = devices._Devices()
    monkeypatch.setitem(registry._runtimes, "WEBGPU", runtime)
    assert registry.canonical("auto") == ("CPU" if software else "WEBGPU")
    kind = "software adapter" if software else "GPU"
    said = f"polygrad: device auto is {'CPU' if software else 'WEBGPU'} ({kind} {runtime.adapter.name})\n"
    assert capsys.readouterr().err == said
    assert registry.canonical("AUTO") == registry.canonical("auto")
    assert capsys.readouterr().err == ""
    assert registry.DEFAULT == "CPU"


def test_data_is_read_as_it_was_when_it_was_asked_for():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], device="WEBGPU")
    assert asyncio.run((x * 2).data_async()).tolist() == [[2.0, 4.0], [6.0, 8.0]]
    assert asyncio.run(Tensor([1.5], device="WEBGPU", dtype="float16").data_async()).tolist() == [0x3E00]
    assert asyncio.run(x[:0].data_async()).nbytes == 0


@pytest.mark.timeout(60)
def test_a_tile_of_maxima_compiles():
    """It took SwiftShader's compiler more than minutes when each maximum was a branch."""
    x = Tensor.arange(64 * 64, device="WEBGPU").reshape(64, 64).float().contiguous()
    found = (x[:, :, None] + x[None]).max(1)
    assert found.tolist() == [[64 * i + k + 4095 for k in range(64)] for i in range(64)]


@pytest.mark.parametrize("dtype", PACKED, ids=lambda dtype: dtype.name)
def test_what_lies_in_words_is_loaded_and_stored_by_fours(dtype):
    def results(device):
        x = (Tensor.arange(8192, device="CPU") * 37 % 251 - 125).cast(dtype).realize().to(device).realize()
        whole = [x.cast(d) for d in PACKED] + [
            (x.cast("float32") * 1.5).cast(dtype),
            (x > 3).where(x, x.flip(0)),
        ]
        part = x[1020:7172].contiguous() + 0  # from a word's start
        odd = x[1:8189].cat(x[3:5])  # from none
        written = x.clone()
        written[4:4100] = x[8:4104]
        written[4101] = x[1]
        return [bytes(t.data()) for t in (*whole, part, odd, written)]

    assert results("WEBGPU") == results("CPU")
