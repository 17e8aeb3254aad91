"""In-place writes: what is written, when, and that everybody who looked before still sees the old value."""

from __future__ import annotations

import pytest
from plain import assert_same

from polygrad import Tensor
from polygrad.errors import DTypeError, ShapeError


def ramp(device, *shape, dtype="float32"):
    n = 1
    for s in shape:
        n *= s
    return Tensor(list(range(n)), device=device, dtype=dtype).reshape(*shape)


def test_assign_writes_into_the_same_memory(device):
    x = ramp(device, 5).contiguous().realize()
    memory = x.uop.base.arg.handle
    x.assign(x + 1).realize()
    assert x.tolist() == [1, 2, 3, 4, 5] and x.uop.base.arg.handle == memory
    x.assign(x * x).assign(x - 1).realize()
    assert x.tolist() == [0, 3, 8, 15, 24] and x.uop.base.arg.handle == memory


def test_assigning_what_was_not_computed_replaces_it(device):
    x = ramp(device, 3) + 1
    x.assign(x * 2)
    assert x.tolist() == [2, 4, 6]


@pytest.mark.parametrize("n", [1, 5, 16, 33])
def test_self_reference_at_moved_indices(device, n):
    x = ramp(device, n).realize()
    x.assign(x.flip(0)).realize()
    assert x.tolist() == list(range(n))[::-1]
    x.assign(x.roll(1, 0) + 10).realize()
    expected = list(range(n))[::-1]
    expected = [v + 10 for v in [expected[-1], *expected[:-1]]]
    assert x.tolist() == expected


def test_self_reference_through_a_transpose_and_a_product(device):
    x = ramp(device, 4, 4).realize()
    rows = x.tolist()
    x.assign(x.T + x).realize()
    expected = [[rows[i][j] + rows[j][i] for j in range(4)] for i in range(4)]
    assert x.tolist() == expected
    x.assign(x @ x).realize()
    assert x.tolist() == [
        [sum(expected[i][k] * expected[k][j] for k in range(4)) for j in range(4)] for i in range(4)
    ]


def test_self_reference_through_a_sum(device):
    x = ramp(device, 2, 3).realize()
    x.assign(x - x.sum()).realize()
    assert x.tolist() == [[-15, -14, -13], [-12, -11, -10]]


def test_write_after_read(device):
    x = ramp(device, 4).realize()
    before = x * 10
    x.assign(x + 1)
    after = x * 10
    assert before.tolist() == [0, 10, 20, 30]
    assert after.tolist() == [10, 20, 30, 40]
    assert x.tolist() == [1, 2, 3, 4]


def test_lazy_readers_see_the_old_value_after_the_write_ran(device):
    x = ramp(device, 4).realize()
    readers = [x + 100, x.sum(), x.roll(1, 0), (x.reshape(2, 2) @ x.reshape(2, 2))]
    x.assign(x * 0).realize()
    assert x.tolist() == [0, 0, 0, 0]
    assert [r.tolist() for r in readers] == [[100, 101, 102, 103], 6.0, [3, 0, 1, 2], [[2, 3], [6, 11]]]


def test_write_after_write(device):
    x = ramp(device, 3).realize()
    x.assign(x + 1)
    x.assign(x * 2)
    x.assign(x + 1)
    assert x.tolist() == [3, 5, 7]


def test_reads_between_two_writes(device):
    x = ramp(device, 3).realize()
    x.assign(x + 1)
    between = x * 1.0
    x.assign(x * 2)
    assert between.tolist() == [1, 2, 3]
    assert x.tolist() == [2, 4, 6]


def test_swap(device):
    a, b = ramp(device, 4).realize(), (ramp(device, 4) + 10).realize()
    old_a, old_b = a + 0.0, b + 0.0
    a.assign(old_b)
    b.assign(old_a)
    a.realize(b)
    assert a.tolist() == [10, 11, 12, 13] and b.tolist() == [0, 1, 2, 3]


def test_a_swap_without_copies_in_between_is_none(device):
    a, b = ramp(device, 4).realize(), (ramp(device, 4) + 10).realize()
    same_a, same_b = Tensor(a.uop, device=device), Tensor(b.uop, device=device)
    a.assign(same_b)
    b.assign(same_a)
    a.realize(b)
    assert a.tolist() == b.tolist() == same_a.tolist() == [10, 11, 12, 13]


def test_rotation_of_three(device):
    a, b, c = ((ramp(device, 3) + k).realize() for k in (0, 10, 20))
    x, y, z = a * 1.0, b * 1.0, c * 1.0
    a.assign(y), b.assign(z), c.assign(x)
    a.realize(b, c)
    assert (a.tolist(), b.tolist(), c.tolist()) == ([10, 11, 12], [20, 21, 22], [0, 1, 2])


