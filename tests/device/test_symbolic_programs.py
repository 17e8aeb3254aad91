"""Random programs with symbolic sizes agree with the same programs with numbers, in polygrad and in numpy."""

from __future__ import annotations

import pytest

hypothesis = pytest.importorskip("hypothesis", reason="it makes the programs")
np = pytest.importorskip("numpy", reason="it judges the results")

from device.symbolic_programs import BASE, Program, bound, programs, read  # noqa: E402
from hypothesis import HealthCheck, given, note, settings  # noqa: E402

from polygrad import Tensor, TinyJit  # noqa: E402
from polygrad.errors import CaptureError  # noqa: E402
from polygrad.tensor.core.sizes import value_with  # noqa: E402

thorough = settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    report_multiple_bugs=False,
)


def agree(x: Tensor, expected, who: str):
    assert tuple(value_with(n) for n in x.shape) == expected.shape, who
    got = read(x, expected.shape)
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * scale, err_msg=who)


@thorough
@given(program=programs())
def test_eager_programs_agree_with_numpy_rtol_1e_4(device, program: Program):
    note(repr(program))
    base = Tensor(BASE, device=device).realize()
    for binding, expected in zip(program.bindings, program.arrays, strict=True):
        agree(program.run(program.start(base, binding), binding), expected, f"numbers, {binding}")
        values = bound(binding)
        agree(program.run(program.start(base, values), values), expected, f"symbolic, {binding}")


@thorough
@given(program=programs(bindings=2, differentiable=True))
def test_gradients_agree_with_those_of_fixed_sizes_rtol_1e_4(device, program: Program):
    note(repr(program))

    def gradient(values):
        base = Tensor(BASE, device=device, requires_grad=True)
        loss = program.run(program.start(base, values), values).square().mean()
        if not loss.requires_grad:  # argmax has no gradient
            return None
        loss.backward()
        return None if base.grad is None else base.grad.numpy()

    for binding in program.bindings:
        expected, got = gradient(binding), gradient(bound(binding))
        assert (got is None) == (expected is None)
        if got is not None:
            scale = max(1.0, float(np.abs(expected).max()))
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5 * scale, err_msg=str(binding))


@thorough
@given(program=programs(bindings=6))
def test_captured_programs_agree_with_numpy_rtol_1e_4(device, program: Program):
    note(repr(program))
    base = Tensor(BASE, device=device).realize()

    @TinyJit
    def f(x, i, j):
        out = program.run(x, {"i": i, "j": j})
        return (out + 1).realize(), out.max(-1) * i

    for binding, expected in zip(program.bindings, program.arrays, strict=True):
        values = bound(binding)
        x = program.start(base, values)
        try:
            got = f(x, **values)
        except CaptureError as e:  # these values decide otherwise than those it was captured with
            assert "as when it was captured" in str(e), e
            f.reset()
            for _ in range(2):
                got = f(x, **values)
        agree(got[0] - 1, expected, f"captured, {binding}")
        agree(got[1], expected.max(-1) * binding["i"], f"captured, second result, {binding}")
