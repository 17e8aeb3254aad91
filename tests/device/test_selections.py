"""Elements chosen by what they are: selections, positions, counts, and what is added where indices say."""

from __future__ import annotations

import pytest

from polygrad import Tensor

SIZES = [1, 63, 300]  # of which the last is searched, not compared, where that pays


def numbers(n: int) -> list[int]:
    return [(7 * i * i + 3 * i) % 41 - 20 for i in range(n)]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("least", [-21, 0, 15, 21])
def test_what_a_mask_selects(device, n, least):
    x = Tensor(numbers(n), device=device)
    expected = [(i, v) for i, v in enumerate(numbers(n)) if v > least]
    assert x.masked_select(x > least).tolist() == [v for _, v in expected]
    assert (x > least).nonzero().tolist() == [[i] for i, _ in expected]


@pytest.mark.parametrize("n", SIZES)
def test_selections_of_a_fixed_size(device, n):
    x = Tensor(numbers(n), device=device)
    expected = [v for v in numbers(n) if v > 5]
    assert x.masked_select(x > 5, size=20, fill_value=-1).tolist() == (expected + [-1] * 20)[:20]


def test_positions_in_two_dimensions(device):
    x = Tensor(numbers(210), device=device).reshape(14, 15)
    expected = [[i // 15, i % 15] for i, v in enumerate(numbers(210)) if v == 3]
    assert x.eq(3).nonzero().tolist() == expected


@pytest.mark.parametrize("n", SIZES)
def test_values_that_differ_and_how_often_they_are_there(device, n):
    x = Tensor(numbers(n), device=device)
    assert x.unique().tolist() == sorted(set(numbers(n)))
    counts = [0] * 41
    for v in numbers(n):
        counts[v + 20] += 1
    assert (x + 20).bincount(minlength=41).tolist() == counts


def test_rows_that_are_added_where_indices_say(device):
    at = [v % 30 for v in numbers(200)]
    table = Tensor.zeros(30, 5, device=device).contiguous()
    table.requires_grad_()
    weights = Tensor([[float(i + k) for k in range(5)] for i in range(200)], device=device)
    (gradient,) = (table[Tensor(at, device=device)] * weights).sum().gradient(table)
    expected = [[0.0] * 5 for _ in range(30)]
    for i, row in enumerate(at):
        expected[row] = [e + i + k for k, e in enumerate(expected[row])]
    assert gradient.tolist() == expected


@pytest.mark.parametrize("dtype", ["int64", "uint64", "uint32"])
def test_no_position_is_one_of_others_whose_last_bits_it_has(device, dtype):
    """An index of 32 bits cannot hold all integers that a loop is compared with."""
    n, beyond = 64, (1 << 31, 1 << 32, 1 << 63)[: ["uint32", "int64", "uint64"].index(dtype) + 1]
    at = [i + beyond[i // 3 % len(beyond)] if i % 3 == 0 else i for i in range(n)]
    positions, loop = Tensor(at, dtype=dtype, device=device), Tensor.arange(n, device=device).cast(dtype)
    values = Tensor([100.0 + i for i in range(n)], device=device)
    expected = [0 if i % 3 == 0 else 100 + i for i in range(n)]
    gathered = positions.reshape(n, 1).eq(loop).where(values, 0).sum(1)
    scattered = positions.eq(loop.reshape(n, 1)).where(values, 0).sum(1)
    assert gathered.tolist() == expected and scattered.tolist() == expected


@pytest.mark.parametrize(
    ("select", "judge"),
    [
        (lambda x: (x > 0).nonzero().flatten(), lambda a: [i for i, v in enumerate(a) if v > 0]),
        (lambda x: x.masked_select(x > 0), lambda a: [v for v in a if v > 0]),
        (lambda x: x[x > 0], lambda a: [v for v in a if v > 0]),
        (lambda x: x.unique(), lambda a: sorted(set(a))),
    ],
    ids=["nonzero", "masked_select", "mask", "unique"],
)
def test_what_is_selected_has_memory_of_its_own(device, select, judge):
    """A write to it reaches its views, but neither what it was selected from nor equal selections, earlier
    or later."""
    numbers = [0, 3, 0, 5, 7, 0, 2]
    x = Tensor(numbers, device=device).realize()
    expected = judge(numbers)
    written, equal = select(x), select(x).realize()
    rest = written[1:]
    written[0] = 99
    written[1] = 50
    changed = [99, 50, *expected[2:]]
    assert (written.tolist(), rest.tolist(), equal.tolist()) == (changed, changed[1:], expected)
    assert (select(x).tolist(), x.tolist()) == (expected, numbers)
    x[0] = 1
    assert select(x).tolist() == judge([1, *numbers[1:]])
    assert (written.tolist(), equal.tolist()) == (changed, expected)
