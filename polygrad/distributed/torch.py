"""The engine on torch.distributed, with gloo, as its arrays are in memory of the host.

Ranks tell their states through the store where they have met. One that does not answer there has ended.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed as dist

from polygrad.distributed.engine import Array, Engine
from polygrad.distributed.launch import Launch
from polygrad.errors import DistributedError

_OPS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}
# Before torch 2.13 these had other names.
_all_gather: Any = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter: Any = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
_BEAT = 0.5  # seconds between two states that a rank leaves in the store
_PATIENCE = 2.0


class TorchEngine(Engine):
    """The processes of a group that the program has made already, if it has."""

    def __init__(self, launch: Launch) -> None:
        if not dist.is_available():
            raise DistributedError(
                "init: expected a torch with torch.distributed, got one that was built without"
            )
        self.local_rank = launch.local_rank
        self._owns_group = not dist.is_initialized()
        if self._owns_group:
            if launch.address is not None:
                host, port = launch.address
                os.environ.setdefault("MASTER_ADDR", host)
                os.environ.setdefault("MASTER_PORT", str(port))
            store = _store_of_this_start(launch)
            dist.init_process_group("gloo", store=store, rank=launch.rank, world_size=launch.size)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.name = "torch.distributed (gloo)"
        is_gloo = "gloo" in str(dist.get_backend())
        self._group: Any = None if is_gloo else dist.new_group(backend="gloo")  # None: the default
        self._store: Any = dist.PrefixStore("polygrad", dist.distributed_c10d._get_default_store())
        self._state: Callable[[], str] = str
        self._beats = 0
        self._notices: dict[int, str] = {}
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # for calls of the store

    # --- collectives

    def all_reduce(self, array: Array, op: str) -> None:
        dist.all_reduce(_tensor(array), _OPS[op], self._group)

    def broadcast(self, array: Array, root: int) -> None:
        dist.broadcast(_tensor(array), root, self._group)

    def all_gather(self, array: Array, out: Array) -> None:
        _all_gather(_tensor(out), _tensor(array), self._group)

    def reduce_scatter(self, array: Array, out: Array, op: str) -> None:
        _reduce_scatter(_tensor(out), _tensor(array), _OPS[op], self._group)

    def all_to_all(self, array: Array, out: Array) -> None:
        dist.all_to_all_single(_tensor(out), _tensor(array), group=self._group)

    def barrier(self) -> None:
        dist.all_reduce(torch.zeros(1), group=self._group)  # dist.barrier would pick a device

    # --- guards

    def serve(self, state: Callable[[], str]) -> None:
        self._state = state
        self._thread = threading.Thread(target=self._beat, name="polygrad-store", daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while True:
            try:
                self._leave_state()
                self._read_notices()
            except RuntimeError:  # the store has ended with the rank or the launcher that holds it
                pass
            if self._closed.wait(_BEAT):
                return

    def _leave_state(self) -> None:
        self._beats += 1
        with self._lock:
            self._store.set(f"state/{self.rank}", f"{self._beats} {self._state()}")

    def _read_notices(self) -> None:
        with self._lock:
            if self._store.check(["notices"]):
                for other in self._store.get("notices").decode().split():
                    self._notices[int(other)] = self._store.get(f"notice/{other}").decode()

    def _states(self) -> list[tuple[str, str] | None]:
        """The number of beats of each rank, and its state."""
        states: list[tuple[str, str] | None] = []
        for i in range(self.size):
            try:
                with self._lock:
                    text = self._store.get(f"state/{i}").decode() if self._store.check([f"state/{i}"]) else ""
            except RuntimeError:
                text = ""
            beats, _, state = text.partition(" ")
            states.append((beats, state) if text else None)
        return states

    def ask(self) -> list[str | None]:
        before = self._states()
        time.sleep(_PATIENCE)
        now = self._states()
        return [None if b is None or a is None or a[0] == b[0] else b[1] for a, b in zip(before, now)]

    def notify(self, notice: str) -> None:
        try:
            with self._lock:
                self._store.set(f"notice/{self.rank}", notice)
                self._store.append("notices", f"{self.rank} ")
        except RuntimeError:
            print("polygrad: the other ranks could not be told why this one ends", file=sys.stderr)

    def notices(self) -> Mapping[int, str]:
        return {i: text for i, text in self._notices.items() if i != self.rank}

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()
        if self._owns_group and dist.is_initialized():
            dist.destroy_process_group()

    def abort(self) -> None:
        os._exit(1)


def _store_of_this_start(launch: Launch) -> Any:
    """The store in which ranks find each other. torchrun keeps it when it starts all ranks again, with the
    addresses and notices of those before, so each start has keys of its own."""
    store, _, _ = next(dist.rendezvous("env://", launch.rank, launch.size))
    return dist.PrefixStore(f"start {launch.restarts}", store)


def _tensor(array: Array) -> Any:
    return torch.from_numpy(array)
