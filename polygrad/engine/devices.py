"""The registry of devices: the Backend of each, and the default device of this host.

Device.DEFAULT                 "CPU", "WASM" in a page or Node, or the environment's DEVICE
Device.DEFAULT = "auto"        a GPU if there is one, as with DEVICE=auto and device="auto"
Device["WASM"]                 its Runtime; a DeviceError says what to install if it is not available
Device["CPU:1"]                another device of the same kind, with memory of its own; "CPU:0" is "CPU"

A package adds a device by an entry point of the group `polygrad.devices`: its name, and the place of its
`Backend`.

    [project.entry-points."polygrad.devices"]
    NPU = "npu_package.backend:BACKEND"

Installed packages are searched only for a name that is not built in, and by `Device.available()`.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from polygrad.codegen.target import Target
from polygrad.errors import DeviceError
from polygrad.monitor import synchronized
from polygrad.renderer.builder import Builder
from polygrad.runtime.interface import Runtime
from polygrad.runtime.program import Program
from polygrad.uop.node import UOp


@dataclass(frozen=True)
class Backend:
    """The parts of a device.

    `compile` starts to compile a named linear kernel to an artefact in `language` (see `Program`); a call of
    its result waits for the artefact. `shared_memory`: whether artefacts import a shared memory. `link` gives
    a captured Program its driver; None: launches are made one by one. `exported` gives the Program that a
    file has of one that this process runs. `prepare` is called shortly before
    kernels are compiled; it must return at once, and be cheap when called again. `assemble` compiles a
    function that is written by hand, through a Builder; None: it cannot. `indexed`: `open` gives a new device
    each time, so there may be several (`CPU:1`). `packages`: the distributions that drive the device. `about`
    gives its version where that is not theirs. `source` writes a linear kernel in the language named
    `source_name`, for people to read. `assembly` compiles such a text to assembly; None: the driver or the
    engine does not show it. `for_target` is the device with kernels that are made for another Target, which
    its machine can run, too; None: it runs those of its own Target alone.
    """

    target: Target
    compile: Callable[[str, list[UOp]], Callable[[], bytes]]
    open: Callable[[], Runtime]
    language: str
    optimized: bool = True
    caches_on_disk: bool = False
    link: Callable[[Program], Program] | None = None
    exported: Callable[[Program], Program] = lambda program: program
    prepare: Callable[[], None] = lambda: None
    shared_memory: bool = False
    assemble: Callable[[Callable[[Builder], Any]], bytes] | None = None
    indexed: bool = False
    packages: tuple[str, ...] = ()
    about: Callable[[], str] = lambda: ""
    source: Callable[[str, list[UOp]], str] | None = None
    source_name: str = "source"
    assembly: Callable[[str], str] | None = None
    for_target: Callable[[Target], Backend] | None = None


ENTRY_POINTS = "polygrad.devices"

# The module that defines `BACKEND` for a built-in device, and advice for when its packages are missing. The
# same entry points are in pyproject.toml; with this table they also work in a source tree, without a search.
_MODULES = {
    "CPU": ("polygrad.engine.backends.cpu", "pip install llvmlite"),
    "CC": ("polygrad.engine.backends.cc", "it needs a C compiler"),
    "WASM": ("polygrad.engine.backends.wasm", "pip install wasmtime"),
    "WEBGPU": ("polygrad.engine.backends.webgpu", 'pip install "polygrad[webgpu]"'),
    "CUDA": ("polygrad.engine.backends.cuda", 'pip install "polygrad[cuda]"'),
    "METAL": ("polygrad.engine.backends.metal", 'pip install "polygrad[metal]"'),
    "INTERP": ("polygrad.engine.backends.interp", "it needs nothing: please report this"),
}


_FALLBACK = "WASM" if sys.platform == "emscripten" else "CPU"

# Called with the name of a device that was lost and opened anew, to forget everything in its memory.
reopened: list[Callable[[str], object]] = []


_INDEXED = re.compile(r"([^:]+):([0-9]{1,4})")


def kind_of(name: str) -> str:
    """A canonical name without its index: any device of this kind can run the device's Programs."""
    return name.partition(":")[0]


def device_names() -> tuple[str, ...]:
    """The names of all built-in devices, whether this host has them or not."""
    return tuple(_MODULES)


def _package_entries() -> dict[str, Any]:
    """The entry points of devices of other packages, by their names in upper case. Of two with one name the
    first one counts. None replaces a built-in device."""
    # Importing this module takes a third of the time that polygrad takes, so it is imported when needed.
    metadata = importlib.import_module("importlib.metadata")
    entries: dict[str, Any] = {}
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        if entry.name.upper() not in _MODULES:
            entries.setdefault(entry.name.upper(), entry)
    return entries


