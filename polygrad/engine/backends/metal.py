"""METAL: Apple's GPUs, on macOS."""

from __future__ import annotations

from collections.abc import Callable

from polygrad.engine.backends.metal_target import target_of
from polygrad.engine.devices import Backend
from polygrad.renderer.cstyle.msl import MSLBuilder
from polygrad.renderer.emit import emit
from polygrad.runtime.metal.device import MetalRuntime, default_host
from polygrad.uop.node import UOp

_runtime = MetalRuntime(default_host())
_target = target_of(_runtime.host.gpu)


def _compile(name: str, linear: list[UOp]) -> Callable[[], bytes]:
    return _source(name, linear).encode


def _source(name: str, linear: list[UOp]) -> str:
    return str(emit(name, linear, MSLBuilder(_target, aligned=True)))


BACKEND = Backend(
    target=_target,
    compile=_compile,
    open=lambda: _runtime,
    language="msl",
    caches_on_disk=True,
    packages=("pyobjc-framework-Metal",),
    source=_source,
    source_name="Metal",
)
