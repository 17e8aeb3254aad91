"""`WasmHost`: the interface of the WASM device to a WebAssembly engine. Each engine has a file beside this.

A host owns one linear memory and the instances that import it. It knows addresses, bytes and calls, but no
Programs, buffers or allocations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence, Sized
from dataclasses import dataclass
from typing import Any

from polygrad.errors import InternalError
from polygrad.runtime.interface import Control

PAGE = 65536
MAX_PAGES = 65536
WORD = "I"  # the array code of a 32-bit address or argument


class WasmFunction:
    """A kernel that the host can call. `value` belongs to the host. Dropping this releases the kernel."""

    __slots__ = ("__weakref__", "name", "value")

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value


@dataclass(frozen=True)
class WasmCall:
    """One call. Argument number i is `bases[sources[i]] + offsets[i]`, modulo 2**32.

    Four words follow the bases: the number of the thread, the count of threads, the number of the part and
    the count of parts. Every thread of the run makes a parallel call; thread 0 makes the others. A call that
    takes the part's number is made once for each part, by the thread that takes the part. `barrier`: the call
    waits until all threads have made all calls before it.
    """

    function: WasmFunction
    sources: tuple[int, ...]
    offsets: tuple[int, ...]
    parallel: bool = False
    barrier: bool = False


class WasmCalls(ABC):
    """A prepared list of calls. Dropping it releases its resources."""

    calls_made: Sized = ()  # see `Executable`

    @abstractmethod
    def run(self, bases: array[int]) -> None:
        """Make every call in order, with these 32-bit words. Raises InternalError when a kernel traps."""

    def run_stoppable(self, bases: array[int], control: Control) -> bool:
        """`run`, which ends early when `control` requests it; returns whether all calls were made."""
        self.run(bases)
        return True


class WasmHost(ABC):
    """A WebAssembly engine with one memory."""

    features: frozenset[str]  # of "simd", "relaxed-simd", "relaxed-dot", "threads"
    threads: int = 1  # the most of a run; with "threads" the memory is shared, else not
    killable: bool = False  # whether `kill` ends runs

    @abstractmethod
    def grow(self, nbytes: int) -> int:
        """Grow the memory to at least `nbytes`; returns its new length, or 0 on failure."""

    @abstractmethod
    def write(self, address: int, data: memoryview) -> None:
        """Copy `data` (contiguous, format 'B') to `address`."""

    @abstractmethod
    def read(self, address: int, nbytes: int) -> memoryview:
        """A writable copy of `nbytes` bytes from `address`, format 'B'."""

    def word(self, address: int) -> int:
        """The 32-bit word at an address."""
        return int.from_bytes(self.read(address, 4), "little")

    def set_word(self, address: int, value: int) -> None:
        """Write a 32-bit word, also while calls run in another thread."""
        self.write(address, memoryview(value.to_bytes(4, "little")))

    def kill(self) -> None:
        """Let every run end with a trap, also one that another thread has begun, until `revive`."""
        raise InternalError(f"{type(self).__name__}.kill: its runs cannot be killed")

    def revive(self) -> None:
        """Undo `kill`."""
        raise InternalError(f"{type(self).__name__}.revive: its runs cannot be killed")

    @abstractmethod
    def load(self, name: str, code: bytes) -> WasmFunction:
        """The function that the module `code` exports as `name`; the module may import `env.memory` and
        nothing else. Raises CompileError."""

    @abstractmethod
    def prepare(self, calls: Sequence[WasmCall], n_bases: int) -> WasmCalls:
        """Prepare `calls`, which take their arguments from `n_bases` words."""
