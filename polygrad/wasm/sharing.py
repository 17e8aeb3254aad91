"""The kind of memory that a module imports: shared, so that threads can run it, or of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from polygrad.wasm.reader import read_module
from polygrad.wasm.types import MemoryType


def with_shared_memory(code: bytes, maximum: int) -> bytes:
    """The module `code`, whose imported memory is shared and has at most `maximum` pages. Raises
    CompileError."""
    return _with_memory(code, lambda memory: MemoryType(memory.minimum, maximum, True))


def with_own_memory(code: bytes) -> bytes:
    """The module `code`, whose imported memory is not shared. One thread runs it as before. Raises
    CompileError."""
    return _with_memory(code, lambda memory: MemoryType(memory.minimum))


def _with_memory(code: bytes, change: Callable[[MemoryType], MemoryType]) -> bytes:
    module = read_module(code)
    imports = tuple(
        replace(i, type=change(i.type)) if isinstance(i.type, MemoryType) else i for i in module.imports
    )
    return replace(module, imports=imports).to_bytes()
