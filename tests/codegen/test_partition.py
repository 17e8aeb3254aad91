"""A concatenation of many operands is a kernel for each, and equal operands share it."""

from __future__ import annotations

import numpy as np
import pytest

from polygrad import Context, Tensor
from polygrad.codegen.kernels.apply import apply
from polygrad.codegen.kernels.kernel_opt import KernelContext, Kind, parse_kernel_opts
from polygrad.codegen.kernels.passes import schedule_graph, steps
from polygrad.codegen.opts import cost
from polygrad.engine.devices import Device
from polygrad.engine.normalize import normalize
from polygrad.errors import OptError
from polygrad.schedule.kernel_info import kernel_info
from polygrad.schedule.kernels import KernelCall
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

RNG = np.random.default_rng(7)


def data(*shape: int) -> Tensor:
    return Tensor(RNG.standard_normal(shape, dtype=np.float32), device="CPU").realize()


def many(count: int, *shape: int) -> list[Tensor]:
    return [data(*shape) for _ in range(count)]


def scheduled(x: Tensor) -> tuple[list[KernelCall], KernelContext]:
    plan, context = schedule_graph(normalize(UOp.sink(x.uop.base)).sink, Device.backend("CPU").target, True)
    return list(plan.calls), context


def partitioned(x: Tensor) -> list[KernelCall]:
    calls, context = scheduled(x)
    return next(list(step.calls) for step in steps(calls, context) if step.name == "partition")


def loads(call: KernelCall) -> list[UOp]:
    return [n for n in call.ast.toposort() if n.op is Ops.LOAD]


@pytest.mark.parametrize("axis", [0, 1])
def test_each_kernel_reads_one_operand_without_a_condition(axis: int) -> None:
    calls = partitioned(Tensor.cat(*many(9, 64, 64), dim=axis))
    assert len(calls) == 9 and len({call.args[0] for call in calls}) == 1
    assert all(len(loads(call)) == 1 and len(loads(call)[0].src) == 1 for call in calls)


def test_kernels_of_equal_operands_share_their_code() -> None:
    *_, last = steps(*scheduled(Tensor.cat(*many(9, 64, 64), dim=1)))
    assert len(last.calls) == 9 and len({call.ast for call in last.calls}) == 1


def test_a_product_is_computed_for_its_rows_only() -> None:
    calls = partitioned(Tensor.cat(*[a @ data(64, 64) for a in many(6, 32, 64)]))
    assert len(calls) == 6
    assert all(len(kernel_info(call.ast).nests[0].sums) == 1 for call in calls)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("four operands, which are loops of one kernel", lambda: Tensor.cat(*many(4, 64, 64))),
        ("rows that are shorter than a line of the cache", lambda: Tensor.cat(*many(9, 256, 8), dim=1)),
        ("few elements", lambda: Tensor.cat(*many(9, 64))),
    ],
)
def test_one_kernel_stays(name: str, make: object) -> None:
    graph = make()  # type: ignore[operator]
    assert [call.ast for call in partitioned(graph)] == [call.ast for call in scheduled(graph)[0]]


def test_more_operands_than_launches_pay_for_stay_one_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "MAX_PART_KERNELS", 8)
    assert len(partitioned(Tensor.cat(*many(8, 64, 64)))) == 8
    assert len(partitioned(Tensor.cat(*many(9, 64, 64)))) == 1


@pytest.mark.parametrize("count", [5, 8, 33])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_values_are_those_of_numpy(count: int, axis: int) -> None:
    shapes = [[8, 16, 32] for _ in range(count)]
    for i, shape in enumerate(shapes):
        shape[axis] += i % 3
    parts = [RNG.standard_normal(shape, dtype=np.float32) for shape in shapes]
    expected = np.concatenate([np.float32(2) * p for p in parts], axis)
    out = Tensor.cat(*[Tensor(p) * 2 for p in parts], dim=axis)
    np.testing.assert_array_equal(out.numpy(), expected)


def test_an_operand_that_is_written_afterwards_keeps_its_part() -> None:
    parts = many(6, 16, 128)
    before = np.concatenate([p.numpy() for p in parts])
    out = Tensor.cat(*parts)
    parts[2].assign(out[:16] + 1)
    np.testing.assert_array_equal(parts[2].numpy(), before[:16] + 1)
    np.testing.assert_array_equal(out.numpy(), before)


def test_gradients_to_1e_6() -> None:
    parts = [p.requires_grad_() for p in many(7, 32, 64)]
    weights = data(7 * 32, 64)
    (Tensor.cat(*parts) * weights).square().sum().backward()
    for p, w in zip(parts, weights.numpy().reshape(7, 32, 64), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), 2 * p.numpy() * w * w, rtol=1e-6)


def test_an_opt_given_by_hand_divides_two_operands() -> None:
    a, b = data(6, 8), data(10, 8)
    with Context(KERNEL_OPTS="PARTITION k0 r0 6"):
        out = Tensor.cat(a, b).numpy()
    np.testing.assert_array_equal(out, np.concatenate([a.numpy(), b.numpy()]))


@pytest.mark.parametrize(
    ("opt", "message"),
    [
        ("PARTITION k0 r0 6 6", "increasing numbers"),
        ("PARTITION k0 r0 16", "increasing numbers"),
        ("PARTITION k0 r7 6", "expected axes of the kernel"),
        ("PARTITION k0 r0", "expected 1 kernels, 1 axes and 1\\+ numbers"),
    ],
)
def test_errors(opt: str, message: str) -> None:
    calls, context = scheduled(Tensor.cat(data(6, 8), data(10, 8)))
    with pytest.raises(OptError, match=message):
        apply(calls, parse_kernel_opts(opt)[0], context)


def test_a_sum_is_not_divided() -> None:
    calls, context = scheduled(data(64, 64).sum(1))
    loop = next(r for r in kernel_info(calls[0].ast).ranges if r.arg.kind.name == "REDUCE")
    with pytest.raises(OptError, match="a loop over output elements"):
        apply(calls, parse_kernel_opts(f"{Kind.PARTITION} k0 r{loop.arg.id[0]} 8")[0], context)
