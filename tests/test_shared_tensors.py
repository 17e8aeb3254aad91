"""Threads of the user's program work with the same Tensors: they write through views, read, differentiate,
call captured functions and drop what they hold, at the same time.

What the threads write commutes (integers are added), so memory must hold the sum of it in the end, whatever
the order was. On the way, a method of a Tensor happens as a whole, and in one order for all: what a thread
reads has what it wrote itself, never less than what it has read before, and no half of a write.
"""

from __future__ import annotations

import gc
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pytest
from adapter import WEBGPU
from user_threads import in_threads, switching_often

from polygrad import Tensor, TinyJit, compile_step, nn
from polygrad.uop.intern import collect

N_THREADS = 16
SHAPE = (4, 6)
MEMORIES = 3  # and one more that is a lazy value at the start


@dataclass(frozen=True)
class View:
    """A view of memory `of`: where in it its elements lie."""

    tensor: Tensor
    of: int
    places: np.ndarray


class Model:
    """One parameter, whose loss has the input as its gradient: steps of training commute."""

    def __init__(self, device: str) -> None:
        self.weight = Tensor(np.zeros(6, dtype=np.float32), device=device, requires_grad=True).realize()

    def loss(self, x: Tensor) -> Tensor:
        return (self.weight * x).sum()


class Shared:
    """What all threads use."""

    def __init__(self, device: str) -> None:
        self.device = device
        zeros = np.zeros(SHAPE, dtype=np.int32)
        self.memories = [Tensor(zeros, device=device).realize() for _ in range(MEMORIES)]
        self.memories.append(Tensor(zeros, device=device) * 2)
        self.uniform = Tensor(zeros, device=device).realize()  # whole writes: all elements are equal
        self.register = Tensor(zeros, device=device).realize()
        self.parameter = Tensor(np.ones(6, dtype=np.float32), device=device, requires_grad=True).realize()
        self.model = Model(device)
        self.views: list[View] = []  # of any thread, for any thread to write through
        self.values: list[tuple[Tensor, np.ndarray]] = []  # lazy, with what they are worth
        self.counted = Tensor(np.zeros(1, dtype=np.int32), device=device).realize()
        self.count = TinyJit(lambda x: self.counted.assign(self.counted + x).realize())
        self.one = Tensor(np.ones(1, dtype=np.int32), device=device).realize()


