"""Which reductions of a tensor graph are products, and which of these are worth a kernel of their own."""

from __future__ import annotations

import pytest

from polygrad import Tensor
from polygrad.schedule import cost
from polygrad.schedule.products import is_large_product, is_product
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops


def reduction(out: Tensor) -> UOp:
    """The only REDUCE_AXIS of a graph."""
    (node,) = (n for n in out.uop.toposort() if n.op is Ops.REDUCE_AXIS)
    return node


def empty(*shape: int) -> Tensor:
    return Tensor.zeros(*shape, device="INTERP").contiguous().realize()


PRODUCTS = {
    "matrices": lambda: empty(64, 32) @ empty(32, 64),
    "of computed operands": lambda: empty(64, 32).relu() @ (empty(32, 64) + 1),
    "distances": lambda: (empty(64, 1, 32) - empty(1, 64, 32)).abs().sum(2),
    "convolution": lambda: empty(1, 16, 16, 16).conv2d(empty(16, 16, 3, 3)),
}
OTHERS = {
    "matrix and vector": lambda: empty(512, 512) @ empty(512, 1),
    "sum of elements": lambda: (empty(256, 256) * empty(256, 256)).sum(),
    "of a row that is broadcast": lambda: (empty(256, 256) * empty(256)).sum(1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_what_reads_two_operands_again_and_again_is_a_product(name: str) -> None:
    assert is_large_product(reduction(PRODUCTS[name]()))


@pytest.mark.parametrize("name", OTHERS)
def test_what_reads_an_operand_once_is_no_product(name: str) -> None:
    node = reduction(OTHERS[name]())
    assert not is_product(node) and not is_large_product(node)


def test_a_small_product_is_not_worth_a_kernel() -> None:
    node = reduction(empty(8, 8) @ empty(8, 8))
    assert is_product(node) and not is_large_product(node)


def test_reuse_is_that_of_the_operand_that_is_read_least_often() -> None:
    node = reduction(empty(64, 32) @ empty(32, 8))
    assert is_product(node) is (cost.MIN_REUSE <= 8)
    assert not is_product(reduction(empty(64, 32) @ empty(32, cost.MIN_REUSE - 1)))
