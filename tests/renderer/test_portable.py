"""PortableCBuilder passes the tests of CBuilder, operation by operation: without the options that CBuilder's
text needs, without a warning, and under the sanitizer of undefined behaviour."""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from c_programs import STRICT
from renderer import test_c
from renderer.c_functions import AVX512, Functions
from renderer.llvm_functions import FLOATS, INTS

from polygrad.codegen.target import Target
from polygrad.dtype import DType, dtypes
from polygrad.engine.backends.native import with_disk_cache
from polygrad.renderer.cstyle.base import FunctionText
from polygrad.renderer.cstyle.portable import PRELUDE, PortableCBuilder

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="this machine has no gcc")

_BEFORE = f"""\
#define FUSED 1
#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#pragma GCC diagnostic ignored "-Wpsabi"
{PRELUDE}"""


class _Wrapped(PortableCBuilder):
    """Its kernel is followed by one of CBuilder's signature, which calls it."""

    def begin(self, name: str, params: Sequence[DType], variables: Sequence[str]) -> Any:
        assert not variables
        types = [f"({self._space(i)}{self.memory_type(d)} *)" for i, d in enumerate(params)]
        given = ", ".join(f"{t}(void *)buffers[{i}]" for i, t in enumerate(types))
        self._wrapper = (
            f"void {name}(char **buffers, int64_t *variables);\n"
            f"void {name}(char **buffers, int64_t *variables) {{\n  (void)variables;\n"
            f"  portable_{name}({given});\n}}\n"
        )
        return super().begin(f"portable_{name}", params, variables)

    def finish(self) -> FunctionText:
        function = super().finish()
        return FunctionText(function.preamble, function.text + "\n" + self._wrapper)


class _Portable(Functions):
    option = ""  # of the compiler

    def __init__(self, target: Target = AVX512, native_half: bool = False) -> None:
        super().__init__(target)

    def builder(self) -> PortableCBuilder:
        return _Wrapped(self.target, (0,))

    def compile(self, source: str) -> bytes:
        """Compile with every warning an error. What was compiled without one is kept."""
        options = ["-O1", "-march=native", "-mprefer-vector-width=512", *STRICT, *self.option.split()]
        if self.option:  # gcc 12 warns of casts that its sanitizer has rewritten
            options += ["-Wno-conversion"]
        compiled = with_disk_cache(lambda text: _compile(text, options), f"{_version()} {options}")
        return compiled(_BEFORE + source)


@functools.cache
def _version() -> str:
    """Of gcc, and what it takes this processor for."""
    command = ["gcc", "-v", "-march=native", "-E", "-x", "c", "/dev/null"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stderr


def _compile(source: str, options: Sequence[str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="polygrad-") as folder:
        path = Path(folder, "kernels.so")
        command = ["gcc", *options, "-fPIC", "-shared", "-x", "c", "-", "-o", str(path), "-lm"]
        done = subprocess.run(command, input=source, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[:3000]
        return path.read_bytes()


@pytest.fixture
def portable(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Any:
    """Tests of CBuilder test PortableCBuilder, compiled with an option."""

    def run(test: Callable[..., None], *arguments: Any, options: str) -> None:
        monkeypatch.setattr(_Portable, "option", options)
        test(*arguments)
        assert "runtime error" not in capfd.readouterr().err

    monkeypatch.setattr(test_c, "Functions", _Portable)
    return run


_TESTS: list[tuple[Callable[..., None], tuple[Any, ...]]] = [
    *((test_c.test_arithmetic, (d,)) for d in (dtypes.bool, *INTS, *FLOATS)),
    *((test_c.test_division_by_constants_and_shifts, (d,)) for d in INTS),
    *((test_c.test_selection_and_lanes, (d,)) for d in dtypes.all),
    *((test_c.test_masked_loads_read_nothing_where_the_mask_is_false, (d,)) for d in dtypes.all),
    *((test_c.test_constants, (d,)) for d in dtypes.all),
    *((test_c.test_reduce_halves_until_one_is_left, (d,)) for d in (dtypes.bool, *INTS, *FLOATS)),
    *((test_c.test_cast, (d, False)) for d in dtypes.all),
    (test_c.test_every_float16_converts_both_ways_and_rounds_once, (False,)),
    (test_c.test_a_register_is_read_before_it_is_written, ()),
    (test_c.test_a_load_stays_before_a_store_to_the_same_place, ()),
]
_QUICK = {dtypes.int8, dtypes.int32, dtypes.float32}  # each test takes a compiler a second
_PARAMETERS = [
    pytest.param(t, a, marks=() if _QUICK.issuperset(a[:1]) else pytest.mark.slow) for t, a in _TESTS
]
_IDS = [f"{t.__name__.removeprefix('test_')}-{'-'.join(map(str, a))}" for t, a in _TESTS]
_SANITIZED = "-fsanitize=undefined,float-cast-overflow"


@pytest.mark.parametrize(
    "sanitizer", ["", pytest.param(_SANITIZED, marks=pytest.mark.slow)], ids=["", "ubsan"]
)
@pytest.mark.parametrize(("test", "arguments"), _PARAMETERS, ids=_IDS)
def test_as_c(portable: Any, test: Callable[..., None], arguments: tuple[Any, ...], sanitizer: str) -> None:
    portable(test, *arguments, options=sanitizer)