def test_two_buffers_that_update_each_other(device):
    p, v = ramp(device, 3).realize(), (ramp(device, 3) * 0 + 1).realize()
    for _ in range(4):
        v.assign(v * 0.5 + p)
        p.assign(p - v)
        p.realize(v)
    pp, vv = [0.0, 1.0, 2.0], [1.0, 1.0, 1.0]
    for _ in range(4):
        vv = [a * 0.5 + b for a, b in zip(vv, pp, strict=True)]
        pp = [a - b for a, b in zip(pp, vv, strict=True)]
    assert_same(p.tolist(), pp)
    assert_same(v.tolist(), vv)


def test_writing_into_slices(device):
    x = ramp(device, 4, 5).contiguous().realize()
    expected = x.tolist()
    x[1:3, ::2] = -1
    for i in (1, 2):
        for j in (0, 2, 4):
            expected[i][j] = -1
    assert x.tolist() == expected
    x[0] = x[3]
    expected[0] = expected[3]
    assert x.tolist() == expected
    x[:, 1:] = x[:, :-1] * 2
    expected = [[r[0], *(2 * v for v in r[:-1])] for r in expected]
    assert x.tolist() == expected
    x[2:2] = 7
    assert x.tolist() == expected


def test_writing_nothing_leaves_the_neighbours_alone(device):
    around = [ramp(device, 16).contiguous().realize() for _ in range(3)]
    wide = Tensor.full((300, 0, 300), 7.0, device=device)
    (wide + around[0].sum()).contiguous().realize()
    assert all(t.tolist() == list(range(16)) for t in around)


def test_writing_into_a_view_of_a_view(device):
    x = ramp(device, 24).contiguous().realize()
    view = x.reshape(4, 6)
    view[1:3] = view[1:3].flip(1)
    assert view.tolist() == [
        [0, 1, 2, 3, 4, 5],
        [11, 10, 9, 8, 7, 6],
        [17, 16, 15, 14, 13, 12],
        [18, 19, 20, 21, 22, 23],
    ]


def test_the_same_step_again_and_again(device):
    x, step = ramp(device, 6).realize(), Tensor([1.0], device=device)
    for _ in range(10):
        x.assign(x + step)
        x.realize()
    assert x.tolist() == [10, 11, 12, 13, 14, 15]


def test_assigned_constants_and_reductions(device):
    x = ramp(device, 2, 3).contiguous().realize()
    x.assign(Tensor.ones(2, 3, device=device)).realize()
    assert x.tolist() == [[1, 1, 1], [1, 1, 1]]
    x.assign(ramp(device, 2, 3).sum(0, keepdim=True).expand(2, 3)).realize()
    assert x.tolist() == [[3, 5, 7], [3, 5, 7]]


@pytest.mark.parametrize("dtype", ["int8", "bool", "float16", "int64", "uint8"])
def test_assign_of_other_dtypes(device, dtype):
    data = [True, False, True] if dtype == "bool" else [1, 2, 3]
    x = Tensor(data, device=device, dtype=dtype)
    x.assign(x.flip(0)).realize()
    assert x.tolist() == data[::-1]


def test_errors_name_what_is_wrong_and_change_nothing(device):
    x = ramp(device, 3).realize()
    with pytest.raises(ShapeError, match=r"expected shape \(3,\), got \(2,\)"):
        x.assign(ramp(device, 2))
    with pytest.raises(DTypeError, match="expected dtype float32, got int32"):
        x.assign(ramp(device, 3, dtype="int32"))
    assert x.tolist() == [0, 1, 2]


def test_a_pending_write_keeps_the_value_that_its_source_had(device):
    a, b = ramp(device, 3).realize(), (ramp(device, 3) + 10).realize()
    a.assign(b)
    b.assign(b + 1).realize()
    assert a.tolist() == [10, 11, 12] and b.tolist() == [11, 12, 13]


def test_a_pending_write_of_a_computed_write(device):
    a, b, c = ((ramp(device, 3) + k).realize() for k in (0, 10, 20))
    c.assign(c + a)
    b.assign(c)
    c.realize()
    c.assign(a).realize()
    assert b.tolist() == [20, 22, 24] and c.tolist() == [0, 1, 2]


def test_pending_writes_that_wait_for_each_other(device):
    a, b, c = ((ramp(device, 3) + k).realize() for k in (0, 10, 20))
    seen = a * 1
    a.assign(b)
    b.assign(c)
    c.assign(c + 1).realize()
    assert (a.tolist(), b.tolist(), c.tolist()) == ([10, 11, 12], [20, 21, 22], [21, 22, 23])
    assert seen.tolist() == [0, 1, 2]
