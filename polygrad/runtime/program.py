"""`Program`: the waist. Everything above makes one; everything below runs one.

Plain, immutable, versioned data: no UOps, no devices' objects. `to_bytes` writes

    b"PGRD" | u32 version | u32 header length | header (UTF-8 JSON) | the code of each kernel | the driver

(little-endian), so any language can read it.

A kernel with variables named `thread` and `threads` is run by any number of threads up to `Program.threads`
at the same time, each with its own number (from 0) and the count: each does its share. One thread alone runs
it as thread 0 of 1.

A captured step has a `driver`: one artefact whose function `run` makes all launches. It takes a table: the
address of each buffer by its number (anything for scratch), then the arena's.
- CPU: an object file that calls the kernels by name; `void run(char **table, int64_t *variables, int64_t
  thread, int64_t threads, void **team)`, called once by every thread. Where threads must wait for each other
  it calls `void meet(void **team, int64_t threads)`, which is `team[0]`; `team` may be null for one thread.
- WASM: a module that holds the kernels, whose own `code` is empty; `run(i32 address of the table)`, the table
  in u32 words, the variables (their low 32 bits) behind the arena. When a kernel is for several threads, so
  is `run(i32 address of the table, i32 thread, i32 threads)`; its threads meet at words of the memory's first
  64 bytes, all zero before the first run. Made for a target with threads, modules import a shared memory.
"""

from __future__ import annotations

import dataclasses
import json
import struct
from dataclasses import dataclass
from typing import Any

from polygrad.errors import ProgramError

MAGIC, VERSION = b"PGRD", 2
ROLES = ("input", "output", "param", "state", "scratch")
THREAD, THREADS = "thread", "threads"


@dataclass(frozen=True)
class BufferSpec:
    """A buffer: `size` elements of `dtype`. Scratch lives in the arena at byte `offset`, others are bound at
    each run."""

    size: int
    dtype: str
    role: str
    offset: int = -1


@dataclass(frozen=True)
class Kernel:
    """One compiled artefact: `code` holds a function `name` of `n_buffers` pointers, then the named
    `variables`."""

    name: str
    code: bytes
    n_buffers: int
    variables: tuple[str, ...] = ()

    @property
    def parallel(self) -> bool:
        """Whether threads divide its work (see above)."""
        return THREADS in self.variables


@dataclass(frozen=True)
class Binding:
    """Which of the Program's buffers a kernel's pointer is, and at which byte offset."""

    buffer: int
    offset: int = 0


@dataclass(frozen=True)
class Launch:
    """Run kernel number `kernel` once with these buffers, in the order of its pointers."""

    kernel: int
    bindings: tuple[Binding, ...]


@dataclass(frozen=True)
class Variable:
    """A symbolic integer given at each run, `lo` to `hi`, both included."""

    name: str
    lo: int
    hi: int


@dataclass(frozen=True)
class Program:
    """What a device runs: launches in order. `arena` is the size of the scratch arena in bytes.

    `driver`: an artefact that makes all launches at once (see above), or empty. `threads`: how many may run
    its kernels, at most.
    """

    device: str
    target: str
    buffers: tuple[BufferSpec, ...]
    kernels: tuple[Kernel, ...]
    launches: tuple[Launch, ...]
    variables: tuple[Variable, ...] = ()
    arena: int = 0
    driver: bytes = b""
    threads: int = 1

    def place(self, binding: Binding) -> tuple[int, int]:
        """Where a pointer comes from: an entry of the driver's table, and what to add to it in bytes."""
        spec = self.buffers[binding.buffer]
        if spec.role == "scratch":
            return len(self.buffers), spec.offset + binding.offset
        return binding.buffer, binding.offset

    def to_bytes(self) -> bytes:
        """This Program as bytes; the same Program always gives the same bytes."""
        header = dataclasses.asdict(self)
        for kernel in header["kernels"]:
            kernel["code"] = len(kernel["code"])
        header["driver"] = len(self.driver)
        text = json.dumps(header, separators=(",", ":"), sort_keys=True).encode()
        codes = [*(k.code for k in self.kernels), self.driver]
        return b"".join((MAGIC, struct.pack("<II", VERSION, len(text)), text, *codes))

    @staticmethod
    def from_bytes(data: bytes) -> Program:
        """The Program that `to_bytes` wrote. Raises ProgramError for anything else."""
        data = bytes(data)
        if data[:4] != MAGIC or len(data) < 12:
            raise ProgramError(f"Program.from_bytes: expected bytes starting {MAGIC!r}, got {data[:4]!r}")
        version, length = struct.unpack_from("<II", data, 4)
        if version != VERSION:
            raise ProgramError(
                f"Program.from_bytes: expected version {VERSION}, got {version}: export it again"
            )
        try:
            return _parse(json.loads(data[12 : 12 + length]), data[12 + length :])
        except (ValueError, KeyError, TypeError, IndexError) as e:
            raise ProgramError(
                f"Program.from_bytes: expected a whole Program, got damaged bytes ({e})"
            ) from e


def _parse(header: dict[str, Any], blob: bytes) -> Program:
    kernels, at = [], 0
    for k in header["kernels"]:
        code = blob[at : at + k["code"]]
        if len(code) != k["code"]:
            raise ValueError(f"kernel {k['name']} needs {k['code']} bytes, {len(code)} are left")
        at += k["code"]
        kernels.append(Kernel(k["name"], code, k["n_buffers"], tuple(k["variables"])))
    if len(blob) - at != header["driver"]:
        raise ValueError(f"a driver of {header['driver']} bytes, {len(blob) - at} are left")
    return Program(
        device=header["device"],
        target=header["target"],
        buffers=tuple(BufferSpec(**b) for b in header["buffers"]),
        kernels=tuple(kernels),
        launches=tuple(
            Launch(x["kernel"], tuple(Binding(**b) for b in x["bindings"])) for x in header["launches"]
        ),
        variables=tuple(Variable(**v) for v in header["variables"]),
        arena=header["arena"],
        driver=blob[at:],
        threads=header.get("threads", 1),
    )
