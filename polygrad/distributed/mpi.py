"""The engine on MPI, by mpi4py.

A thread polls a communicator of its own for what other ranks ask and tell while a collective blocks, so MPI
has to be thread-safe (MPI_THREAD_MULTIPLE), as Open MPI and MPICH are.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from mpi4py import MPI

from polygrad.distributed.engine import Array, Engine
from polygrad.distributed.launch import Launch
from polygrad.errors import DistributedError

_OPS = {"sum": MPI.SUM, "max": MPI.MAX, "min": MPI.MIN}
_ASK, _ANSWER, _NOTICE = 1, 2, 3  # tags
_PAUSE = 20e-3  # seconds between two looks for messages
_PATIENCE = 2.0


class MPIEngine(Engine):
    def __init__(self, launch: Launch) -> None:
        if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
            raise DistributedError(
                "init: expected an MPI that is thread-safe (MPI_THREAD_MULTIPLE), got "
                f"{_library()} without: use Open MPI 4 or MPICH 4"
            )
        self._comm = MPI.COMM_WORLD.Dup()
        self._control = MPI.COMM_WORLD.Dup()
        self.rank, self.size = self._comm.Get_rank(), self._comm.Get_size()
        if self.size == 1 < launch.size:
            raise DistributedError(
                f"init: {launch.launcher} has started {launch.size} ranks, but mpi4py uses {_library()}, "
                "which finds one: start the program with that library's mpirun, or install mpi4py for yours"
            )
        machine = MPI.COMM_WORLD.Split_type(MPI.COMM_TYPE_SHARED)
        self.local_rank = machine.Get_rank()
        machine.Free()
        self.name = f"MPI ({_library()})"
        self._state: Callable[[], str] = str
        self._answers: dict[int, str] = {}
        self._notices: dict[int, str] = {}
        self._sent: list[tuple[Any, bytes]] = []  # requests, and what they send
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    # --- collectives

    def all_reduce(self, array: Array, op: str) -> None:
        self._comm.Allreduce(MPI.IN_PLACE, array, _OPS[op])

    def broadcast(self, array: Array, root: int) -> None:
        self._comm.Bcast(array, root)

    def all_gather(self, array: Array, out: Array) -> None:
        self._comm.Allgather(array, out)

    def reduce_scatter(self, array: Array, out: Array, op: str) -> None:
        self._comm.Reduce_scatter_block(array, out, _OPS[op])

    def all_to_all(self, array: Array, out: Array) -> None:
        self._comm.Alltoall(array, out)

    def barrier(self) -> None:
        self._comm.Barrier()

    # --- guards

    def serve(self, state: Callable[[], str]) -> None:
        self._state = state
        self._thread = threading.Thread(target=self._poll, name="polygrad-mpi", daemon=True)
        self._thread.start()

    def _poll(self) -> None:
        status = MPI.Status()
        while not self._closed.wait(_PAUSE):
            while self._control.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG, status):
                source, tag = status.Get_source(), status.Get_tag()
                data = bytearray(status.Get_count(MPI.BYTE))
                self._control.Recv([data, MPI.BYTE], source, tag)
                if tag == _ASK:
                    self._send(self._state(), source, _ANSWER)
                elif tag == _ANSWER:
                    self._answers[source] = data.decode()
                else:
                    self._notices[source] = data.decode()

    def _send(self, text: str, target: int, tag: int) -> None:
        data = text.encode()
        self._sent = [(request, kept) for request, kept in self._sent if not request.Test()]
        self._sent.append((self._control.Isend([data, MPI.BYTE], target, tag), data))

    def ask(self) -> list[str | None]:
        self._answers = {self.rank: self._state()}
        for other in range(self.size):
            if other != self.rank:
                self._send("", other, _ASK)
        deadline = time.monotonic() + _PATIENCE
        while len(self._answers) < self.size and time.monotonic() < deadline:
            time.sleep(_PAUSE)
        return [self._answers.get(i) for i in range(self.size)]

    def notify(self, notice: str) -> None:
        for other in range(self.size):
            if other != self.rank:
                self._send(notice, other, _NOTICE)

    def notices(self) -> Mapping[int, str]:
        return dict(self._notices)

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def abort(self) -> None:
        MPI.COMM_WORLD.Abort(1)
        os._exit(1)


def _library() -> str:
    """The name and version of the MPI library."""
    first = MPI.Get_library_version().splitlines()[0].split(",")[0]
    return " ".join(first.replace("Version:", "").split())
