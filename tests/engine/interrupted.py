"""A program that is interrupted in the middle of a long Program, and then says what has become of it:
`interrupted.py DEVICE THREADS SIZE WHAT`, see test_interrupts.py."""

from __future__ import annotations

import json
import sys

from polygrad import Device, Tensor, TinyJit, set_num_threads

Device.DEFAULT, threads, size, what = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
set_num_threads(threads)
if what == "replay":
    size //= 2  # it is run some times before
factor = Tensor.rand(size, size).realize()
state = Tensor.ones(4).contiguous().realize()
rounds = 0


def product() -> Tensor:
    """One Program of three products."""
    found = factor
    for _ in range(3):
        found = (found @ factor).contiguous()
    return found


@TinyJit
def step() -> Tensor:
    state.assign(state + 1).realize()
    return product().realize()


def say(text: str) -> None:
    print(text, flush=True)


target = Tensor.zeros(size, size).contiguous().realize()
lazy = product() if what == "read" else target.assign(product())
try:
    if what == "replay":
        for _ in range(3):
            step()
            rounds += 1
    else:
        lazy.code()  # it is compiled by now
    say("begins")
    while what == "replay":
        step()
        rounds += 1
    lazy.realize()
    say("whole")
except KeyboardInterrupt:
    say("KeyboardInterrupt")
a, b = Tensor([[1.0, 2.0], [3.0, 4.0]]), Tensor([[1.0, 1.0], [0.0, 2.0]])
right = (a @ b).tolist() == [[1.0, 5.0], [3.0, 11.0]]
kept = state.tolist()
state.assign(state + 1)
again = [new - old for new, old in zip(state.tolist(), kept, strict=True)]
say(json.dumps({"right": right, "steps": [n - 1 - rounds for n in kept], "again": again}))
