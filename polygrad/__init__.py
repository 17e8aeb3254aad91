"""polygrad: a tensor compiler whose core is Python, for CPython and the browser alike.

    from polygrad import Tensor
    x = Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    (x @ x).sum().backward()
    print(x.grad.tolist())

Names load when they are first used: importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from typing import TYPE_CHECKING, Any

from polygrad import errors
from polygrad.dtype import DType, dtypes
from polygrad.errors import PolygradError

if TYPE_CHECKING:
    from polygrad import nn
    from polygrad.capture.jit import TinyJit
    from polygrad.capture.step import compile_step
    from polygrad.engine.counters import GlobalCounters
    from polygrad.engine.devices import Device
    from polygrad.helpers import Context, getenv
    from polygrad.nn.quantize import quantize
    from polygrad.runtime.threads import get_num_threads, set_num_threads
    from polygrad.tensor.batching import vmap
    from polygrad.tensor.core.downloads import fetch
    from polygrad.tensor.custom_gradient import checkpoint, custom_gradient
    from polygrad.tensor.jacobians import hessian, jacfwd, jacrev, jvp, vjp
    from polygrad.tensor.tensor import Tensor
    from polygrad.tensor.variable import Variable
    from polygrad.uop.node import UOp

if not getattr(sys, "_is_gil_enabled", lambda: True)():
    warnings.warn(
        "polygrad: expected a Python with its global interpreter lock, got one that runs without: use "
        "polygrad from one thread, or start Python with PYTHON_GIL=1",
        RuntimeWarning,
        stacklevel=2,
    )

__version__ = "0.1.0"
__all__ = [
    "Context",
    "DType",
    "Device",
    "GlobalCounters",
    "PolygradError",
    "Tensor",
    "TinyJit",
    "UOp",
    "Variable",
    "checkpoint",
    "compile_step",
    "custom_gradient",
    "dtypes",
    "errors",
    "fetch",
    "get_num_threads",
    "getenv",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "nn",
    "quantize",
    "set_num_threads",
    "vjp",
    "vmap",
]

# Where each name that loads late comes from; None: it is a module of its own.
_LATE = {
    "getenv": "polygrad.helpers",
    "fetch": "polygrad.tensor.core.downloads",
    "custom_gradient": "polygrad.tensor.custom_gradient",
    "checkpoint": "polygrad.tensor.custom_gradient",
    "GlobalCounters": "polygrad.engine.counters",
    "Context": "polygrad.helpers",
    "Tensor": "polygrad.tensor.tensor",
    "TinyJit": "polygrad.capture.jit",
    "Variable": "polygrad.tensor.variable",
    "Device": "polygrad.engine.devices",
    "compile_step": "polygrad.capture.step",
    "get_num_threads": "polygrad.runtime.threads",
    "set_num_threads": "polygrad.runtime.threads",
    "vmap": "polygrad.tensor.batching",
    **dict.fromkeys(["hessian", "jacfwd", "jacrev", "jvp", "vjp"], "polygrad.tensor.jacobians"),
    "UOp": "polygrad.uop.node",
    "quantize": "polygrad.nn.quantize",
    "nn": None,
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        hint = importlib.import_module("polygrad.missing").missing("polygrad", "module 'polygrad'", name)
        raise AttributeError(hint, name=name, obj=sys.modules[__name__])
    module = _LATE[name]
    member = (
        importlib.import_module("polygrad.nn")
        if module is None
        else getattr(importlib.import_module(module), name)
    )
    globals()[name] = member
    return member


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
