"""narrow: buffers between kernels hold 16 bits where what they store is a conversion of that."""

from __future__ import annotations

import pytest

from polygrad import Tensor, dtypes
from polygrad.codegen.kernels.narrow_storage import narrow_value
from polygrad.codegen.target import Target, Workgroups
from polygrad.engine.normalize import normalize
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops
from polygrad.uop.spec import verify
from polygrad.uop.tensor_cores import BY_NAME
from tests.codegen.grid_kernels import decided
from tests.schedules import schedule

PLAIN = Target("GPU", workgroups=Workgroups(subgroup=32))
GPU = Target("GPU", workgroups=Workgroups(subgroup=32), tensor_cores=(BY_NAME["mma_m16n8k16_half"],))


def data(*shape, dtype="float16"):
    return Tensor.zeros(*shape, dtype=dtype, device="INTERP").contiguous().realize()


def stored(*tensors, target=GPU):
    """The dtypes of what each kernel of a graph stores."""
    plan = schedule(normalize(UOp.sink(*[t.uop.base for t in tensors])).sink, True)
    calls = decided("narrow-storage", list(plan.calls), target, plan.roots)
    for call in calls:
        verify(call.ast.toposort(), "kernel")
        params = [n for n in call.ast.toposort() if n.op is Ops.PARAM]
        assert all(call.args[p.arg.slot].dtype is p.dtype for p in params)
    return [call.args[0].dtype.name for call in calls]


def two_layers(dtype="float16"):
    return (data(32, 64, dtype=dtype) @ data(64, 48, dtype=dtype)).exp() @ data(48, 40, dtype=dtype)


def test_what_is_between_two_products_has_16_bits():
    assert stored(two_layers()) == ["float16", "float16"]
    assert stored(two_layers(), target=PLAIN) == ["float32", "float16"]


def test_each_narrower_buffer_is_one_of_its_own():
    x, w = data(32, 64), [data(64, 64) for _ in range(3)]
    q, k, v = ((x @ m).exp() for m in w)
    plan = schedule(normalize(UOp.sink(((q @ k.T).exp() @ v).uop.base)).sink, True)
    calls = decided("narrow-storage", list(plan.calls), GPU, plan.roots)
    assert len({call.args[0] for call in calls}) == len(calls) == 5


def test_of_formats_that_a_core_takes():
    assert stored(two_layers("bfloat16")) == ["float32", "bfloat16"]


def test_what_float32_computes_stays():
    hidden = (data(32, 64) @ data(64, 48)).float().exp()
    assert stored(hidden @ data(48, 40, dtype="float32")) == ["float32", "float32"]


def test_a_tensor_that_is_kept_stays():
    hidden = (data(32, 64) @ data(64, 48)).exp().float()
    out = hidden @ data(48, 40, dtype="float32")
    assert stored(out) == ["float16", "float32"]
    assert stored(hidden, out) == ["float32", "float32"]


def test_all_that_read_it_convert():
    hidden = (data(32, 64) @ data(64, 48)).exp().float()
    first, second = hidden @ data(48, 40, dtype="float32"), hidden.pad(((1, 1), (0, 0))).sum(0)
    assert stored(first, second)[0] == "float16"


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        (lambda x: x.cast(dtypes.float32), lambda x: x),
        (lambda x: x, lambda x: x),
        (lambda x: UOp.const(dtypes.float32, 0.5), lambda x: UOp.const(dtypes.float16, 0.5)),
        (
            lambda x: x.ne(0).where(x.cast(dtypes.float32), 0.0),
            lambda x: x.ne(0).where(x, UOp.const(dtypes.float16, 0.0)),
        ),
        (lambda x: UOp.const(dtypes.float32, 0.1), lambda x: None),
        (lambda x: x.cast(dtypes.float32) * 2.0, lambda x: None),
        (lambda x: x.cast(dtypes.bfloat16).cast(dtypes.float32), lambda x: None),
        (lambda x: x.ne(0).where(x.cast(dtypes.float32), 1e6), lambda x: None),
    ],
)
def test_narrowed(value, wanted):
    place = UOp(Ops.INDEX, dtypes.float16, (data(4).uop.base.replace(), UOp.index(0)))
    x = UOp(Ops.LOAD, dtypes.float16, (place,))
    assert narrow_value(value(x), dtypes.float16) is wanted(x)
