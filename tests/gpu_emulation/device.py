"""Devices whose kernels are CUDA's or Metal's source text, run by `emulation.cpp`: workgroups, barriers,
shared memory and all. They prove the code generator for machines with workgroups where there is none.

A checked machine looks at every access (see emulation.cpp) and raises for what it finds; it counts the bytes
that kernels read and write in buffers.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import functools
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from polygrad.codegen.target import Target, Workgroups
from polygrad.engine.devices import Backend
from polygrad.errors import CompileError, OutOfMemoryError
from polygrad.renderer.cstyle.cuda import CUDABuilder
from polygrad.renderer.cstyle.msl import MSLBuilder
from polygrad.renderer.emit import emit
from polygrad.runtime.grid import grid_size
from polygrad.runtime.interface import Executable, Handle, Runtime
from polygrad.runtime.program import Kernel, Program
from polygrad.uop.node import UOp
from polygrad.uop.tensor_cores import BY_NAME

HERE = Path(__file__).parent
KEPT = os.environ.get("POLYGRAD_TEST_CACHE", tempfile.gettempdir())
CACHE = Path(KEPT, f"polygrad-emulation-{os.getuid()}")
ALIGNMENT = 256
LIMITS = Workgroups(subgroup=32)
SHUFFLE_BYTES = {"cuda": 8, "msl": 4}
CORES = {
    "cuda": ("mma_m16n8k16_half", "mma_m16n8k16_bfloat"),
    "msl": ("simdgroup_8x8_half", "simdgroup_8x8_bfloat", "simdgroup_8x8_float"),
}
HEADERS = {"cuda": "emulated_cuda.h", "msl": "metal_stdlib"}
_FLAGS = (
    "-std=c++20",
    "-w",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fPIC",
    "-I",
    str(HERE / "include"),
)


class EmulationError(AssertionError):
    """What a checked machine found, a line each."""


def target_of(language: str) -> Target:
    return Target(
        f"EMULATED_{language.upper()}",
        simd_bytes=16,
        index_bits=32,
        workgroups=replace(LIMITS, shuffle_bytes=SHUFFLE_BYTES[language]),
        alignment=ALIGNMENT,
        float64=language != "msl",
        tensor_cores=tuple(BY_NAME[name] for name in CORES[language]),
    )


# --- compiling


@functools.cache
def _pool() -> concurrent.futures.ThreadPoolExecutor:
    return concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1, "polygrad-compiler")


@functools.cache
def _headers() -> bytes:
    return b"".join(path.read_bytes() for path in sorted((HERE / "include").iterdir()))


def _compiled(name: str, text: str, flags: Sequence[str], link: Sequence[str] = ()) -> Path:
    """The shared object of C++ text, which is kept."""
    digest = hashlib.sha256(_headers() + text.encode() + repr(flags).encode()).hexdigest()[:24]
    path = CACHE / f"{digest}.so"
    if path.exists():
        return path
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder, "kernel.cpp"), Path(folder, "kernel.so")
        object_ = Path(folder, "kernel.o")
        source.write_text(text)
        for command in (
            ["g++", *_FLAGS, *flags, "-c", source, "-o", object_],
            ["g++", "-shared", object_, "-o", made, *link],
        ):
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                raise CompileError(f"kernel {name}: expected C++ that compiles, got\n{done.stderr}\n{text}")
        os.replace(made, CACHE / f"{digest}.{os.getpid()}")
        os.replace(CACHE / f"{digest}.{os.getpid()}", path)
    return path


@functools.cache
def machine() -> ctypes.CDLL:
    """emulation.cpp, compiled."""
    path = _compiled("emulation", (HERE / "emulation.cpp").read_text(), ("-O2",))
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.emulated_errors.restype = ctypes.c_char_p
    return library


def compile_kernel(kernel: Kernel, checked: bool) -> Path:
    text = kernel.code.decode()
    if kernel.language == "msl":
        text = text.replace("(threadgroup ", "(")  # of a pointer: a macro would declare memory
    header = f'#include "{HEADERS[kernel.language]}"\n'
    entry = f"\nEMULATED_ENTRY({kernel.name})\n"
    return _compiled(kernel.name, header + text + entry, ("-O1", *(["-fsanitize=thread"] if checked else [])))


def waits(text: str) -> bool:
    """Whether a kernel's invocations wait for each other."""
    words = ("barrier", "__syncthreads", "mma_m16", "simdgroup_8x8", "__shfl_xor_sync", "simd_shuffle_xor")
    return any(word in text for word in words)


class LoadedKernel:
    """A kernel's entry, and where the memory of its workgroups lies."""

    def __init__(self, kernel: Kernel, path: Path) -> None:
        machine()
        self.library = ctypes.CDLL(str(path))
        self.barriers = waits(kernel.code.decode())
        self.entry = ctypes.cast(self.library.emulated_entry, ctypes.c_void_p)
        self.shared = list(self._shared(path))

    def _shared(self, path: Path) -> Iterator[tuple[int, int]]:
        """Start and bytes of each array."""
        for function in (self.library.emulated_start, self.library.emulated_stop):
            function.restype = ctypes.c_void_p
        start, stop = self.library.emulated_start() or 0, self.library.emulated_stop() or 0
        if start == stop:
            return
        listing = subprocess.run(["nm", "-S", path], capture_output=True, text=True, check=True).stdout
        symbols = {line.split()[-1]: line.split() for line in listing.splitlines()}
        base = start - int(symbols["__start_emulated_shared"][0], 16)
        for name, fields in symbols.items():
            if len(fields) == 4 and re.search(r"shared\d+$", name):
                yield base + int(fields[0], 16), int(fields[1], 16)


