"""INTERP: pure Python, slow and obviously right. The judge in tests; available on every host."""

from __future__ import annotations

from polygrad.codegen.target import Target
from polygrad.engine.devices import Backend
from polygrad.renderer.interp import render_interp
from polygrad.runtime.interp import InterpRuntime

BACKEND = Backend(
    target=Target("INTERP"),
    compile=lambda kernels: [render_interp(name, linear) for name, linear in kernels],
    open=InterpRuntime,
    optimized=False,
)
