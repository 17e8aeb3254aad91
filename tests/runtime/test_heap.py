"""The allocator: nothing overlaps, everything comes back, and a failure changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polygrad.errors import InternalError, OutOfMemoryError
from polygrad.runtime.heap import ALIGN, Heap

LIMIT = 1 << 20


class Space:
    """A space that grows by whole pages up to `most` bytes."""

    def __init__(self, most: int = LIMIT, page: int = 4096) -> None:
        self.most, self.page, self.end = most, page, 0

    def grow(self, end: int) -> int:
        end = -(-end // self.page) * self.page
        if end > self.most:
            return 0
        self.end = max(self.end, end)
        return self.end


def make(most: int = LIMIT, limit: int = LIMIT) -> tuple[Heap, Space]:
    space = Space(most)
    return Heap(space.grow, limit), space


def state(heap: Heap) -> tuple[object, ...]:
    return (heap.allocated, heap.end, dict(heap._used), dict(heap._free), heap._nonempty)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("allocate"), st.one_of(st.integers(0, 300), st.integers(0, 120_000))),
            st.tuples(st.just("free"), st.integers(0, 1 << 30)),
        ),
        max_size=80,
    )
)
def test_random_allocations_never_overlap_and_all_are_returned(steps: list[tuple[str, int]]) -> None:
    heap, space = make()
    live: dict[int, int] = {}
    for what, n in steps:
        if what == "free":
            if live:
                address = sorted(live)[n % len(live)]
                del live[address]
                heap.free(address)
            continue
        before = state(heap)
        try:
            address = heap.allocate(n)
        except OutOfMemoryError:
            assert state(heap) == before
            continue
        size = max(n, 1)
        assert address % ALIGN == 0 and address >= ALIGN and address + size + ALIGN <= heap.end <= space.end
        assert all(address + size <= a or a + m <= address for a, m in live.items())
        live[address] = size
    assert heap.allocated == sum(-(-size // ALIGN) * ALIGN for size in live.values())
    assert heap.allocated + sum(heap._free.values()) == max(heap.end - 2 * ALIGN, 0)
    for address in live:
        heap.free(address)
    assert heap.allocated == 0
    assert heap._free == ({ALIGN: heap.end - 2 * ALIGN} if space.end else {})


def test_an_allocation_fails_only_when_no_free_block_is_large_enough() -> None:
    heap, _ = make(most=64 << 10)
    blocks = [heap.allocate(1024) for _ in range(63)]
    small, exact = blocks[3], blocks[7]
    heap.free(small)
    heap.free(exact)
    assert {heap.allocate(1000), heap.allocate(961)} == {small, exact}
    with pytest.raises(OutOfMemoryError):
        heap.allocate(1024)


def test_the_best_fit_of_a_bin_is_taken() -> None:
    heap, _ = make()
    sizes = (1216, 64, 1152, 64, 1088, 64)
    blocks = [heap.allocate(s) for s in sizes]
    for i in (0, 2, 4):
        heap.free(blocks[i])
    assert heap.allocate(1100) == blocks[2]
    assert heap.allocate(1088) == blocks[4]


def test_neighbours_join_whichever_is_freed_first() -> None:
    for order in ((0, 1, 2), (2, 1, 0), (0, 2, 1), (1, 0, 2)):
        heap, _ = make()
        blocks = [heap.allocate(256) for _ in range(3)]
        wall = heap.allocate(64)
        for i in order:
            heap.free(blocks[i])
        assert heap.allocate(768) == blocks[0]
        heap.free(wall)


def test_out_of_memory_changes_nothing_and_the_next_allocation_works() -> None:
    heap, _ = make()
    heap.allocate(1000)
    before = state(heap)
    with pytest.raises(OutOfMemoryError, match=r"allocate 2097152 bytes: .*limit of 1048576"):
        heap.allocate(2 << 20)
    assert state(heap) == before
    assert heap.allocate(1000)


def test_a_refused_growth_is_tried_again_as_small_as_needed() -> None:
    heap, space = make(most=8192)
    heap.allocate(6000)
    assert space.end == 8192


def test_the_limit_is_kept_even_when_the_space_is_larger() -> None:
    heap = Heap(lambda end: 1 << 30, limit=10_000)
    with pytest.raises(OutOfMemoryError):
        heap.allocate(10_000)
    heap.allocate(8_000)
    assert heap.end <= 10_000


def test_free_of_what_is_no_allocation_is_our_bug() -> None:
    heap, _ = make()
    address = heap.allocate(100)
    with pytest.raises(InternalError, match="internal: heap"):
        heap.free(address + 64)
    heap.free(address)
    with pytest.raises(InternalError):
        heap.free(address)
    heap.free(heap.allocate(100))


def test_a_free_in_the_middle_of_another_call_waits() -> None:
    space = Space(4 << 20)

    def grow(end: int) -> int:
        heap.free(first)  # as a finaliser would, while the heap looks for room
        return space.grow(end)

    heap = Heap(space.grow, 4 << 20)
    first = heap.allocate(64)
    heap._grow = grow
    before = heap.end
    second = heap.allocate(before)
    assert list(heap._used) == [second]
    heap.free(second)
    assert heap._free == {ALIGN: heap.end - 2 * ALIGN}
