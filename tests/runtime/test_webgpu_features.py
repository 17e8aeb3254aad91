"""What WEBGPU has on some adapters only: subgroups. Which invocations they have, and reductions in their
registers: those of a software adapter, too, though its Target names none."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest

pytest.importorskip("wgpu", reason="it is WebGPU under CPython")

import numpy as np

from polygrad import Device, Tensor
from polygrad.engine.programs import clear_caches
from polygrad.runtime.webgpu_lanes import neighbours_in_subgroup

pytestmark = pytest.mark.needs_adapter
GROUPED = {
    "rows": lambda x: x.sum(1),
    "maxima": lambda x: x.max(1),
    "columns": lambda x: x.sum(0),
    "a softmax": lambda x: x.softmax(1),
    "integers": lambda x: (x * 100).cast("int32").sum(1),
    "long integers": lambda x: (x * 100).cast("int64").sum(1),
}


@pytest.fixture
def subgroup():
    host = Device["WEBGPU"].host
    if "subgroup" not in host.adapter.features:
        pytest.skip(f"{host.adapter.name} has no subgroups")
    return neighbours_in_subgroup(host)


def test_lanes_are_neighbours(subgroup):
    assert subgroup in (4, 8, 16, 32, 64, 128)


def test_a_target_names_them_where_they_are_asked_for():
    adapter = Device["WEBGPU"].adapter
    target_of = importlib.import_module("polygrad.engine.backends.webgpu_backend").target_of
    limits = target_of(adapter, 32).workgroups
    assert (limits.subgroup, limits.shuffle_bytes) == (32, 4)
    assert target_of(adapter).workgroups.shuffle_bytes == 0


@pytest.mark.parametrize("which", GROUPED)
def test_registers_give_the_same_bits_as_shared_memory(which, subgroup, monkeypatch):
    backend = Device.backend("WEBGPU")
    runtime, texts = Device["WEBGPU"], []
    load = type(runtime).load

    def loaded(self, program):
        texts.extend(k.code.decode() for k in program.kernels)
        return load(self, program)

    monkeypatch.setattr(type(runtime), "load", loaded)
    x = np.random.default_rng(0).standard_normal((40, 256)).astype(np.float32)
    found = []
    for nbytes in (0, 4):
        limits = replace(backend.target.workgroups, subgroup=subgroup, shuffle_bytes=nbytes, software=False)
        target = replace(backend.target, workgroups=limits)
        monkeypatch.setitem(Device._backends, "WEBGPU", replace(backend, target=target, caches_on_disk=False))
        clear_caches()
        texts.clear()
        found.append(GROUPED[which](Tensor(x, device="WEBGPU")).numpy().tobytes())
        exchanges = any("subgroupShuffleXor" in text for text in texts)
        assert exchanges == (nbytes > 0 and which not in ("long integers", "columns"))
    assert found[0] == found[1]
