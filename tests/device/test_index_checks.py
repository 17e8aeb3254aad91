"""Indices and class labels that are out of range: refused where the host knows them, 0 where a device
computed them, and reported by every device with CHECK=1."""

from __future__ import annotations

import re

import pytest

from polygrad import Context, Tensor, TinyJit, nn
from polygrad.errors import AxisError

# what uses integers that lie in 0..2, or in 0..3 along the last axis
USES = {
    "index": lambda t, i: t[i],
    "index of a row": lambda t, i: t[:, i],
    "gather": lambda t, i: t.gather(0, i.reshape(-1, 1)),
    "scatter": lambda t, i: t.scatter(0, i.reshape(-1, 1), 1.0),
    "scatter_reduce": lambda t, i: t.scatter_reduce(0, i.reshape(-1, 1), t[:2, :1], "sum"),
    "index_select": lambda t, i: t.index_select(0, i),
    "index_fill": lambda t, i: t.index_fill(0, i, 5.0),
    "index_add": lambda t, i: t.index_add(0, i, t[:2]),
    "take": lambda t, i: t.take(i + 12 - 3),
    "take_along_dim": lambda t, i: t.take_along_dim(i.reshape(-1, 1), 0),
    "cross_entropy": lambda t, i: t[:2, :3].cross_entropy(i),
    "nll_loss": lambda t, i: t[:2, :3].nll_loss(i),
    "sparse_categorical_crossentropy": lambda t, i: t[:2, :3].sparse_categorical_crossentropy(i),
    "setitem": lambda t, i: (t + 0).__setitem__(i, 1.0) or t,
}
KNOWN = [name for name in USES if name != "take"]  # which computes its indices


def table(device):
    return Tensor([[float(4 * i + j) for j in range(4)] for i in range(3)], device=device)


@pytest.mark.parametrize("use", KNOWN)
def test_host_data_is_checked_when_it_is_given(device, use):
    t = table(device)
    USES[use](t, Tensor([0, 2], device=device)).realize()
    with pytest.raises(
        IndexError, match=r"index 9 \(element 1 of the indices\) is out of range: expected .* for"
    ):
        USES[use](t, Tensor([2, 9], device=device))
    USES[use](t, Tensor([2, 1], device=device)).realize()


def test_lists_and_arrays_are_checked(device):
    t = table(device)
    for index in ([0, 3], (0, -4), 3, -4):
        with pytest.raises(IndexError):
            t[index if not isinstance(index, tuple) else list(index)]
    assert t[[0, -3]].tolist() == [t[0].tolist()] * 2
    with pytest.raises(IndexError, match=r"test_index_checks\.py"):
        nn.Embedding(3, 2)(Tensor([7]))


def test_ignored_labels_are_no_error(device):
    t = table(device)[:2, :3]
    labels = Tensor([1, -100], device=device)
    with Context(CHECK=1):
        t.cross_entropy(labels, ignore_index=-100).item()
        t.sparse_categorical_crossentropy(Tensor([1, -1], device=device)).item()
    with pytest.raises(IndexError, match="expected 0 to 2 for 3 classes"):
        t.cross_entropy(labels)


@pytest.mark.parametrize("use", USES)
def test_what_a_device_computed_is_checked_on_demand(device, use):
    t, computed = table(device), Tensor([1, 8], device=device) + 1
    USES[use](t, computed).realize()  # reads 0, and writes nothing
    with Context(CHECK=1):
        USES[use](t, computed % 3).realize()
        with pytest.raises(AxisError) as error:
            USES[use](t, computed)
    assert re.search(r"index \d+ \(element 1 of the indices\)", str(error.value))
    assert re.search(r"test_index_checks.py:\d+", str(error.value))


def test_a_device_reads_0_and_writes_nothing_outside(device):
    t, computed = table(device), Tensor([1, 8, -9, 2**31 - 2], device=device) + 1
    assert t[computed].tolist()[1:] == [[0.0] * 4] * 3
    memory = Tensor([7.0] * 64, device=device).realize()
    view = memory[16:32]
    view[Tensor([3, 15, -17, 40], device=device) * 2] = 1.0
    assert memory.tolist() == [7.0] * 22 + [1.0] + [7.0] * 41


def test_captured_steps_are_checked_in_every_run(device):
    t = table(device)
    jit = TinyJit(lambda i: t[i * 2].sum().realize())
    with Context(CHECK=1):
        for first in (0, 1, 0, 1):
            assert jit(Tensor([first, 0], device=device).realize()).item() >= 6
        for _ in range(2):
            with pytest.raises(
                AxisError, match=r"index 4 \(element 1 of the indices\).*test_index_checks.py"
            ):
                jit(Tensor([1, 2], device=device).realize())
        assert jit(Tensor([1, 1], device=device).realize()).item() == 2 * (8 + 9 + 10 + 11)
