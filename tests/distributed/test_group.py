"""The guards of a group, on an engine whose other ranks are what a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from polygrad.distributed.engine import Single
from polygrad.distributed.group import Group
from polygrad.errors import DistributedError, RankError


class Others(Single):
    """Rank 0 of `size` ranks. `states`: those of all ranks. `told`: the notices of others. `sent`: of
    this."""

    def __init__(self, size: int = 3) -> None:
        self.size = size
        self.states: list[str | None] = [""] * size
        self.told: dict[int, str] = {}
        self.sent: list[Any] = []
        self.aborted = False

    def ask(self) -> list[str | None]:
        return self.states

    def notify(self, notice: str) -> None:
        self.sent.append(json.loads(notice))

    def notices(self) -> Mapping[int, str]:
        return self.told

    def abort(self) -> None:
        self.aborted = True


def state(*labels: str, line: str = "train.py:7 in load") -> str:
    return json.dumps({"made": list(enumerate(labels, 1)), "line": line})


def stuck(engine: Others, timeout: float = 0.2) -> Group:
    return Group(engine, "a test", timeout, check=False)


def test_collectives_are_made_in_order_by_one_thread() -> None:
    group = stuck(Others())
    made: list[tuple[int, int]] = []
    works = [group.start(f"w{i}", lambda i=i: made.append((i, threading.get_ident()))) for i in range(20)]
    for work in works:
        group.wait(work)
    assert [i for i, _ in made] == list(range(20))
    assert len({thread for _, thread in made}) == 1 and made[0][1] != threading.get_ident()
    group.close()


@pytest.mark.parametrize(
    ("states", "message", "ranks"),
    [
        ([state("sum"), None, state("sum")], "sum .collective 1.: rank 1 does not answer", (1,)),
        ([state("sum"), None, None], "ranks 1, 2 do not answer", (1, 2)),
        (
            [state("sum"), state("sum"), state()],
            "rank 2 has not called it for 0 seconds: rank 2 is at train.py:7 in load",
            (2,),
        ),
        ([state("sum"), state("max"), state("sum")], "rank 1 makes max instead, at train.py:7 in load", (1,)),
    ],
    ids=["silent", "two silent", "absent", "other"],
)
def test_a_rank_that_is_gone_is_named(states: Any, message: str, ranks: tuple[int, ...]) -> None:
    engine = Others()
    engine.states = states
    group, release = stuck(engine), threading.Event()
    with pytest.raises(RankError, match=message) as caught:
        group.run("sum", lambda: release.wait() and None)
    assert caught.value.ranks == ranks
    release.set()


def test_a_slow_transfer_is_no_error() -> None:
    engine = Others()
    engine.states = [state("sum")] * 3
    group, release = stuck(engine, timeout=0.05), threading.Event()
    threading.Timer(0.6, release.set).start()
    group.run("sum", lambda: release.wait() and None)


def test_a_rank_may_be_given_longer() -> None:
    engine = Others()
    engine.states = [state("sum"), state(), state("sum")]
    group, release = stuck(engine, timeout=0.05), threading.Event()
    threading.Timer(0.6, release.set).start()
    group.run("sum", lambda: release.wait() and None, timeout=60)


def test_a_notice_ends_the_wait_at_once() -> None:
    engine = Others()
    engine.told = {2: json.dumps([[2], "ValueError: bad data"])}
    group, release = stuck(engine, timeout=100), threading.Event()
    with pytest.raises(RankError, match=r"sum .collective 1.: rank 2: ValueError: bad data") as caught:
        group.run("sum", lambda: release.wait() and None)
    assert caught.value.ranks == (2,)
    engine.told = {2: json.dumps([[1], "rank 1 does not answer"])}  # rank 2 tells about rank 1
    with pytest.raises(RankError, match=r"^rank 1 does not answer") as caught:
        group.run("sum", lambda: None or (release.wait() and None))
    assert caught.value.ranks == (1,)
    release.set()


def test_a_rank_that_has_ended_counts_only_while_others_wait() -> None:
    engine = Others()
    engine.told = {1: json.dumps([[1], "it has ended"])}
    group, release = stuck(engine, timeout=100), threading.Event()
    group.run("sum", lambda: None)
    with pytest.raises(RankError, match="rank 1: it has ended"):
        group.run("sum", lambda: release.wait() and None)
    release.set()


def test_an_error_of_the_engine_names_the_rank_that_is_gone() -> None:
    def fail() -> None:
        raise RuntimeError("connection closed")

    engine = Others()
    engine.states = [state("sum"), state("sum"), None]
    with pytest.raises(RankError, match="rank 2 does not answer"):
        stuck(engine).run("sum", fail)
    engine.states = [state("sum")] * 3
    with pytest.raises(DistributedError, match=r"sum .collective 1.: one process: connection closed"):
        stuck(engine).run("sum", fail)


def test_others_are_told_why_a_rank_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polygrad.distributed.group._LAST_WORDS", 0.0)
    engine = Others()
    group = stuck(engine)
    group.fail(ValueError("bad data"))
    group.close()
    assert engine.sent == [[[0], "ValueError: bad data"]] and engine.aborted
    engine = Others()
    group = stuck(engine)
    group.fail(RankError("rank 2 does not answer", (2,)))
    assert engine.sent == [[[2], "rank 2 does not answer"]]
    engine = Others()
    stuck(engine).close()
    assert engine.sent == [[[0], "it has ended"]] and not engine.aborted


def test_the_state_tells_the_line_of_the_program() -> None:
    group = stuck(Others())
    group.run("sum", lambda: None)
    told = json.loads(group._state())
    assert told["made"] == [[1, "sum"]] and "test_group.py:" in told["line"]
    group.close()
