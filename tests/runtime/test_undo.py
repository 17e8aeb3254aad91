"""What a run that is stopped puts back: which buffers are saved, and from where on it is not stopped."""

from __future__ import annotations

from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program
from polygrad.runtime.undo import UndoPlan, undo_plan


def program(writes: str, sizes: dict[str, int], roles: dict[str, str]) -> Program:
    """A launch for each letter of `writes`, which writes the buffer of that letter."""
    names = sorted(sizes)
    buffers = tuple(
        BufferSpec(sizes[n], "float32", roles[n], 0 if roles[n] == "scratch" else -1) for n in names
    )
    kernel = Kernel("k", b"", 1, language="linear", writes=(0,))
    launches = tuple(Launch(0, (Binding(names.index(w)),)) for w in writes)
    return Program("INTERP", "t", buffers, (kernel,), launches, arena=1 << 30)


SIZES = {"a": 10, "b": 100, "c": 1000}
STATE = {"a": "state", "b": "state", "c": "state"}


def test_what_is_small_is_saved_and_the_run_may_always_be_stopped() -> None:
    assert undo_plan(program("abc", SIZES, STATE), 1 << 20) == UndoPlan(((0, 40), (1, 400), (2, 4000)), 3)


def test_what_would_be_too_much_commits() -> None:
    assert undo_plan(program("abc", SIZES, STATE), 500) == UndoPlan(((0, 40), (1, 400)), 2)
    assert undo_plan(program("cab", SIZES, STATE), 500) == UndoPlan((), 0)


def test_a_buffer_that_is_written_again_is_saved_once() -> None:
    assert undo_plan(program("aabab", SIZES, STATE), 500) == UndoPlan(((0, 40), (1, 400)), 5)


def test_scratch_and_outputs_go_with_the_run() -> None:
    roles = {"a": "scratch", "b": "output", "c": "input"}
    assert undo_plan(program("abc", SIZES, roles), 500) == UndoPlan((), 2)
    assert undo_plan(program("ab", SIZES, roles), 0) == UndoPlan((), 2)
