"""The algebra of reductions: rows that fire, cases that must not, and registers."""

from __future__ import annotations

import pytest

from polygrad import Tensor
from polygrad.codegen.lower.reductions import (
    canonicalize,
    flatten_reductions,
    identity_element,
    simplify_reductions,
)
from polygrad.codegen.opts.stage import lower_stages
from polygrad.dtype import dtypes
from polygrad.engine.normalize import normalize
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import symbolic
from tests.schedules import schedule


def buffer(*shape, dtype="float32"):
    return Tensor.zeros(*shape, dtype=dtype).contiguous().realize()


def simplified(out, optimized=False):
    """The only kernel of a Tensor, its reductions simplified."""
    (call,) = schedule(normalize(UOp.sink(out.uop.base)).sink, optimized).calls
    return graph_rewrite(graph_rewrite(call.ast, symbolic), simplify_reductions)


def count(sink, op):
    return sum(n.op is op for n in sink.toposort())


def test_sum_of_what_does_not_change_is_a_multiple():
    x = buffer(5)
    assert count(simplified(x.reshape(5, 1).expand(5, 7).sum(1)), Ops.REDUCE) == 0
    assert count(simplified(x.reshape(5, 1).expand(5, 7).max(1)), Ops.REDUCE) == 0


def test_only_the_idle_range_of_two_goes():
    x = buffer(5, 6)
    sink = simplified(x.reshape(5, 6, 1).expand(5, 6, 7).sum((1, 2)))
    (reduction,) = [n for n in sink.toposort() if n.op is Ops.REDUCE]
    assert len(reduction.src) == 2


def test_product_of_what_does_not_change_stays():
    assert count(simplified(buffer(5).reshape(5, 1).expand(5, 7).prod(1)), Ops.REDUCE) == 1


def test_a_sum_over_one_position_is_a_gather():
    table, at = buffer(100, 8), buffer(3, dtype="int32")
    sink = simplified(table[at])
    assert count(sink, Ops.REDUCE) == 0
    gates = [n.src[2] for n in sink.toposort() if n.op is Ops.INDEX and len(n.src) == 3]
    assert gates, "a position outside the table must not be read"


def test_sums_over_several_positions_are_gathers():
    table, i, j = buffer(100, 8, 9), buffer(3, dtype="int32"), buffer(3, dtype="int32")
    assert count(simplified(table[i, j]), Ops.REDUCE) == 0
    assert count(simplified(table[i, :, j]), Ops.REDUCE) == 0
    rows = (Tensor.arange(100).reshape(1, 100) == i.reshape(3, 1)).reshape(3, 100, 1).where(table[:, 0], 0)
    (total,) = [n for n in simplified(rows.sum((1, 2))).toposort() if n.op is Ops.REDUCE]
    assert [r.src[0].arg for r in total.src[1:]] == [9]  # of the row that is picked


def test_one_hot_needs_no_loop():
    at = buffer(6, dtype="int32")
    hot = Tensor.arange(9).reshape(1, 9) == at.reshape(6, 1)
    assert count(simplified(hot.where(Tensor.arange(9).reshape(1, 9) * 3, 0).sum(1)), Ops.REDUCE) == 0


def test_the_bits_of_two_integers_are_no_product_of_conditions():
    a, b, at = buffer(6, dtype="int32"), buffer(6, dtype="int32"), buffer(6, dtype="int32")
    sink = simplified((a & b).gather(0, at))
    assert count(sink, Ops.REDUCE) == 0
    assert any(n.op is Ops.AND and n.dtype == "int32" for n in sink.toposort())


def test_a_sum_of_guarded_sums_is_one_sum_unless_the_guard_is_the_sum_itself():
    x, chosen = buffer(5, 6, 7), buffer(5, 6)
    for guarded, sums in (
        (lambda s: (chosen > 0).where(s, 0), 1),
        (lambda s: (s > 0).where(s, 0), 2),
        (lambda s: (chosen > 0).where((s > 1).where(s, 0), 0), 2),
    ):
        flat = graph_rewrite(simplified(guarded(x.sum(2)).sum(1)), flatten_reductions)
        assert count(flat, Ops.REDUCE) == sums


