"""The state of random numbers: the seed, how many elements each device has drawn, and captured steps' draws.

Element i of a draw is threefry(key, base + offset + i). Outside of captures `base` is 0, and `offset`, a
separate buffer for each draw, counts the elements drawn earlier. So a draw is a pure function of buffers that
nothing overwrites: it can be computed late, twice or never. A captured step has its own key and base, and
advances the base itself; its draws continue the sequence as if it had not been captured.
"""

from __future__ import annotations

import array
import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from polygrad.dtype import dtypes
from polygrad.engine.realize import buffer_from
from polygrad.engine.recording import watch
from polygrad.runtime.buffer import Buffer
from polygrad.uop.node import UOp

_MASK = (1 << 64) - 1
_HOST = "host"  # counts drawn seeds; the other keys are devices, which count drawn elements


def mix(x: int) -> int:
    """Mix 64 bits, so that each depends on every bit of `x`: SplitMix64's finaliser (Steele et al., 2014)."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _bytes(value: int) -> memoryview:
    return memoryview(array.array("Q", [value & _MASK])).cast("B")


def _word(device: str, value: int) -> UOp:
    return buffer_from(device, dtypes.uint64, _bytes(value))


@dataclass(slots=True)
class _Stream:
    """A captured step's draws on one device: its buffers, their contents, and the elements that a run
    draws."""

    key: UOp
    base: UOp
    holds: tuple[int, int]  # the seed and position that the buffers hold
    drawn: int = 0


class CapturedDraws:
    """The draws of one captured step."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._streams: dict[str, _Stream] = {}

    def draw(self, device: str, count: int) -> tuple[UOp, UOp, UOp]:
        """As `Generator.draw`, in the step's own buffers."""
        stream = self._streams.get(device)
        if stream is None:
            seed, position = self._generator.state(device)
            stream = _Stream(_word(device, mix(seed)), _word(device, position), (seed, position))
            self._streams[device] = stream
        offset = _word(device, stream.drawn)
        stream.drawn += count
        return stream.key, stream.base, offset

    def advances(self) -> list[UOp]:
        """The assignments that advance the step's base; they must be computed last."""
        return [s.base.assign(s.base + UOp.const(dtypes.uint64, s.drawn)) for s in self._streams.values()]

    def begin_run(self) -> None:
        """Before each run: continue from the generator's position, and advance it by this run's draws."""
        if not self._streams:
            return
        self.catch_up()
        for device, stream in self._streams.items():
            seed, position = stream.holds
            next_position = position + stream.drawn & _MASK
            stream.holds = (seed, next_position)
            self._generator.positions[device] = next_position

    def catch_up(self) -> None:
        """Write the generator's state to the step's buffers, if it has changed."""
        for device, stream in self._streams.items():
            seed, position = state = self._generator.state(device)
            if stream.holds != state:
                stream.key.arg.write(_bytes(mix(seed)))
                stream.base.arg.write(_bytes(position))
                stream.holds = state

    def buffers(self) -> dict[str, Buffer]:
        """The step's buffers by name: for each device its key, and the number of elements drawn."""
        return {
            f"random.{name}": node.arg
            for s in self._streams.values()
            for name, node in (("key", s.key), ("position", s.base))
        }


class Generator:
    """The seed, and how many elements each device has drawn."""

    def __init__(self) -> None:
        self.seed: int | None = None
        self.positions: dict[str, int] = {}
        self._starts: dict[str, tuple[UOp, UOp]] = {}  # device -> key, base 0
        self._captured: CapturedDraws | None = None

    def reset(self, seed: int | None) -> None:
        """Start afresh; None: with a seed of the time. Raises CaptureError inside a captured function."""
        watch.forbid("Tensor.manual_seed", "call it before")
        self.seed = seed
        self._starts.clear()
        self.positions.clear()

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """`with generator.restored():` later draws continue as if there had been none in the block."""
        seed, positions = self.seed, dict(self.positions)
        try:
            yield
        finally:
            self.reset(seed)
            self.positions.update(positions)

    def state(self, device: str) -> tuple[int, int]:
        """The seed and the number of elements drawn."""
        if self.seed is None:
            self.seed = time.time_ns()
        return self.seed, self.positions.get(device, 0)

    def draw_seed(self) -> int:
        """64 random bits, as the seed of draws that are made elsewhere. It does not affect devices' draws."""
        seed, position = self.state(_HOST)
        self.positions[_HOST] = position + 1
        return mix(mix(seed) + position)

    def draw(self, device: str, count: int) -> tuple[UOp, UOp, UOp]:
        """The key, the base and the offset of `count` new elements, each of shape (1,)."""
        if self._captured is not None:
            return self._captured.draw(device, count)
        seed, position = self.state(device)
        # before memory is allocated: that may wait, and other threads may draw meanwhile
        self.positions[device] = position + count
        start = self._starts.get(device)
        if start is None:
            start = _word(device, mix(seed)), _word(device, 0)
            if seed == self.seed:
                self._starts[device] = start
        return *start, _word(device, position)

    @contextlib.contextmanager
    def captured(self) -> Iterator[CapturedDraws]:
        """`with generator.captured() as draws:` all draws are those of a step being captured."""
        draws = self._captured = CapturedDraws(self)
        try:
            yield draws
        except BaseException:
            draws.begin_run()  # the draws have been computed eagerly
            raise
        finally:
            self._captured = None


generator = Generator()
