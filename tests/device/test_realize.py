"""Computing several things at once: shared sub-graphs, common kernels, values computed once, devices that
mix."""

from __future__ import annotations

import pytest
from plain import assert_same

from polygrad import Tensor
from polygrad.engine.stats import stats
from polygrad.errors import DeviceError


def ramp(device, *shape):
    n = 1
    for s in shape:
        n *= s
    return Tensor([float(i) for i in range(n)], device=device).reshape(*shape)


def test_several_outputs_together(device):
    x = ramp(device, 3, 4)
    outs = [x + 1, x.sum(), x.sum(0), x.T, x.max(1), (x + 1).sum(1), x @ x.T, x < 5]
    outs[0].realize(*outs[1:])
    rows = x.tolist()
    assert_same(outs[0].tolist(), [[v + 1 for v in r] for r in rows])
    assert outs[1].item() == 66
    assert outs[2].tolist() == [12, 15, 18, 21]
    assert outs[3].tolist() == [list(c) for c in zip(*rows, strict=True)]
    assert outs[4].tolist() == [3, 7, 11]
    assert outs[5].tolist() == [10, 26, 42]
    assert outs[6].tolist() == [[sum(a * b for a, b in zip(p, q, strict=True)) for q in rows] for p in rows]
    assert outs[7].tolist() == [[v < 5 for v in r] for r in rows]


def test_one_output_that_another_needs(device):
    x = ramp(device, 4)
    a = x * 2
    b = a + 1
    c = b.sum()
    b.realize(c, a)
    assert (a.tolist(), b.tolist(), c.item()) == ([0, 2, 4, 6], [1, 3, 5, 7], 16)


def test_a_value_is_computed_once(device):
    x = ramp(device, 8, 8)
    y = (x @ x).realize()
    stats.reset()
    y.realize()
    assert stats.launches == 0
    z = y + 1
    z.realize()
    assert stats.launches == 1


def test_equal_graphs_share_a_program_and_a_kernel(device):
    def make(k):
        return ((ramp(device, 7, 3) + k) * ramp(device, 7, 3)).sum(1)

    first = make(Tensor([1.0], device=device)).tolist()
    stats.reset()
    second = make(Tensor([2.0], device=device)).tolist()
    assert (stats.programs, stats.kernels_compiled, stats.runs) == (0, 0, 1)
    assert first != second


def test_shared_expression_with_several_consumers(device):
    x = ramp(device, 5, 6)
    e = (x * 0.5 - 3).abs()
    out = e.sum(1) + e.max(1) - e[:, 0] + e.T[2:3].sum()
    rows = [[abs(v * 0.5 - 3) for v in r] for r in x.tolist()]
    extra = sum(r[2] for r in rows)
    assert_same(out.tolist(), [sum(r) + max(r) - r[0] + extra for r in rows])


def test_diamonds(device):
    x = ramp(device, 6)
    values = [float(i) for i in range(6)]
    for _ in range(8):
        x = x + x.flip(0)
        x = x * 0.5 + x * 0.5
        values = [a + b for a, b in zip(values, values[::-1], strict=True)]
    assert_same(x.tolist(), values)


def test_a_reduction_that_two_kernels_broadcast(device):
    x = ramp(device, 4, 4)
    mean = x.mean(1, keepdim=True)
    up, down = x - mean, (x.T - mean.T).sum(0)
    up.realize(down)
    assert up.tolist() == [[-1.5, -0.5, 0.5, 1.5]] * 4
    assert down.tolist() == [0, 0, 0, 0]


def test_many_inputs_in_one_expression(device):
    xs = [Tensor([float(i), float(i * i)], device=device) for i in range(40)]
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    assert total.tolist() == [780.0, 20540.0]


def test_contiguous_is_a_copy(device):
    x = ramp(device, 3)
    y = x.clone().realize()
    x.assign(x * 0).realize()
    assert y.tolist() == [0, 1, 2]


def test_equal_tensors_have_memory_of_their_own(device):
    x = ramp(device, 3)
    a, b = (x + 1).realize(), (x + 1).realize()
    a.assign(a * 0).realize()
    assert b.tolist() == [1, 2, 3]


def test_scalars_and_single_elements(device):
    x = Tensor(3.0, device=device)
    assert (x * 2 + 1).item() == 7.0
    assert (x + ramp(device, 1, 1)).tolist() == [[3.0]]
    assert float(x) == 3.0 and int(x) == 3 and bool(x)


def test_constants_alone(device):
    x = Tensor.arange(6, device=device)
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    assert (x.reshape(2, 3) * 2 + 1).sum(0).tolist() == [8, 12, 16]
    assert Tensor.eye(3, device=device).tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert Tensor.full((2, 2), 5, device=device).sum().item() == 20
    assert Tensor.linspace(0, 1, 5, device=device).tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_constants_computed_on_one_device_are_free_for_another(device):
    y = Tensor.arange(5) * 3
    assert y.tolist() == [0, 3, 6, 9, 12]
    home = Tensor([1, 1, 1, 1, 1], device=device)
    assert (Tensor.arange(5, device=device) * 3 + home).tolist() == [1, 4, 7, 10, 13]


def test_to_another_device_and_back(device):
    x = ramp(device, 2, 3)
    y = (x + 1).to("INTERP") * 2
    assert y.device == "INTERP" and y.tolist() == [[2, 4, 6], [8, 10, 12]]
    z = y.to(device) + x
    assert z.device == device and z.tolist() == [[2, 5, 8], [11, 14, 17]]


def test_operands_on_two_devices_are_refused(device):
    other = "INTERP" if device != "INTERP" else "WASM"
    with pytest.raises(DeviceError, match="expected one device"):
        ramp(device, 3) + ramp(other, 3)
    assert (ramp(device, 3) + 1).tolist() == [1, 2, 3]


def test_data_has_shape_and_format(device):
    x = ramp(device, 2, 3)
    view = x.data()
    assert (view.shape, view.format, view.tolist()) == ((2, 3), "f", x.tolist())
    assert Tensor([True, False], device=device).data().format == "?"


def test_two_outputs_that_turn_out_to_be_one(device):
    x = ramp(device, 3, 15)
    a = (x.reshape(45).reshape(3, 15) * 2).sum(1)
    b = (x.reshape(5, 9).flip(0).flip(0).reshape(3, 15) * 2).sum(1)
    a.realize(b)
    assert a.tolist() == b.tolist() == [210, 660, 1110]
