"""Plans of strided loads: each lane finds its element, blocks stay inside of what may be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polygrad.codegen.lower.strided_loads import pays, plan


@given(
    st.integers(-6, 6), st.sampled_from([2, 4, 8, 16]), st.sampled_from([2, 4, 16]), st.integers(0, 9),
    st.integers(0, 9),
)  # fmt: skip
def test_lanes_find_their_elements_in_blocks_inside_of_what_may_be_read(
    stride: int, lanes: int, block: int, before: int, behind: int
) -> None:
    wanted = [100 + stride * lane for lane in range(lanes)]
    low, high = min(wanted) - before, max(wanted) + behind
    made = plan(wanted, block, low, high)
    elements = [start + i for start in made.starts for i in range(block)]
    assert [elements[p] for p in made.positions] == wanted
    assert list(made.starts) == sorted(set(made.starts))
    if high - low + 1 >= block:
        assert low <= made.starts[0] and made.starts[-1] + block - 1 <= high
    else:
        assert made.starts == (low,)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=16))
def test_any_offsets_are_found(wanted: list[int]) -> None:
    made = plan(wanted, 4, 0, 40)
    elements = [start + i for start in made.starts for i in range(4)]
    assert [elements[p] for p in made.positions] == wanted


def test_a_window_of_stride_two_shares_its_blocks() -> None:
    even, odd = plan([0, 2, 4, 6], 4, 0, 7), plan([1, 3, 5, 7], 4, 0, 7)
    assert even.starts == odd.starts == (0, 4)
    assert even.positions == (0, 2, 4, 6) and odd.positions == (1, 3, 5, 7)


def test_the_last_block_ends_with_the_last_element_that_may_be_read() -> None:
    assert plan([0, 2, 4, 6], 4, 0, 6).starts == (0, 3)
    assert plan([0, -1, -2, -3], 4, -3, 0) == ((-3,), (3, 2, 1, 0))


def test_channels_share_blocks_that_hold_them_all() -> None:
    """Bytes of an image, three to a pixel: 16 of them hold four of each."""
    assert {plan(range(c, c + 12, 3), 16, 0, 47).starts for c in range(3)} == {(0,)}


@pytest.mark.parametrize(
    ("stride", "lanes", "block", "expected"),
    [(2, 4, 4, True), (3, 4, 4, True), (4, 4, 4, False), (-1, 4, 4, True), (2, 4, 2, False),
     (8, 16, 16, True), (17, 16, 16, False), (3, 4, 16, True)],
)  # fmt: skip
def test_blocks_pay_while_they_are_half_the_lanes_at_most(
    stride: int, lanes: int, block: int, expected: bool
) -> None:
    assert pays([stride * lane for lane in range(lanes)], block) is expected
