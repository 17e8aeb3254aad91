"""The order of exchanges in a captured call."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from polygrad.capture.overlap import Begin, End, overlap


@dataclass(frozen=True, eq=False)
class Kernel:
    name: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    @property
    def used(self) -> list[Hashable]:
        return [*self.reads, *self.writes]

    @property
    def written(self) -> list[Hashable]:
        return [*self.writes]


def exchange(*keys: str) -> Begin:
    return Begin(f"exchange of {', '.join(keys)}", keys, lambda buffers: lambda: None)


def names(items: list[Any]) -> list[str]:
    return [
        x.name if isinstance(x, Kernel) else f"{'end' if isinstance(x, End) else 'begin'} {_of(x).keys[0]}"
        for x in items
    ]


def _of(x: Begin | End) -> Begin:
    return x.begin if isinstance(x, End) else x


def test_without_exchanges_nothing_changes() -> None:
    items = [Kernel("b", (), ("x",)), Kernel("a", ("x",), ("y",))]
    assert overlap(items) == items


def test_an_exchange_begins_as_soon_as_its_memory_is_computed() -> None:
    items = [
        Kernel("forward", (), ("h",)),
        Kernel("gradient 1", ("h",), ("g1",)),
        Kernel("gradient 2", ("h",), ("g2",)),
        exchange("g2"),
        exchange("g1"),
        Kernel("step 1", ("g1",), ("w1",)),
        Kernel("step 2", ("g2",), ("w2",)),
        Kernel("other", ("h",), ("o",)),
    ]
    assert names(overlap(items)) == [
        "forward", "gradient 2", "begin g2", "gradient 1", "begin g1", "other", "end g2", "step 2", "end g1",
        "step 1",
    ]  # fmt: skip


def test_memory_that_is_exchanged_is_read_and_written_before_or_after() -> None:
    items = [
        Kernel("write", (), ("x",)),
        Kernel("read", ("x",), ("y",)),
        exchange("x"),
        Kernel("overwrite", (), ("x",)),
    ]
    assert names(overlap(items)) == ["write", "read", "begin x", "end x", "overwrite"]


def test_an_end_that_nobody_needs_is_waited_for() -> None:
    assert names(overlap([exchange("x")])) == ["begin x", "end x"]


_KEYS = st.lists(st.sampled_from("abcdef"), max_size=2, unique=True).map(tuple)
_ITEMS = st.lists(
    st.one_of(
        st.builds(Kernel, st.just("k"), _KEYS, _KEYS),
        st.builds(lambda key: exchange(key), st.sampled_from("abcdef")),
    ),
    max_size=14,
)


@given(_ITEMS)
def test_everything_is_computed_from_the_same_values(items: list[Any]) -> None:
    """A run of the items over symbolic memory: an exchange's writes come at its end."""

    def run(order: list[Any]) -> dict[str, str]:
        memory = {key: key for key in "abcdef"}
        ids = {id(x): i for i, x in enumerate(items)}
        open_exchanges: dict[int, str] = {}
        for x in order:
            if isinstance(x, End):
                memory[x.begin.keys[0]] = f"exchanged({open_exchanges.pop(id(x.begin))})"
                continue
            number, values = ids[id(x)], ",".join(memory[str(k)] for k in x.used)
            busy = {_key(items, ids, i) for i in open_exchanges}
            assert busy.isdisjoint(x.used)
            if isinstance(x, Begin):
                open_exchanges[id(x)] = memory[x.keys[0]]
            else:
                memory |= {str(k): f"{number}({values})" for k in x.written}
        assert not open_exchanges
        return memory

    def _key(items: list[Any], ids: dict[int, int], of: int) -> str:
        return str(items[ids[of]].keys[0])

    as_called = [y for x in items for y in ((x, End(x)) if isinstance(x, Begin) else (x,))]
    found = overlap(items)
    assert run(found if any(isinstance(x, Begin) for x in items) else as_called) == run(as_called)
    assert [x for x in found if isinstance(x, Begin)] == [x for x in items if isinstance(x, Begin)]