class _Devices:
    """The registry; `Device` is its only instance."""

    def __init__(self) -> None:
        self._backends: dict[str, Backend] = {}
        self._runtimes: dict[str, Runtime] = {}
        self._default: str | None = None
        self._auto: str | None = None

    @property
    def DEFAULT(self) -> str:
        """The device of a Tensor that names none. Unless it was set: the fastest one that is sure to work."""
        if self._default is None:
            self._default = self._default_of(os.environ.get("DEVICE"))
        return self._default

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:
        self._default = self.canonical(name)

    def _default_of(self, asked: str | None) -> str:
        """The default device when the environment's DEVICE is `asked`. Raises DeviceError, which names
        DEVICE."""
        if not asked:
            return _FALLBACK
        try:
            return self.canonical(asked)
        except DeviceError as e:
            _, _, problem = str(e).partition(": ")
            raise DeviceError(
                f"environment variable DEVICE: {problem}: unset it for the default, {_FALLBACK}"
            ) from e

    def canonical(self, name: str) -> str:
        """The device's name in upper case, without an index of 0; for "auto" the name of the best device.
        Raises DeviceError for a device that does not exist."""
        upper = name.upper() if isinstance(name, str) else name
        if isinstance(upper, str) and (indexed := _INDEXED.fullmatch(upper)):
            kind, index = self.canonical(indexed[1]), int(indexed[2])
            return f"{kind}:{index}" if index else kind
        if upper == "AUTO":
            if self._auto is None:
                self._auto = self.best()
            return self._auto
        if upper not in _MODULES and upper not in self._backends:
            names = [*_MODULES, *_package_entries()]
            if upper not in names:
                raise DeviceError(f"device: expected one of {', '.join(names)}, got {name!r}")
        return upper

    def backend(self, name: str) -> Backend:
        """The Backend of a device. Raises DeviceError when this host does not have the device."""
        return self._backends.get(name) or self._load(kind_of(self.canonical(name)))

    @synchronized
    def _load(self, name: str) -> Backend:
        if name in self._backends:  # another thread has just loaded it
            return self._backends[name]
        try:
            if name in _MODULES:
                module, remedy = _MODULES[name]
                backend = importlib.import_module(module).BACKEND
            else:
                entry = _package_entries()[name]
                remedy = f"see what the package of {entry.value} needs"
                backend = entry.load()
        except ImportError as e:
            if name in _MODULES and sys.platform == "emscripten":  # a device of native hosts
                raise DeviceError(
                    f"device {name}: not available inside Pyodide: expected WASM, WEBGPU or INTERP"
                ) from e
            raise DeviceError(f"device {name}: not available here ({e}): {remedy}") from e
        if not isinstance(backend, Backend):
            raise DeviceError(f"device {name}: expected a Backend, got {backend!r}: {remedy}")
        return self._backends.setdefault(name, backend)

    def __getitem__(self, name: str) -> Runtime:
        runtime = self._runtimes.get(name)  # by its canonical name, which the engine has
        if runtime is None or runtime.lost:
            name = self.canonical(name)
            runtime = self._runtimes.get(name)
        return self._open(name) if runtime is None or runtime.lost else runtime

    @synchronized
    def _open(self, name: str) -> Runtime:
        runtime = self._runtimes.get(name)
        if runtime is not None and not runtime.lost:  # another thread has just opened it
            return runtime
        backend = self.backend(name)
        if name != kind_of(name) and not backend.indexed:
            raise DeviceError(
                f"device {name}: a process has one device {kind_of(name)}: use that (of several GPUs the "
                "environment chooses: CUDA_VISIBLE_DEVICES), or CPU:1"
            )
        opened = self._runtimes[name] = backend.open()
        opened.name = name
        if runtime is not None:
            for hook in reopened:
                hook(name)
        return opened

    def best(self) -> str:
        """The device that "auto" means: WEBGPU if that is a real GPU, not a processor that emulates one, else
        the default of this host. It opens the GPU to find out, and prints its choice."""
        chosen = _FALLBACK
        try:
            runtime = self["WEBGPU"]
        except DeviceError as e:
            reason = str(e)
        else:
            chosen = "WEBGPU" if runtime.accelerates else _FALLBACK
            reason = runtime.description
        print(f"polygrad: device auto is {chosen} ({reason})", file=sys.stderr)
        return chosen

    def is_gpu(self, device: str | Sequence[str] | None) -> bool:
        """Whether a device runs kernels on grids of workgroups, and is no processor that emulates a GPU.
        `device`: as of Tensors, one or several of a kind; None: the default."""
        name = self.DEFAULT if device is None else device if isinstance(device, str) else device[0]
        limits = self.backend(name).target.workgroups
        return limits is not None and not limits.software

    def known(self) -> tuple[str, ...]:
        """The names of all devices, built in or of installed packages, whether they open here or not."""
        return (*_MODULES, *_package_entries())

    def available(self) -> list[str]:
        """The names of the devices that open on this host."""
        out = []
        for name in self.known():
            try:
                self[name]
            except DeviceError:
                continue
            out.append(name)
        return out


Device = _Devices()


def placement_of(device: str | Sequence[str]) -> Any:
    """The canonical name of a device, or a tuple of names for several devices. Raises DeviceError for devices
    that do not exist, for several of different kinds, and for one named twice."""
    if isinstance(device, str):
        return Device.canonical(device)
    names = tuple([Device.canonical(d) for d in device])
    if len(set(names)) < len(names) or len({kind_of(d) for d in names}) != 1:
        raise DeviceError(
            f"device: expected different devices of one kind, as CPU and CPU:1, got {', '.join(names)}"
        )
    return names if len(names) > 1 else names[0]