@dataclass
class Worker:
    """What one thread did, and what it has seen."""

    shared: Shared
    number: int
    rng: random.Random
    views: list[View] = field(default_factory=list)
    snapshots: list[tuple[Tensor, int]] = field(default_factory=list)  # values, and the least they are worth
    draws: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.added = np.zeros((len(self.shared.memories), *SHAPE), dtype=np.int64)
        self.seen = self.added.copy()
        self.uniform = self.seen_uniform = 0
        self.registered = 0
        self.seen_registers = [0] * N_THREADS
        self.gradient, self.seen_gradient = np.zeros(6), np.zeros(6)
        self.trained, self.counted = np.zeros(6), 0
        self.captured_view = self.new_view()
        self.add_captured = TinyJit(self._add_captured)
        model = self.shared.model
        x = Tensor(np.zeros(6, dtype=np.float32), device=self.shared.device)
        self.step = compile_step(Model.loss, model, nn.optim.SGD([model.weight], lr=1.0), x)

    def ints(self, *shape: int) -> np.ndarray:
        return np.array([self.rng.randint(1, 9) for _ in range(int(np.prod(shape)))]).reshape(shape)

    # --- memory and views of it

    def new_view(self) -> View:
        """A random view of one of the memories."""
        of, rng = self.rng.randrange(len(self.shared.memories)), self.rng
        t, places = self.shared.memories[of], np.arange(np.prod(SHAPE)).reshape(SHAPE)
        for _ in range(rng.randrange(4)):
            axis = rng.randrange(places.ndim)
            match rng.randrange(5):
                case 0:
                    start = rng.randrange(places.shape[axis])
                    end = rng.randint(start + 1, places.shape[axis])
                    cut = (slice(None),) * axis + (slice(start, end),)
                    t, places = t[cut], places[cut]
                case 1:
                    t, places = t.flip(axis), np.flip(places, axis)
                case 2 if places.ndim > 1:
                    t, places = t.transpose(0, -1), places.swapaxes(0, -1)
                case 3:
                    t, places = t.reshape(-1), places.reshape(-1)
                case _ if places.ndim > 1:
                    row = rng.randrange(places.shape[0])
                    t, places = t[row], places[row]
        return View(t, of, places)

    def any_view(self) -> View:
        """One that a thread holds, or a new one."""
        held = self.rng.choice([self.views, self.shared.views])
        try:
            return self.rng.choice(held)
        except IndexError:  # there is none, or another thread has just dropped it
            return self.new_view()

    def note(self, view: View, amount: np.ndarray | int) -> None:
        self.added[view.of].reshape(-1)[view.places] += amount

    def add(self) -> None:
        view, amount = self.any_view(), self.rng.randint(1, 9)
        t = view.tensor
        t += amount
        self.note(view, amount)

    def add_an_array(self) -> None:
        view = self.any_view()
        amount = self.ints(*view.places.shape)
        t = view.tensor
        t += Tensor(amount.astype(np.int32), device=self.shared.device)
        self.note(view, amount)

    def add_to_a_slice(self) -> None:
        """Python makes three calls of it: a view is made, added to, and written to itself."""
        of, row, amount = self.rng.randrange(len(self.shared.memories)), self.rng.randrange(4), 5
        self.shared.memories[of][row] += amount
        self.added[of][row] += amount

    def _add_captured(self, x: Tensor) -> Tensor:
        t = self.captured_view.tensor
        t += x
        return t + 1

    def add_in_a_captured_function(self) -> None:
        amount = self.ints(*self.captured_view.places.shape)
        got = self.add_captured(Tensor(amount.astype(np.int32), device=self.shared.device))
        self.note(self.captured_view, amount)
        assert got.shape == amount.shape
        self.check(self.captured_view, got.numpy() - 1)

    def read(self) -> None:
        view = self.any_view()
        self.check(view, view.tensor.numpy())

    def check(self, view: View, got: np.ndarray) -> None:
        """What was read: it has what this thread added, and what it has seen before."""
        seen = self.seen[view.of].reshape(-1)
        assert (got >= self.added[view.of].reshape(-1)[view.places]).all(), "a write of this thread is lost"
        assert (got >= seen[view.places]).all(), "memory went back to an older version"
        seen[view.places] = got

    def realize(self) -> None:
        Tensor.realize(*[self.any_view().tensor for _ in range(self.rng.randint(1, 3))])

    def hold(self) -> None:
        self.views.append(self.new_view())

    def share(self) -> None:
        self.shared.views.append(self.new_view())

    def drop(self) -> None:
        for held in (self.views, self.shared.views, self.shared.values):
            if len(held) > 6:
                del held[: len(held) // 2]
        if self.rng.randrange(4) == 0:
            gc.collect()
            collect()

    # --- whole writes

    def add_to_all(self) -> None:
        amount = self.rng.randint(1, 9)
        t = self.shared.uniform
        t += amount
        self.uniform += amount

    def read_all(self) -> None:
        self.check_uniform(self.shared.uniform.numpy(), max(self.uniform, self.seen_uniform))

    def check_uniform(self, got: np.ndarray, least: int) -> None:
        assert (got == got.flat[0]).all(), f"half of a write was seen: {got}"
        assert got.flat[0] >= least
        self.seen_uniform = max(self.seen_uniform, int(got.flat[0]))

    def snapshot(self) -> None:
        """A lazy value: it is what it was when it was made."""
        least = max(self.uniform, self.seen_uniform)
        # memory is allocated for an array
        ones = np.ones(SHAPE, dtype=np.int32) if self.rng.randrange(2) else 1
        self.snapshots.append((self.shared.uniform * ones, least))

    def read_snapshots(self) -> None:
        snapshots, self.snapshots = self.snapshots, []
        newest = 0
        for value, least in snapshots:
            got = value.numpy()
            self.check_uniform(got, max(least, newest))
            newest = int(got.flat[0])

    def register(self) -> None:
        self.registered += 1
        self.shared.register.assign(
            Tensor.full(SHAPE, self.registered * N_THREADS + self.number, dtype="int32")
        )

    def read_register(self) -> None:
        got = self.shared.register.numpy()
        assert (got == got.flat[0]).all(), f"half of a write was seen: {got}"
        count, writer = divmod(int(got.flat[0]), N_THREADS)
        assert count >= self.seen_registers[writer], "memory went back to an older version"
        self.seen_registers[writer] = count

    # --- values that several threads compute

    def share_a_value(self) -> None:
        a = self.ints(3, 5)
        x = Tensor(a.astype(np.int32), device=self.shared.device)
        self.shared.values.append(((x * 3 + 1).sum(0), (a * 3 + 1).sum(0)))

    def compute_values(self) -> None:
        for value, expected in self.shared.values[-3:]:
            if self.rng.randrange(2):
                value.realize()
            np.testing.assert_array_equal(value.numpy(), expected)

    # --- gradients, captured functions, random numbers

    def backward(self) -> None:
        x = self.ints(6)
        (self.shared.parameter * Tensor(x.astype(np.float32), device=self.shared.device)).sum().backward()
        self.gradient += x

    def read_gradient(self) -> None:
        grad = self.shared.parameter.grad
        got = np.zeros(6) if grad is None else grad.numpy()
        assert (got >= self.gradient).all(), "a gradient of this thread is lost"
        assert (got >= self.seen_gradient).all()
        self.seen_gradient = got

    def train(self) -> None:
        x = self.ints(6)
        self.step.run(Tensor(x.astype(np.float32), device=self.shared.device))
        self.trained += x

    def call(self) -> None:
        self.shared.count(self.shared.one)
        self.counted += 1

    def draw(self) -> None:
        self.draws.append(Tensor.rand(8, device=self.shared.device).numpy().tobytes())


STEPS: list[Callable[[Worker], None]] = [
    Worker.add, Worker.add, Worker.add_an_array, Worker.add_to_a_slice, Worker.add_in_a_captured_function,
    Worker.read, Worker.read, Worker.realize, Worker.hold, Worker.share, Worker.drop,
    Worker.add_to_all, Worker.read_all, Worker.snapshot, Worker.read_snapshots,
    Worker.register, Worker.read_register, Worker.share_a_value, Worker.compute_values,
    Worker.backward, Worker.read_gradient, Worker.train, Worker.call, Worker.draw,
]  # fmt: skip


def check(device: str, seed: int, steps: int) -> None:
    Tensor.manual_seed(seed)
    shared = Shared(device)
    workers: list[Worker] = []

    def work(i: int) -> None:
        worker = Worker(shared, i, random.Random(1000 * seed + i))
        workers.append(worker)
        for _ in range(steps):
            worker.rng.choice(STEPS)(worker)
        worker.read_snapshots()

    with switching_often():
        in_threads(work, N_THREADS)
    for of, memory in enumerate(shared.memories):
        np.testing.assert_array_equal(memory.numpy(), sum(w.added[of] for w in workers))
    assert (shared.uniform.numpy() == sum(w.uniform for w in workers)).all()
    grad = shared.parameter.grad
    np.testing.assert_array_equal(grad.numpy() if grad is not None else 0, sum(w.gradient for w in workers))
    np.testing.assert_array_equal(shared.model.weight.numpy(), -sum(w.trained for w in workers))
    assert shared.counted.item() == sum(w.counted for w in workers)
    draws = [d for w in workers for d in w.draws]
    assert len(set(draws)) == len(draws)


DEVICES = pytest.mark.parametrize("device", ["CPU", "WASM", WEBGPU])


@DEVICES
@pytest.mark.parametrize("seed", range(2))
def test_threads_share_tensors(device: str, seed: int) -> None:
    check(device, seed, steps=20)


@pytest.mark.slow
@DEVICES
@pytest.mark.parametrize("seed", range(10, 15))
def test_threads_share_tensors_for_long(device: str, seed: int) -> None:
    check(device, seed, steps=200)
