"""INTERP: pure Python, slow and obviously right. Tests compare other devices with it. Every host has it."""

from __future__ import annotations

from collections.abc import Callable

from polygrad.codegen.target import Target
from polygrad.engine.devices import Backend
from polygrad.renderer.interp_json import render_interp
from polygrad.runtime.interp.device import InterpRuntime
from polygrad.runtime.interp.python import load_kernel
from polygrad.uop.node import UOp


def _compile(name: str, linear: list[UOp]) -> Callable[[], bytes]:
    code = render_interp(name, linear)
    return lambda: code


def _source(name: str, linear: list[UOp]) -> str:
    _, kernel = load_kernel(render_interp(name, linear))
    return kernel.source


BACKEND = Backend(
    target=Target("INTERP"),
    compile=_compile,
    open=InterpRuntime,
    language="linear",
    optimized=False,
    indexed=True,
    about=lambda: "this Python",
    source=_source,
    source_name="Python",
)