def test_a_canonical_kernel_stays_as_it_is():
    x = buffer(2, 3, 4)
    (call,) = schedule(normalize(UOp.sink((x.sum(2) * 2).sum((0, 1)).uop.base)).sink).calls
    kernel = canonicalize(call.ast)
    assert count(kernel, Ops.REDUCE) == 2  # the inner one is multiplied
    assert canonicalize(kernel) is kernel


@pytest.mark.parametrize("how", ["less", "max", "other value", "both sides"])
def test_what_is_no_gather_stays_a_loop(how):
    table, at = buffer(9), buffer(6, dtype="int32")
    ramp = Tensor.arange(9).reshape(1, 9)
    rows = table.reshape(1, 9).expand(6, 9)
    here = (ramp == at.reshape(6, 1)).expand(6, 9)
    out = {
        "less": lambda: (ramp < at.reshape(6, 1)).where(rows, 0).sum(1),
        "max": lambda: here.where(rows, 0).max(1),
        "other value": lambda: here.where(rows, 1).sum(1),
        "both sides": lambda: (ramp == (at.reshape(6, 1) + ramp)).where(rows, 0).sum(1),
    }[how]()
    assert count(simplified(out), Ops.REDUCE) == 1


def test_conditions_of_a_gather_are_read_under_its_gate_too():
    mask, ramp = buffer(2, dtype="bool"), Tensor.arange(2).reshape(1, 2)
    wanted = Tensor.arange(5).reshape(5, 1)
    out = (ramp == wanted).where(mask.reshape(1, 2).float(), 0).sum(1)
    sink = simplified(out)
    assert count(sink, Ops.REDUCE) == 0
    assert all(len(n.src[0].src) == 3 for n in sink.toposort() if n.op is Ops.LOAD)


def test_the_position_of_a_gather_is_not_gated_by_itself():
    table, weights = buffer(7), buffer(4, dtype="int32")
    position = (weights * weights).sum().reshape(1, 1)
    out = (Tensor.arange(7).reshape(1, 7) == position).where(table.reshape(1, 7), 0).sum(1)
    sink = simplified(out, optimized=True)
    assert count(sink, Ops.REDUCE) == 1
    assert len({n for n in sink.toposort() if n.op is Ops.RANGE}) == 1


@pytest.mark.parametrize(
    ("op", "dtype", "value"),
    [
        (Ops.ADD, "int32", 0), (Ops.MUL, "float32", 1.0), (Ops.MAX, "int8", -128),
        (Ops.MAX, "float64", float("-inf")), (Ops.MAX, "uint16", 0),
    ],
)  # fmt: skip
def test_identity_elements(op, dtype, value):
    found = identity_element(op, getattr(dtypes, dtype))
    assert found.arg == value and found.dtype == dtype


def test_a_reduction_becomes_a_register_that_its_loop_accumulates_in():
    sink = lower_stages(simplified(buffer(4, 3).sum(1)))
    assert count(sink, Ops.REDUCE) == 0 and count(sink, Ops.DEFINE_REG) == 1
    assert count(sink, Ops.END) == 2 and count(sink, Ops.STORE) == 3


def test_a_reduction_in_a_reduction_has_a_register_of_its_own():
    sink = lower_stages(simplified((buffer(4, 3).sum(1) * 2).max(0)))
    assert count(sink, Ops.DEFINE_REG) == 2


def test_what_is_computed_of_a_position_is_picked_also_from_beyond_the_ends(device):
    positions = Tensor([3, -1, 50, 0], device=device)
    count = Tensor.arange(28, device=device)
    assert positions.is_class(28, -1).where(100 // (count + 1), 0).sum(-1).tolist() == [25, 0, 0, 100]
    shifted = count << (count & 31)
    places = [i << i for i in range(28)]
    assert shifted[shifted].tolist() == [i << i if i < 28 else 0 for i in places]
