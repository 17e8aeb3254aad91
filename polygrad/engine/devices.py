"""The devices of this host: what each is made of, and which is the default.

Device.DEFAULT                 "CPU", "WASM" in a page or Node, or the environment's DEVICE
Device.DEFAULT = "auto"        a GPU where there is one, as with DEVICE=auto and device="auto"
Device["WASM"]                 its Runtime; a DeviceError says what to install where it cannot be had
Device["CPU:1"]                another device of the same kind, with memory of its own; "CPU:0" is "CPU"

A package adds a device by an entry point of the group `polygrad.devices`: a name, and where its `Backend`
is.

    [project.entry-points."polygrad.devices"]
    NPU = "npu_package.backend:BACKEND"

What is installed is looked through only for a name that is not built in, and by `Device.available()`.
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
    """What a device is made of.

    `compile` starts to turn a named linear kernel into an artefact in `language` (see `Program`), which
    calling its result waits for. `shared_memory`: whether artefacts import a shared memory.
    `link` gives a captured Program its driver; None: its launches are made one by one. `prepare` is called
    when kernels are soon to be compiled; it must return at once, and be cheap when called again.
    `assemble` makes an artefact of a function that is written by hand, through a Builder; None: it has none.
    `indexed`: `open` gives another device each time, so there may be a second (`CPU:1`).
    `packages` are the distributions that drive it, `about` says what is to be known beside their versions.
    `source` writes a linear kernel in the language named `source_name`, for people to read; `assembly` says
    what a compiler makes of such a text, None where that is the driver's or the engine's secret.
    """

    target: Target
    compile: Callable[[str, list[UOp]], Callable[[], bytes]]
    open: Callable[[], Runtime]
    language: str
    optimized: bool = True
    caches_on_disk: bool = False
    link: Callable[[Program], Program] | None = None
    prepare: Callable[[], None] = lambda: None
    shared_memory: bool = False
    assemble: Callable[[Callable[[Builder], Any]], bytes] | None = None
    indexed: bool = False
    packages: tuple[str, ...] = ()
    about: Callable[[], str] = lambda: ""
    source: Callable[[str, list[UOp]], str] | None = None
    source_name: str = "source"
    assembly: Callable[[str], str] | None = None


ENTRY_POINTS = "polygrad.devices"

# The module that defines `BACKEND` for a built-in device, and what to do when its packages are missing. The
# same entry points are in pyproject.toml; from here they are found in a source tree too, and at once.
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

# Called with the name of a device that was lost and opened anew: what was made of its memory is to be
# forgotten.
reopened: list[Callable[[str], object]] = []


_INDEXED = re.compile(r"([^:]+):([0-9]{1,4})")


def kind_of(name: str) -> str:
    """A canonical name without its index: what a device's Programs run on any device of."""
    return name.partition(":")[0]


def device_names() -> tuple[str, ...]:
    """Every built-in device, whether this host has it or not."""
    return tuple(_MODULES)


def _announced() -> dict[str, Any]:
    """The entry points of other packages' devices, by their names in upper case. Of two with one name the
    first that is found counts, and none replaces a built-in device."""
    # A module that takes as long to import as a third of polygrad.
    metadata = importlib.import_module("importlib.metadata")
    found: dict[str, Any] = {}
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        if entry.name.upper() not in _MODULES:
            found.setdefault(entry.name.upper(), entry)
    return found


class _Devices:
    """The registry; `Device` is its only instance."""

    def __init__(self) -> None:
        self._backends: dict[str, Backend] = {}
        self._runtimes: dict[str, Runtime] = {}
        self._default: str | None = None
        self._auto: str | None = None

    @property
    def DEFAULT(self) -> str:
        """The device of a Tensor made without naming one: unless chosen, the fastest that is sure to work."""
        if self._default is None:
            self._default = self._default_of(os.environ.get("DEVICE"))
        return self._default

    @DEFAULT.setter
    def DEFAULT(self, name: str) -> None:
        self._default = self.canonical(name)

    def _default_of(self, asked: str | None) -> str:
        """The default device where the environment's DEVICE is `asked`. Raises DeviceError that names it."""
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
        """The device's name in upper case, without an index of 0; of "auto", that of the best. Raises
        DeviceError for one that does not exist."""
        upper = name.upper() if isinstance(name, str) else name
        if isinstance(upper, str) and (indexed := _INDEXED.fullmatch(upper)):
            kind, index = self.canonical(indexed[1]), int(indexed[2])
            return f"{kind}:{index}" if index else kind
        if upper == "AUTO":
            if self._auto is None:
                self._auto = self.best()
            return self._auto
        if upper not in _MODULES and upper not in self._backends:
            known = [*_MODULES, *_announced()]
            if upper not in known:
                raise DeviceError(f"device: expected one of {', '.join(known)}, got {name!r}")
        return upper

    def backend(self, name: str) -> Backend:
        """How to compile for a device. Raises DeviceError when this host cannot."""
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
                entry = _announced()[name]
                remedy = f"see what the package of {entry.value} needs"
                backend = entry.load()
        except ImportError as e:
            if name in _MODULES and sys.platform == "emscripten":  # what only native hosts can run
                raise DeviceError(
                    f"device {name}: not available inside Pyodide: expected WASM, WEBGPU or INTERP"
                ) from e
            raise DeviceError(f"device {name}: not available here ({e}): {remedy}") from e
        if not isinstance(backend, Backend):
            raise DeviceError(f"device {name}: expected a Backend, got {backend!r}: {remedy}")
        return self._backends.setdefault(name, backend)

    def __getitem__(self, name: str) -> Runtime:
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
                f"device {name}: expected {kind_of(name)}, of which a process has one, got another: use that "
                "(of several GPUs the environment chooses: CUDA_VISIBLE_DEVICES), or CPU:1"
            )
        opened = self._runtimes[name] = backend.open()
        opened.name = name
        if runtime is not None:
            for hook in reopened:
                hook(name)
        return opened

    def best(self) -> str:
        """What "auto" is: WEBGPU where it is a GPU, and no processor that does a GPU's work; else the default
        of this host. It opens the GPU to know, and says what it chose."""
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
        """Whether kernels run on grids of workgroups there, other than on a processor that does a GPU's work.
        `device`: as Tensors have it, one or several of a kind; None: the default."""
        name = self.DEFAULT if device is None else device if isinstance(device, str) else device[0]
        limits = self.backend(name).target.workgroups
        return limits is not None and not limits.software

    def known(self) -> tuple[str, ...]:
        """The names of all devices, built in or of installed packages, whether they open here or not."""
        return (*_MODULES, *_announced())

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
    """The canonical name of a device, or a tuple of those of several. Raises DeviceError for devices that do
    not exist, for several of different kinds, and for one twice."""
    if isinstance(device, str):
        return Device.canonical(device)
    names = tuple([Device.canonical(d) for d in device])
    if len(set(names)) < len(names) or len({kind_of(d) for d in names}) != 1:
        raise DeviceError(
            f"device: expected different devices of one kind, as CPU and CPU:1, got {', '.join(names)}"
        )
    return names if len(names) > 1 else names[0]
