"""The code of an expression as text: what would run is shown, nothing is computed, and nothing changes."""

from __future__ import annotations

import gc

import pytest
from conftest import needs_gxx

from polygrad import GlobalCounters, Tensor, TinyJit
from polygrad.engine.recording import watch
from polygrad.errors import CaptureError
from polygrad.helpers import Context
from polygrad.runtime.buffer import Allocation
from polygrad.uop.ops import Ops

pytestmark = pytest.mark.usefixtures("default_device")

# What a kernel's text has on each device, and its machine code.
WORDS = {
    "CPU": ("LLVM IR:", "define void @", "ret"),
    "CC": ("C:", "void r_", "ret"),
    "WASM": ("WebAssembly text:", "(module", "does not show it"),
    "INTERP": ("Python:", "def kernel(", "does not show it"),
}


def rand(*shape: int) -> Tensor:
    return Tensor.rand(*shape).realize()


def test_a_kernel_is_shown_in_the_language_of_its_device(device: str) -> None:
    name, word, machine = WORDS[device]
    product = (rand(12, 20) @ rand(20, 16)).relu()
    text = product.code()
    assert text.startswith("float32 of shape (12, 16)\n")
    assert f"Program 1 of 1 on {device}: 1 kernel, 1 launch\n====" in text
    assert f"\n\n{name}\n\n" in text and word in text and "Machine code:" not in text
    assert "float32[240]" in text and "float32[320]" in text and "output, float32[192]" in text
    assert "work     7.68 kFLOP" in text
    with_machine = product.code(machine=True)
    assert machine in with_machine.partition(word)[2].lower() and len(with_machine) > len(text)


def test_nothing_is_computed_or_changed(device: str) -> None:
    a = rand(5, 7)
    lazy = (a * 3).sum(1)
    other = lazy + 1
    gc.collect()
    ran, allocated, node = GlobalCounters.kernel_count, Allocation.allocated_bytes, lazy.uop
    text = other.code()
    assert other.code() == text
    assert (GlobalCounters.kernel_count, Allocation.allocated_bytes) == (ran, allocated)
    assert lazy.uop is node and node.value is None and other.uop.value is None
    assert watch.recording is None
    assert other.tolist() == pytest.approx([3 * sum(row) + 1 for row in a.tolist()], rel=1e-5)


def test_what_runs_is_what_was_shown(device: str, capsys: pytest.CaptureFixture[str]) -> None:
    a = rand(6, 11)
    lazy = a.softmax(1)
    shown = [line for line in lazy.code().splitlines() if line.startswith("launch ")]
    GlobalCounters.reset()
    lazy.realize()
    assert GlobalCounters.kernel_count == len(shown)
    assert (
        lazy.code()
        == "float32 of shape (6, 11): nothing to run: it is computed already, or has no elements\n"
    )


def test_pending_writes_and_what_reads_the_memory_before_stay_as_they_are(device: str) -> None:
    w = Tensor([1.0, 2.0]).realize()
    before, view = w * 3, w[1:]
    w.assign(w + 1)
    text = w.code()
    assert text.count("\nlaunch ") >= 2 and w.uop.op is Ops.AFTER
    assert w.code() == text
    assert (before.tolist(), view.tolist(), w.tolist()) == ([3.0, 6.0], [3.0], [2.0, 3.0])


def test_copies_between_devices_are_shown(device: str) -> None:
    source = "INTERP" if device != "INTERP" else "WASM"
    lazy = Tensor([1.0, 2.0], device=source).exp().to(device) + 1
    text = lazy.code()
    assert f"Copy 2 of 3: {source} to {device}" in text
    assert f"Program 1 of 3 on {source}" in text and f"Program 3 of 3 on {device}" in text
    assert lazy.tolist() == pytest.approx([3.7182817, 8.389056])


def test_a_value_on_several_devices_is_shown_part_by_part() -> None:
    parts = Tensor([1.0, 2.0, 3.0, 4.0]).realize().shard(("CPU", "CPU:1"), 0)
    total = (parts + 1).sum()
    assert "on CPU:1" in total.code() and total.code() == total.code()
    assert total.item() == 14.0


def test_without_optimisation_the_code_has_no_opts() -> None:
    a, b = rand(12, 20), rand(20, 16)
    assert "opts     none" not in (a @ b).code()
    with Context(NOOPT=1):
        assert "opts     none" in (a @ b).code()


def test_a_captured_function_cannot_ask() -> None:
    def ask(x: Tensor) -> Tensor:
        (x + 1).code()
        return (x * 2).realize()

    captured, x = TinyJit(ask), rand(3)
    captured(x)
    with pytest.raises(CaptureError, match="a preview of what it runs"):
        captured(x)


@pytest.mark.slow
@needs_gxx
def test_a_device_of_another_package_need_not_have_text() -> None:
    text = (Tensor([1.0, 2.0], device="EMULATED_DRIVER") + 1).code(machine=True)
    assert "Program 1 of 1 on EMULATED_DRIVER" in text
