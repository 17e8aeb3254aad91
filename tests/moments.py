"""Ctrl-C at a chosen moment: between which two instructions of Python a signal comes, for tests.

A signal is handled where the interpreter looks for one: at a function's start, after a call, at a loop's end.
`interrupt_at` makes one pending before an instruction, from C, so that it is handled where a real one is.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

Site = tuple[CodeType, int]  # an instruction
_ROOTS = ("polygrad", "contextlib", "concurrent", "threading", "tempfile", "subprocess", "queue", "functools")

_trace_function = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.py_object, ctypes.py_object)
# Trace functions in C, as one in Python would handle the signal itself.
_raise_signal = _trace_function(("PyErr_SetInterrupt", ctypes.pythonapi))
_do_nothing = _trace_function(("Py_IsInitialized", ctypes.pythonapi))


def _is_traced(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0] in _ROOTS


def sites(act: Callable[[], object]) -> list[Site]:
    """The instructions that `act` runs in this thread, each once, in the order in which it comes to them."""
    seen: dict[Site, None] = {}

    def local(frame: FrameType, event: str, _: Any) -> Any:
        seen[frame.f_code, frame.f_lasti] = None
        return local

    _traced(act, local)
    return list(seen)


def interrupt_at(act: Callable[[], object], site: Site, occurrence: int = 1) -> bool:
    """Call `act`, and let SIGINT be pending when it comes to an instruction for the n-th time. Whether
    KeyboardInterrupt came out of it."""
    left = occurrence
    code, offset = site

    def local(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if frame.f_code is code and frame.f_lasti == offset:
            left -= 1
            if not left:
                sys.settrace(_do_nothing)
                outer = frame.f_back
                while outer is not None:
                    outer.f_trace, outer = None, outer.f_back
                frame.f_trace = _raise_signal  # is called at the next instruction
                return _raise_signal
        return local

    def handler(*_: Any) -> None:
        nonlocal handled
        sys.settrace(None)
        if not handled:
            handled = True
            raise KeyboardInterrupt

    handled = False
    before = signal.signal(signal.SIGINT, handler)
    try:
        _traced(act, local)
        return False
    except KeyboardInterrupt:
        return True
    finally:
        signal.signal(signal.SIGINT, before)


def _traced(act: Callable[[], object], local: Any) -> None:
    def tracer(frame: FrameType, event: str, _: Any) -> Any:
        if not _is_traced(frame):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return local

    sys.settrace(tracer)
    try:
        act()
    finally:
        sys.settrace(None)
