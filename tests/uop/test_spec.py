"""Legal IR passes; each rule's breach is named."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from uop.test_printer import row_sums

from polygrad.dtype import dtypes
from polygrad.errors import InternalError
from polygrad.uop.args import Axis, AxisKind, Param, Reduction, Reg, Shear
from polygrad.uop.linear import Steps
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.spec import verify


class FakeBuffer(NamedTuple):
    size: int


f32, i32, void = dtypes.float32, dtypes.int32, dtypes.void
r0 = UOp.range(4, 0)
in_order = UOp.range(4, Axis((1,), AxisKind.SCAN))
pointer = UOp(Ops.PARAM, f32, (), Param(0, 12))
at = UOp(Ops.INDEX, f32, (pointer, r0))
value = UOp(Ops.LOAD, f32, (at,))
half = UOp(
    Ops.LOAD,
    dtypes.float16,
    (UOp(Ops.INDEX, dtypes.float16, (UOp(Ops.PARAM, dtypes.float16, (), Param(1, 4)), r0)),),
)
zero = UOp.const(f32, 0.0)
store = UOp(Ops.STORE, void, (at, value))
end = UOp(Ops.END, void, (store, r0))
tensor = UOp(Ops.BUFFER, f32, (), FakeBuffer(12))
square = tensor.reshape((3, 4))


def test_legal_tensor_graphs() -> None:
    x = square.permute((1, 0)).pad(((1, 1), (0, 0))).shrink(((0, 4), (1, 3))).flip((0,))
    y = (
        (x.reshape((4, 2, 1)).expand((4, 2, 5)) * 2.0)
        .reduce_axis(Ops.ADD, (1,))
        .cast(i32)
        .contiguous()
        .copy_to("WASM")
    )
    verify(
        UOp.sink(y, tensor.assign(tensor + tensor), (tensor < 1.0).where(tensor, tensor)).toposort(), "tensor"
    )


def test_a_clone_of_what_is_stored_is_stored_again() -> None:
    assert tensor.contiguous() is tensor
    assert tensor.clone().op is Ops.CONTIGUOUS and tensor.clone().clone() is not tensor.clone()


def test_legal_kernels() -> None:
    verify(UOp.sink(end).toposort(), "kernel")
    summed = UOp(Ops.REDUCE, f32, (value.alu(Ops.EXP2), r0), Ops.ADD)
    verify(
        UOp.sink(UOp(Ops.STORE, void, (UOp(Ops.INDEX, f32, (pointer, UOp.index(0))), summed))).toposort(),
        "kernel",
    )
    verify(row_sums(), "kernel")
    verify(row_sums(), "linear")


BROKEN = [
    # any stage (values no other test uses: an interned node is there for all)
    ("kernel", UOp(Ops.CONST, f32, (), 987654), "its argument is a value of its dtype"),
    ("kernel", UOp(Ops.CONST, dtypes.int8, (), 200), "its argument is a value of its dtype"),
    ("kernel", UOp(Ops.CONST, dtypes.bool, (), 2), "its argument is a value of its dtype"),
    ("kernel", UOp(Ops.ADD, f32, (value,)), "has 2 sources"),
    ("kernel", UOp(Ops.ADD, f32, (value, UOp.const(i32, 1))), "its sources have its dtype"),
    ("kernel", UOp(Ops.IDIV, f32, (value, zero)), "its dtype is an integer"),
    ("kernel", UOp(Ops.AND, f32, (value, zero)), "its dtype is an integer or bool"),
    ("kernel", UOp(Ops.SIN, i32, (UOp.const(i32, 1),)), "its dtype is a float"),
    ("kernel", UOp(Ops.CMPLT, f32, (value, zero)), "it gives bool"),
    ("kernel", UOp(Ops.CMPLT, dtypes.bool, (value, r0)), "its sources have one dtype"),
    ("kernel", UOp(Ops.WHERE, f32, (value, zero, zero)), "its condition is bool"),
    ("kernel", UOp(Ops.WHERE, f32, (value < 1.0, zero, r0)), "both choices have its dtype"),
    ("kernel", UOp(Ops.BITCAST, dtypes.int8, (value,)), "both dtypes have one size"),
    ("kernel", UOp(Ops.THREEFRY, i32, (UOp.const(i32, 1), UOp.const(i32, 1))), "its dtype is uint64"),
    # tensor graphs
    ("tensor", value, "LOAD does not belong here"),
    ("tensor", UOp(Ops.SUB, f32, (tensor, tensor)), "SUB does not belong here"),
    ("tensor", UOp(Ops.ADD, f32, (tensor, square)), "its sources have one shape"),
    ("tensor", UOp(Ops.RESHAPE, f32, (tensor,), (5,)), "it keeps the number of elements"),
    ("tensor", UOp(Ops.EXPAND, f32, (square,), (6, 4)), "only sizes of 1 grow"),
    ("tensor", UOp(Ops.PERMUTE, f32, (square,), (0, 0)), "its argument is a permutation"),
    ("tensor", UOp(Ops.PAD, f32, (square,), ((1, -1), (0, 0))), "each axis has two sides, none negative"),
    ("tensor", UOp(Ops.SHRINK, f32, (square,), ((0, 4), (0, 4))), "0 <= lo <= hi <= size on each axis"),
    ("tensor", UOp(Ops.FLIP, f32, (square,), (2,)), "its axes are distinct and in range"),
    ("tensor", UOp(Ops.SHEAR, f32, (square,), Shear(0, 1, 0, 1, 2)), "its windows lie within the axis"),
    ("tensor", UOp(Ops.REDUCE_AXIS, f32, (square,), Reduction(Ops.ADD, (1, 1))), "its axes are distinct"),
    ("tensor", UOp(Ops.REDUCE_AXIS, f32, (square,), Reduction(Ops.SIN, (1,))), "it combines with ADD"),
    ("tensor", UOp(Ops.SCAN_AXIS, f32, (square, square), Reduction(Ops.ADD, (0, 1))), "it goes along one"),
    ("tensor", UOp(Ops.SCAN_AXIS, f32, (square, square), Reduction(Ops.MULACC, (0,))), "of a factor"),
    # kernels
    ("kernel", tensor, "BUFFER does not belong here"),
    ("kernel", UOp(Ops.RANGE, dtypes.index, (UOp.index(3),), 0), "its argument is a Axis"),
    ("kernel", UOp(Ops.INDEX, f32, (value, r0)), "it points into a PARAM, DEFINE_REG or STAGE"),
    ("kernel", UOp(Ops.INDEX, f32, (pointer, UOp.const(i32, 1))), "its position is an index"),
    ("kernel", UOp(Ops.INDEX, f32, (pointer, r0, r0)), "its gate is bool"),
    ("kernel", UOp(Ops.INDEX, f32, (pointer, r0), 4), "its argument is None or Steps"),
    ("kernel", UOp(Ops.INDEX, f32, (pointer, r0), Steps(((r0, 4),), 0)), "over ranges that open no loop"),
    ("kernel", UOp(Ops.LOAD, f32, (pointer,)), "it loads from an INDEX"),
    ("kernel", UOp(Ops.LOAD, f32, (at.replace(src=(pointer, r0, r0 < 2)),)), "a gate and a value"),
    ("kernel", UOp(Ops.STORE, void, (at, r0)), "the value has the INDEX's dtype"),
    ("kernel", UOp(Ops.END, void, (store, value)), "it ends RANGEs"),
    ("kernel", UOp(Ops.REDUCE, f32, (value, r0), Ops.SIN), "it combines with ADD, MUL or MAX"),
    ("kernel", UOp(Ops.SCAN, f32, (r0, value, zero), Ops.ADD), "it goes along a RANGE of kind SCAN"),
    ("kernel", UOp(Ops.SCAN, f32, (in_order, value, zero, r0), Ops.MULACC), "its values have its dtype"),
    ("kernel", UOp(Ops.SCAN, f32, (in_order, value, zero, value), Ops.ADD), "its key is an integer"),
    ("kernel", UOp(Ops.SCAN, f32, (in_order, value, zero, r0 - 1), Ops.ADD), "of at least 0"),
    ("kernel", UOp(Ops.SCAN, f32, (in_order, value, zero, r0, r0), Ops.ADD), "of those with a key"),
    ("kernel", UOp(Ops.AFTER, f32, (pointer,)), "it comes after something"),
    ("kernel", UOp.sink(value), "it holds effects"),
    # linear kernels
    ("linear", value.alu(Ops.EXP2), "EXP2 does not belong here"),
    ("linear", half + half, "16-bit floats are computed in float32"),
    ("linear", UOp(Ops.REDUCE, f32, (value, r0), Ops.ADD), "it reduces within a tile"),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "node", "rule"), BROKEN, ids=[f"{s}-{n.op}-{r}" for s, n, r in BROKEN])
def test_a_broken_rule_is_named_with_its_node(stage: str, node: UOp, rule: str) -> None:
    with pytest.raises(InternalError) as error:
        verify([node], stage)
    assert str(error.value).startswith(f"internal: {stage} IR: {node.op}:") and rule in str(error.value)


def test_a_tile_reduces_in_a_linear_kernel() -> None:
    lane = UOp.range(4, 1, AxisKind.LANE)
    load = UOp(Ops.LOAD, f32, (UOp(Ops.INDEX, f32, (pointer, lane)),))
    total = UOp(Ops.REDUCE, f32, (load, lane), Ops.ADD)
    out = UOp(Ops.INDEX, f32, (pointer, UOp.index(0)))
    verify(UOp.sink(UOp(Ops.STORE, void, (out, total))).toposort(), "linear")


def _order(change) -> list[UOp]:  # type: ignore[no-untyped-def]
    nodes = row_sums()
    change(nodes)
    return nodes


def _move(nodes: list[UOp], op: Ops, to: int) -> None:
    found = next(n for n in nodes if n.op is op)
    nodes.remove(found)
    nodes.insert(to, found)


OUT_OF_ORDER = [
    (lambda nodes: _move(nodes, Ops.DEFINE_REG, 20), "its source DEFINE_REG comes before it"),
    (lambda nodes: nodes.append(nodes[3]), "a node stands in the list once"),
    (lambda nodes: nodes.remove(nodes[-2]) or nodes.pop(), "every loop is ended"),
    (lambda nodes: nodes.insert(-1, UOp(Ops.END, void, (store, r0))), "comes before it"),
]


@pytest.mark.parametrize(("change", "rule"), OUT_OF_ORDER, ids=[r for _, r in OUT_OF_ORDER])
def test_a_list_out_of_order(change, rule: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InternalError, match=rule):
        verify(_order(change), "linear")


def test_a_value_of_an_ended_loop_is_not_used() -> None:
    register = UOp(Ops.DEFINE_REG, f32, (), Reg(0))
    slot = UOp(Ops.INDEX, f32, (register, UOp.index(0)))
    inside = UOp(Ops.STORE, void, (slot, value))
    ended = UOp(Ops.END, void, (inside, r0))
    late = UOp(
        Ops.STORE, void, (UOp(Ops.INDEX, f32, (UOp(Ops.AFTER, f32, (pointer, ended)), UOp.index(0))), value)
    )
    with pytest.raises(InternalError, match="its source LOAD was made in a loop that has ended"):
        verify(UOp.sink(late).toposort(), "linear")


def test_loops_are_ended_innermost_first() -> None:
    r1 = UOp.range(3, 1)
    first = UOp(Ops.END, void, (UOp(Ops.STORE, void, (UOp(Ops.INDEX, f32, (pointer, r0 + r1)), zero)), r0))
    nodes = UOp.sink(UOp(Ops.END, void, (first, r1))).toposort()
    with pytest.raises(InternalError, match="it ends the innermost open loop"):
        verify(nodes, "linear")
