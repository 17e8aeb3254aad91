"""`SavedState`: checkpoints of a training loop of your own, on one rank or several."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable, Mapping
from typing import Any

from polygrad import nn
from polygrad.distributed.zero import Piece, shards_of
from polygrad.errors import ArgumentError, PolygradError
from polygrad.tensor.core.generator import generator
from polygrad.tensor.tensor import Tensor
from polygrad.training.checkpoint import Contents, read_parts
from polygrad.training.checkpoint_files import checkpoint_files
from polygrad.training.ranks import any_rank, of_rank_0, rank, size
from polygrad.training.termination import termination
from polygrad.training.writing import CheckpointWriter

_VERSION = "1"


class SavedState:
    """The state of a loop, in a folder: it is loaded at the beginning of a `with` block, and saved after
    every `every` calls of `advance` and at the end. All ranks do the same.

        with training.SavedState("run", every=100, model=model, optimizer=optimizer) as saved:
            step = compile_step(loss, model, optimizer, *first)  # after the state is loaded
            for x, y in nn.data.batches(rows, 64, seed=0, epochs=10, start=saved.step):
                step.run(x, y)
                saved.advance()

    parts: what has a state, by name: models, and objects with `state_dict` and `load_state_dict` (optimizers,
        schedules). The state of random numbers is saved, too, that of each rank.
    keep, background: as of `Checkpoints`, also what they promise; SIGTERM ends the process in `advance`,
        after its checkpoint.

    Of an optimizer that `DataParallel(shard_optimizer=True)` divides, each rank saves its own part, and any
    number of ranks, divided or not, goes on from that.

    `step`: the calls of `advance` in all runs. Raises ArgumentError for a checkpoint that is damaged or of
    other parts, and for an optimizer that is divided before the block begins; OSError.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        every: int = 1,
        keep: int = 3,
        background: bool = True,
        **parts: Any,
    ) -> None:
        for name, value in (("every", every), ("keep", keep)):
            if not isinstance(value, int) or value < 1:
                raise ArgumentError(f"SavedState: {name}: expected at least 1, got {value!r}")
        self.step, self.every, self.parts = 0, every, parts
        self._writer = CheckpointWriter(folder, keep, background)
        self._saved = -1
        self._block = contextlib.ExitStack()
        self._is_terminated: Callable[[], bool] = lambda: False

    def __enter__(self) -> SavedState:
        divided = [name for name, x in self.parts.items() if shards_of(x) is not None]
        if divided:
            raise ArgumentError(
                f"SavedState: {divided[0]}: expected an optimizer that is not divided yet: make the "
                "DataParallel in the block, after the state is loaded"
            )
        newest = self._writer.newest()
        if newest is not None:
            self._load([str(path) for path in checkpoint_files(newest)])
        self._writer.begin(self.step)
        self._saved = self.step
        self._is_terminated = self._block.enter_context(termination())
        return self

    def advance(self) -> None:
        """Count a step, and save the state if it is due."""
        self.step += 1
        if any_rank(self._is_terminated()):
            self.save()
            self._writer.wait()
            self._block.close()
            signal.raise_signal(signal.SIGTERM)
        elif self.step % self.every == 0:
            self.save()

    def save(self) -> None:
        """Save the state now."""
        self._saved = self.step
        self._writer.save(self.step, self._contents())

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._block.close()
        try:
            if error is None and self.step != self._saved:
                self.save()
            self._writer.wait()
        except Exception as e:
            if error is None:
                raise
            error.add_note(f"SavedState: {type(e).__name__}: {e}")

    def _contents(self) -> Contents:
        tensors: dict[str, Tensor] = {}
        pieces: dict[str, Piece] = {}
        plain: dict[str, Any] = {}
        for part, x in self.parts.items():
            for name, value in _state_of(x).items():
                if isinstance(value, Tensor):
                    tensors[f"{part}.{name}"] = value.detach()
                elif isinstance(value, Piece):
                    pieces[f"{part}.{name}"] = value
                else:
                    plain[f"{part}.{name}"] = value
        random = {"seed": generator.seed, "positions": generator.positions}
        own = {
            "step": self.step,
            "ranks": size(),
            "parts": list(self.parts),
            "plain": plain,
            "random": random,
        }
        return Contents(tensors, {"polygrad_state": _VERSION, "state": json.dumps(own)}, pieces)

    def _load(self, files: list[str]) -> None:
        where = files[0]
        tensors, metadata = read_parts(files, where)
        try:
            if any(m.get("polygrad_state") != _VERSION for m in metadata):
                raise ArgumentError(f"expected files of SavedState, version {_VERSION}")
            states = [json.loads(m["state"]) for m in metadata]
            first = states[0]
            if first["parts"] != list(self.parts):
                raise ArgumentError(f"expected the parts {list(self.parts)}, got {first['parts']}")
            for part, x in self.parts.items():
                start = f"{part}."
                values = {k.removeprefix(start): v for k, v in tensors.items() if k.startswith(start)}
                values |= {k.removeprefix(start): v for k, v in first["plain"].items() if k.startswith(start)}
                if hasattr(x, "load_state_dict"):
                    x.load_state_dict(values)
                else:
                    nn.state.load_state_dict(x, values, verbose=False)
            step = int(first["step"])
            # other ranks than before keep the seeds of this program
            seed = states[rank()]["random"]["seed"] if len(states) == size() else generator.seed
            positions = states[rank() if len(states) == size() else 0]["random"]["positions"]
        except (PolygradError, KeyError, TypeError, ValueError) as e:
            raise ArgumentError(f"SavedState: {where}: {e}") from e
        generator.reset(seed)
        generator.positions.update(positions)
        self.step = of_rank_0(step, "step")


def _state_of(x: Any) -> Mapping[str, Any]:
    """The state of a part of a run, by name: Tensors, this rank's pieces of divided ones, and values that
    JSON can hold."""
    shards = shards_of(x)
    if shards is not None:
        return shards.state_dict(x)
    state: Mapping[str, Any] = x.state_dict() if hasattr(x, "load_state_dict") else nn.state.get_state_dict(x)
    return state
