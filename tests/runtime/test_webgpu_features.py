"""What WEBGPU has on some adapters only: float16 as a dtype of memory, and subgroups. Kernels give the same
with them as without; also on a software adapter, whose Target names no subgroups."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from webgpu_features import GROUPED, HALVES, NOT_EXCHANGED, exchanging, run, target_of

pytest.importorskip("wgpu", reason="it is WebGPU under CPython")

from polygrad import Device
from polygrad.errors import CompileError, ProgramError
from polygrad.runtime.program import Binding, BufferSpec, Launch, Program
from polygrad.runtime.webgpu.host import FLOAT16, SUBGROUPS
from polygrad.runtime.webgpu.probes import converts_float16, neighbours_in_subgroup

pytestmark = pytest.mark.needs_adapter
LAVAPIPE = Path("/usr/share/vulkan/icd.d/lvp_icd.x86_64.json")  # Debian's mesa-vulkan-drivers; it has float16


@pytest.fixture
def subgroup():
    host = Device["WEBGPU"].host
    if SUBGROUPS not in host.adapter.features:
        pytest.skip(f"{host.adapter.name} has no subgroups")
    return neighbours_in_subgroup(host)


def test_lanes_are_neighbours(subgroup):
    assert subgroup in (4, 8, 16, 32, 64, 128)


def test_a_target_names_what_is_used():
    limits = target_of(subgroup=32).workgroups
    assert (limits.subgroup, limits.shuffle_bytes) == (32, 4)
    assert target_of().workgroups.shuffle_bytes == 0
    assert {d.name for d in target_of().packed} - {d.name for d in target_of(float16=True).packed} == {
        "float16"
    }


def test_what_the_adapter_does_not_take_is_not_used(monkeypatch):
    def refused(sources):
        raise CompileError(f"kernel {sources[0].name}: expected WGSL that the adapter takes")

    host = Device["WEBGPU"].host
    monkeypatch.setattr(host, "compile", refused)
    assert neighbours_in_subgroup(host) == 0 and not converts_float16(host)


@pytest.mark.parametrize("which", GROUPED)
def test_registers_give_the_same_bits_as_shared_memory(which, subgroup):
    (shared, _), (registers, kernels) = run(
        GROUPED[which], "float32", [exchanging(subgroup, 0), exchanging(subgroup, 4)]
    )
    assert any(k.subgroup == subgroup for k in kernels) == (which not in NOT_EXCHANGED)
    assert registers == shared


@pytest.mark.parametrize("which", HALVES)
def test_float16_in_memory_gives_the_same_bits_as_in_words(which):
    host = Device["WEBGPU"].host
    if FLOAT16 not in host.adapter.features:
        pytest.skip(f"{host.adapter.name} has no float16")
    assert converts_float16(host)
    (packed, before), (native, after) = run(HALVES[which], "float16", [target_of(), target_of(float16=True)])
    assert not any(k.code.startswith(b"enable f16;") for k in before)
    assert any(k.code.startswith(b"enable f16;") for k in after)
    assert native == packed


@pytest.mark.slow
@pytest.mark.skipif(not LAVAPIPE.exists(), reason="it is a driver that has float16")
def test_float16_on_lavapipe():
    """The same tests in a process of its own, because one process has one adapter."""
    environment = {**os.environ, "VK_DRIVER_FILES": str(LAVAPIPE)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "in_memory"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert f"{len(HALVES)} passed" in done.stdout, done.stdout


def test_a_program_is_refused_where_the_adapter_has_less():
    runtime = Device["WEBGPU"]
    ((_, (kernel, *_)),) = run(lambda x: x + 1, "float32", [target_of()])
    specs = tuple(BufferSpec(40 * 256, "float32", "input") for _ in range(kernel.n_buffers))
    launch = Launch(0, tuple(Binding(i) for i in range(kernel.n_buffers)), (40, 1, 1))

    def load(**changed):
        kernels = (replace(kernel, **changed),)
        return runtime.load(Program("WEBGPU", "elsewhere", specs, kernels, (launch,)))

    for subgroup in {8, 32} - {runtime.adapter.subgroup}:
        with pytest.raises(ProgramError, match=f"expected subgroups of {subgroup} invocations, got"):
            load(subgroup=subgroup)
    if FLOAT16 not in runtime.adapter.features:
        with pytest.raises(ProgramError, match=r"expected an adapter with the feature shader-f16, got"):
            load(code=b"enable f16;\n" + kernel.code)
    load()  # the next one is fine