# --- running


@dataclass
class Traffic:
    """Bytes that kernels read and wrote in buffers."""

    read: int = 0
    written: int = 0


class EmulatedRuntime(Runtime):
    """`checked`: whether every access is looked at."""

    def __init__(self, language: str, checked: bool = False) -> None:
        self.name, self.language, self.checked = f"EMULATED_{language.upper()}", language, checked
        self.traffic = Traffic()

    def allocate(self, nbytes: int) -> Handle:
        try:
            memory = (ctypes.c_char * (nbytes + ALIGNMENT))()
        except (MemoryError, OverflowError) as e:
            raise OutOfMemoryError(f"device {self.name}: no room for {nbytes} bytes") from e
        address = -(-ctypes.addressof(memory) // ALIGNMENT) * ALIGNMENT
        ctypes.memset(address, 0xFF, nbytes)
        return memory, address

    def free(self, handle: Handle) -> None:
        """The memory goes with its last reference."""

    def write(self, handle: Handle, offset: int, data: memoryview) -> None:
        ctypes.memmove(handle[1] + offset, bytes(data), len(data))

    def read(self, handle: Handle, offset: int, nbytes: int) -> memoryview:
        return memoryview(bytearray(ctypes.string_at(handle[1] + offset, nbytes)))

    def load(self, program: Program) -> Executable:
        program.require(self.name, self.language)
        return _EmulatedExecutable(self, program)


class _EmulatedExecutable(Executable):
    def __init__(self, runtime: EmulatedRuntime, program: Program) -> None:
        self.runtime, self.program = runtime, program
        self.loaded: dict[bool, list[LoadedKernel]] = {}

    def kernels(self, checked: bool) -> list[LoadedKernel]:
        if checked not in self.loaded:
            kernels = self.program.kernels
            paths = list(_pool().map(functools.partial(compile_kernel, checked=checked), kernels))
            self.loaded[checked] = [LoadedKernel(k, p) for k, p in zip(kernels, paths, strict=True)]
        return self.loaded[checked]

    def run(
        self, buffers: Sequence[Handle | None], arena: Handle | None, variables: Mapping[str, int]
    ) -> None:
        program, run, kernels = self.program, machine(), self.kernels(self.runtime.checked)
        for launch in program.launches:
            assert launch.grid is not None
            kernel, loaded = program.kernels[launch.kernel], kernels[launch.kernel]
            addresses, sizes = [], []
            for binding in launch.bindings:
                spec, memory, at = program.buffers[binding.buffer], buffers[binding.buffer], binding.offset
                if memory is None:
                    memory, at = arena, at + spec.offset
                assert memory is not None
                addresses.append(memory[1] + at)
                sizes.append(spec.size * _itemsize(spec.dtype) - binding.offset)
            values = [variables[name] for name in kernel.variables]
            numbers = (ctypes.c_int64 * max(len(values), 1))(*values)
            grid = [grid_size(n, variables) for n in launch.grid]
            if any(n > LIMITS.count for n in grid):
                raise EmulationError(f"kernel {kernel.name}: a grid of {grid}")
            if 0 in grid:
                continue
            if self.runtime.checked:
                kinds = [int(i in kernel.writes) for i in range(len(addresses))]
                kinds += [2] * len(loaded.shared) + [0]
                starts = [*addresses, *(start for start, _ in loaded.shared), ctypes.addressof(numbers)]
                extents = [*sizes, *(size for _, size in loaded.shared), ctypes.sizeof(numbers)]
                count = len(starts)
                run.emulated_regions(
                    count,
                    (ctypes.c_void_p * count)(*starts),
                    (ctypes.c_int64 * count)(*extents),
                    (ctypes.c_int * count)(*kinds),
                )
            run.emulated_launch(
                loaded.entry,
                (ctypes.c_void_p * max(len(addresses), 1))(*addresses),
                numbers,
                (ctypes.c_uint * 3)(*grid),
                (ctypes.c_uint * 3)(*(kernel.workgroup or ())),
                int(loaded.barriers),
                int(self.runtime.checked),
            )
            self._collect(run, kernel)

    def _collect(self, run: ctypes.CDLL, kernel: Kernel) -> None:
        read, written = ctypes.c_uint64(), ctypes.c_uint64()
        run.emulated_traffic(ctypes.byref(read), ctypes.byref(written))
        self.runtime.traffic.read += read.value
        self.runtime.traffic.written += written.value
        if found := run.emulated_errors():
            raise EmulationError(f"kernel {kernel.name}\n{found.decode()}\n{kernel.code.decode()}")


def _itemsize(dtype: str) -> int:
    return {"bool": 1}.get(dtype) or int(re.sub(r"\D", "", dtype)) // 8


# --- devices


def backend_of(language: str) -> Backend:
    target = target_of(language)
    builder: Any = {"cuda": CUDABuilder, "msl": MSLBuilder}[language]

    def compile_(name: str, linear: list[UOp]) -> Callable[[], bytes]:
        text = str(emit(name, linear, builder(target, aligned=True)))
        return text.encode

    checked = bool(os.environ.get("CHECK_EMULATION"))
    runtime = EmulatedRuntime(language, checked)
    return Backend(target=target, compile=compile_, open=lambda: runtime, language=language)


@contextmanager
def checked(runtime: EmulatedRuntime) -> Iterator[Traffic]:
    """A machine that looks at every access meanwhile; the bytes that kernels move."""
    old, runtime.checked, runtime.traffic = runtime.checked, True, Traffic()
    try:
        yield runtime.traffic
    finally:
        runtime.checked = old
