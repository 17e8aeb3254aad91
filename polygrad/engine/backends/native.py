"""Devices of this machine's processor: their code is compiled once and kept in the disk cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from polygrad.engine.cache import DiskCache
from polygrad.engine.link import driver_of
from polygrad.renderer.driver import Driver
from polygrad.runtime.program import Program

Compiler = Callable[[str], bytes]


def with_disk_cache(compile: Compiler, target: str) -> Compiler:
    """`compile` with the disk cache in front of it."""

    def compile_cached(source: str) -> bytes:
        cache, key = DiskCache.default(), DiskCache.key(target, source)
        code = cache.get(key)
        if code is None:
            code = compile(source)
            cache.put(key, code)
        return code

    return compile_cached


def linker(compile: Compiler, write: Callable[[Driver], str]) -> Callable[[Program], Program]:
    """The function that gives a Program its driver, whose source `write` makes."""
    return lambda program: replace(
        program, driver=with_disk_cache(compile, program.target)(write(driver_of(program)))
    )
