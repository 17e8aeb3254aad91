"""graph_rewrite: fixed points, order, sharing, depth."""

from __future__ import annotations

import gc

import pytest

from polygrad.dtype import dtypes
from polygrad.errors import InternalError
from polygrad.uop.intern import collect, node_count
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.path_conditions import simplify_under
from polygrad.uop.pattern import PatternMatcher, UPat
from polygrad.uop.pattern_names import c, const, d, op, x
from polygrad.uop.rewrite import graph_rewrite
from polygrad.uop.symbolic import clear_caches, simplify

r0, r1 = UOp.range(4, 0), UOp.range(5, 1)
DEEP = 20_000

drop_zeros = PatternMatcher([(op(Ops.ADD, x, const(0)), lambda x: x)])
add_constants = drop_zeros + PatternMatcher([
    (op(Ops.ADD, op(Ops.ADD, x, c), d), lambda x, c, d: x + (c.arg + d.arg)),
])  # fmt: skip


def test_to_a_fixed_point() -> None:
    deep = (((r0 + 1) + 2) + -3) * r1
    assert graph_rewrite(deep, add_constants) is r0 * r1


def test_nothing_matches_nothing_is_made() -> None:
    graph = (r0 * 4 + r1) % 7
    before = node_count()
    assert graph_rewrite(graph, add_constants) is graph
    assert node_count() == before


def test_a_shared_node_is_matched_once() -> None:
    seen: list[UOp] = []
    table = PatternMatcher([(UPat(Ops.RANGE, name="r"), lambda r: seen.append(r))])
    graph_rewrite((r0 + r0) * (r0 + 1), table)
    assert seen == [r0]


def test_sources_come_first() -> None:
    order: list[Ops] = []
    table = PatternMatcher([(UPat((Ops.ADD, Ops.MUL), name="u"), lambda u: order.append(u.op))])
    graph_rewrite((r0 + 1) * 2, table)
    assert order == [Ops.ADD, Ops.MUL]


@pytest.mark.parametrize(
    "rows",
    [
        [
            (UPat(Ops.ADD, name="x"), lambda x: x.replace(op=Ops.MUL)),
            (UPat(Ops.MUL, name="x"), lambda x: x.replace(op=Ops.ADD)),
        ],
        [(UPat(Ops.RANGE, arg=r0.arg, name="x"), lambda x: x + 1)],
    ],
)
def test_a_pair_of_rows_that_loops_is_an_internal_error(rows) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InternalError, match="leads back to it"):
        graph_rewrite(r0 + 1, PatternMatcher(rows))


def _chain(n: int) -> UOp:
    out = r0.cast(dtypes.float32)
    for i in range(n):
        out = out.alu(Ops.SQRT) + float(i % 3)
    return out


def test_a_graph_20000_deep_is_rewritten() -> None:
    out = graph_rewrite(_chain(DEEP // 2), drop_zeros)
    assert sum(n.op is Ops.ADD for n in out.toposort()) == sum(i % 3 > 0 for i in range(DEEP // 2))


def test_a_graph_20000_deep_is_simplified_forgotten_and_collected() -> None:
    clear_caches()
    gc.collect()
    collect()
    before = node_count()
    total = UOp.index(0)
    for i in range(DEEP):
        total = (total + r0 * (i % 5)) % (i + 1000)
    kept = simplify(total)
    assert len(kept.toposort()) > DEEP // 2
    del kept, total
    clear_caches()
    collect()
    assert node_count() <= before + 100


def test_a_sum_of_20000_terms_is_simplified() -> None:
    total = UOp.index(0)
    for i in range(DEEP):
        total = total + UOp.range(3, i)
    assert simplify(total + 1 + r0) is not total
    clear_caches()


def test_clear_caches_forgets_what_was_simplified_under_conditions() -> None:
    gate = UOp.range(4096, 77) < 5
    y = simplify_under(UOp.range(4096, 77) // 5, gate)
    assert y.arg == 0
    clear_caches()
    collect()
    count = node_count()
    del gate, y
    collect()
    assert node_count() <= count
