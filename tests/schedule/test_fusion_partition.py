"""The fusion partition: what is materialised, and what is duplicated into every kernel that needs it."""

from __future__ import annotations

import pytest

from polygrad import Tensor
from polygrad.engine.normalize import normalize
from polygrad.schedule.cost import MAX_COPIES, MAX_REPEATED
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from tests.schedules import schedule


def kernels(*outputs: Tensor, optimized: bool = False) -> tuple[KernelCall, ...]:
    return tuple(schedule(normalize(UOp.sink(*[t.uop for t in outputs])).sink, optimized).calls)


def matrix(*shape: int) -> Tensor:
    return Tensor.empty(*shape).contiguous().realize()


def test_elementwise_chains_fuse():
    x = matrix(4, 5)
    assert len(kernels(((x + 1) * x).exp().sum(1))) == 1


def test_a_reduction_that_is_broadcast_is_stored():
    x = matrix(40, 50)
    assert len(kernels(x - x.max(1, keepdim=True))) == 2


def test_an_elementwise_value_of_few_buffers_is_repeated():
    x, y = matrix(4, 5), matrix(4, 5)
    shared = (x * y).exp()
    assert len(kernels(shared.sum(0), shared.sum(1))) == 2


def test_an_elementwise_value_of_many_buffers_is_stored():
    a, b, c, d = (matrix(4, 5) for _ in range(4))
    shared = a * b + c * d
    assert len(kernels(shared.sum(0), shared.sum(1))) == 3


def test_a_long_chain_shared_by_two_kernels_is_repeated_whole():
    """Each kernel computes every link once: sharing at each link does not make it more expensive."""
    x = matrix(4, 5)
    links = [x]
    for i in range(20):
        links.append((links[-1] * 2 + i).sqrt() + links[-1])
    total = links[1]
    for link in links[2:]:
        total = total + link
    assert len(kernels(total.sum(0), total.sum(1))) == 2


def stencil(x: Tensor) -> Tensor:
    p = x.pad((1, 1, 1, 1))
    return p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2] + x


@pytest.mark.parametrize(("steps", "expected"), [(1, 1), (3, 1), (5, 2), (9, 3)])
def test_stencils_of_stencils_fuse_until_one_value_is_needed_at_too_many_places(steps: int, expected: int):
    """k steps on, a value is needed at 2k(k+1) + 1 places: 13, 25, 41; padding splits some."""
    x = matrix(12, 12)
    for _ in range(steps):
        x = stencil(x)
    calls = kernels(x)
    assert len(calls) == expected
    for call in calls:
        assert sum(n.op is Ops.LOAD for n in call.ast.toposort()) <= 3 * MAX_COPIES


@pytest.mark.parametrize(
    ("size", "optimized", "expected"),
    [(MAX_REPEATED, True, 1), (MAX_REPEATED + 1, True, 2), (MAX_REPEATED, False, 2)],
)
def test_a_short_reduction_to_a_scalar_is_repeated_when_optimised(size: int, optimized: bool, expected: int):
    x, y = matrix(size), matrix(6, 7)
    assert len(kernels(y * x.max(), optimized=optimized)) == expected


def test_a_short_reduction_to_a_vector_is_stored():
    x, y = matrix(3, 5), matrix(6, 3)
    assert len(kernels(y * x.max(1), optimized=True)) == 2


def test_short_reductions_of_short_reductions_count_together():
    """Three of 120 elements are more than may be repeated: the last one is stored."""
    x, y = matrix(120), matrix(6, 7)
    total = x.sum()
    for _ in range(2):
        total = (x * total).sum()
    assert len(kernels(y * total, optimized=True)) == 2


def test_a_transcendental_operand_of_a_large_product_is_stored():
    """It is not computed again for every tile of the result."""
    x, w = matrix(128, 512), matrix(512, 128)
    assert len(kernels(x.gelu() @ w, optimized=True)) == 2
    assert len(kernels(x.gelu() @ w)) == 1  # as tinygrad


def test_a_cheap_operand_of_a_product_is_not_stored():
    x, w = matrix(128, 512), matrix(512, 128)
    assert len(kernels((x * 2).relu() @ w, optimized=True)) == 1


@pytest.mark.parametrize("rows, stored", [(1, True), (16, True), (64, False)])
def test_a_cheap_operand_is_stored_where_it_is_small(rows: int, stored: bool):
    """As a row that is scaled, before a product with a matrix."""
    product = (matrix(rows, 512) * matrix(512)) @ matrix(512, 2048)
    assert (len(kernels(product, optimized=True)) == 2) is stored


def test_a_small_operand_that_is_converted_is_not_stored():
    x = Tensor.empty(1, 512, dtype="bfloat16").contiguous().realize()
    assert len(kernels(x.cast("float32") @ matrix(512, 2048), optimized=True)) == 1


def test_an_operand_of_a_small_product_is_not_stored():
    x, w = matrix(4, 8), matrix(8, 4)
    assert len(kernels(x.gelu() @ w, optimized=True)) == 1


def unpacked(rows: int, columns: int) -> Tensor:
    """A matrix of 4 bits, with a scale, an offset, and parts of both, for each 32 numbers: five buffers."""
    bits = Tensor.empty(rows, columns // 32, 16, dtype="uint8").contiguous().realize()
    scales, offsets, more, others = (matrix(rows, columns // 32, 1, 1) for _ in range(4))
    shifts = Tensor.arange(2, dtype="int32").reshape(2, 1) * 4
    q = (bits.cast("int32").unsqueeze(-2) >> shifts) & 15
    return (q.float() * (scales * more) - offsets * others).reshape(rows, columns)


@pytest.mark.parametrize(("rows", "expected"), [(1, 1), (2, 1), (8, 1), (9, 2)])
def test_an_operand_of_a_product_of_few_rows_is_computed_in_its_tile(rows: int, expected: int):
    product = matrix(rows, 512) @ unpacked(512, 512).transpose()
    assert len(kernels(product, optimized=True)) == expected


@pytest.mark.parametrize(("bits", "expected"), [(4, 1), (8, 2)])
def test_integers_of_less_than_a_byte_are_computed_in_each_tile(bits: int, expected: int):
    """Of a product of many rows; those of a byte and more are stored."""
    packed = Tensor.empty(512, 512 * bits // 8, dtype="uint8").contiguous().realize()
    x = Tensor.empty(64, 512, dtype="int8").contiguous().realize().cast("int32")
    shifts = Tensor.arange(8 // bits, dtype="int32").reshape(-1, 1) * bits
    q = (((packed.cast("int32").unsqueeze(-2) >> shifts) ^ 5) & 15 | 3).reshape(512, 512)
    assert len(kernels(x.dot(q.transpose(), dtype="int32"), optimized=True)) == expected


def test_what_several_products_of_few_rows_read_is_stored():
    weight = unpacked(512, 512)
    assert len(kernels(matrix(4, 512) @ weight, matrix(4, 512) @ weight.transpose(), optimized=True)) == 3


def test_an_operand_that_takes_long_is_stored_for_few_rows_too():
    assert len(kernels(matrix(4, 512) @ unpacked(512, 512).sin(), optimized=True)) == 2


def test_what_is_added_and_not_multiplied_with_rows_is_stored():
    total = (matrix(4, 1, 512) + unpacked(512, 512).unsqueeze(0)).sum(-1)
    assert len(kernels(total, optimized=True)) == 2


def codes(n: int) -> Tensor:
    """Computed bytes."""
    return (matrix(n, n) * 3).round().clamp(0, 255).cast("uint8")


def stored_dtypes(*outputs: Tensor) -> list[str]:
    return [call.args[0].dtype.name for call in kernels(*outputs, optimized=True)]


def test_of_integers_that_are_converted_to_more_bytes_the_fewer_are_stored():
    w = Tensor.empty(512, 512, dtype="int8").contiguous().realize()
    assert stored_dtypes(codes(512).dot(w, dtype="int32")) == ["uint8", "int32"]
    assert stored_dtypes(codes(512).int().contiguous() + 1) == ["int32", "int32"]  # what is asked for


def test_floats_are_stored_as_they_are_converted():
    half = (matrix(512, 512) * 3).gelu().half()
    assert stored_dtypes(half.float() @ matrix(512, 512)) == ["float32", "float32"]


@pytest.mark.parametrize("fill", [0, 3])
def test_codes_of_a_product_are_stored_before_they_are_padded(fill: int):
    x, w = (Tensor.empty(*s, dtype="int8").contiguous().realize() for s in ((1, 64, 28, 28), (64, 64, 1, 1)))
    v = Tensor.empty(64, 64, 3, 3, dtype="int8").contiguous().realize()
    total = (x.int().conv2d(w.int()).float() * 0.1).round().clamp(0, 255).cast("uint8")
    out = total.pad((1, 1, 1, 1), value=fill).int().conv2d(v.int())
    first, *_ = kernels(out, optimized=True)
    assert first.args[0].dtype.name == "uint8" and first.args[0].numel() == 64 * 28 * 28
