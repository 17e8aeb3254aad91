"""Device CC's own part: its compiler, its linker, and how kernels are compiled together."""

from __future__ import annotations

import gc
import importlib
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_compiler import needs_c_compiler

from polygrad import Tensor
from polygrad.engine import compile as engine_compile
from polygrad.engine.stats import stats
from polygrad.errors import CompileError, DeviceError
from polygrad.renderer.cstyle import c_compile as cc_compile
from polygrad.renderer.cstyle.c_compile import c_compiler, compile_c, host_macros, host_target
from polygrad.runtime.cpu.cc import CCRuntime, SharedObject
from polygrad.runtime.program import Binding, BufferSpec, Kernel, Launch, Program

pytestmark = needs_c_compiler

ADD = """
#include <stdint.h>
void one(char **buffers, int64_t *variables) { ((int64_t *)buffers[0])[0] += 1; }
void ten(char **buffers, int64_t *variables) { ((int64_t *)buffers[0])[0] += 10; }
"""


def program(*kernels: Kernel) -> Program:
    launches = tuple(Launch(i, (Binding(0),)) for i in range(len(kernels)))
    return Program("CC", "t", (BufferSpec(1, "int64", "state"),), kernels, launches)


def kernel(name: str, code: bytes) -> Kernel:
    return Kernel(name, code, 1, language="library", writes=(0,))


def test_kernels_that_were_compiled_together_are_one_library() -> None:
    runtime, code = CCRuntime(), compile_c(ADD)
    executable = runtime.load(program(kernel("one", code), kernel("ten", bytes(bytearray(code)))))
    assert len(runtime._linker.linked) == 1
    runtime._linker.linked.clear()
    gc.collect()
    handle = runtime.allocate(8)
    runtime.write(handle, 0, memoryview(bytes(8)))
    executable.run([handle], None, {})
    assert np.frombuffer(runtime.read(handle, 0, 8), np.int64) == 11, "it keeps its code"


def test_a_library_that_nobody_uses_is_unloaded() -> None:
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("this system does not say what is loaded")

    def loaded() -> int:
        return sum("polygrad-" in line and " r-xp " in line for line in maps.read_text().splitlines())

    before = loaded()
    library = SharedObject(compile_c(ADD), "kernels")
    assert loaded() == before + 1
    del library
    gc.collect()
    assert loaded() == before


@pytest.mark.parametrize("code", [b"", b"not a shared object"])
def test_code_that_is_no_library_is_a_compile_error(code: bytes) -> None:
    with pytest.raises(CompileError, match="kernel one: the shared object does not load on this machine"):
        CCRuntime().load(program(kernel("one", code)))


def test_a_kernel_that_a_library_lacks_is_a_compile_error() -> None:
    with pytest.raises(CompileError, match="it has no symbol two"):
        CCRuntime().load(program(kernel("two", compile_c(ADD))))


def test_a_programs_missing_kernels_are_compiled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_compile.DiskCache, "default", lambda: engine_compile.DiskCache(None))
    engine_compile._kernels.clear()
    seen: list[str] = []
    backend_module = importlib.import_module("polygrad.engine.backends.cc")
    monkeypatch.setattr(backend_module, "compile_c", lambda source: seen.append(source) or compile_c(source))
    x = Tensor(np.arange(24, dtype=np.float32).reshape(4, 6), device="CC").realize()
    before = stats.kernels_compiled
    parts = [(x + i).sum(i % 2).contiguous() for i in range(8)]
    Tensor.realize(*parts)
    made = stats.kernels_compiled - before
    assert made >= 4 and len(seen) == -(-made // backend_module._KERNELS_TOGETHER)
    for i, part in enumerate(parts):
        np.testing.assert_array_equal(part.numpy(), (x.numpy() + i).sum(i % 2))


# --- the compiler


def test_the_target_is_what_the_compiler_says_of_the_machine() -> None:
    target, macros = host_target(), host_macros()
    assert target.name == "CC" and target.threads >= 4
    assert target.fma == ("__FMA__" in macros or "__aarch64__" in macros)
    assert target.simd_bytes == (64 if "__AVX512DQ__" in macros else 32 if "__AVX2__" in macros else 16)


def test_without_a_compiler_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(
        DeviceError, match=r"a C compiler \(cc, clang or gcc\) was not found on the PATH.*install GCC"
    ):
        c_compiler()
    monkeypatch.setenv("CC", "no-such-compiler -m64")
    with pytest.raises(DeviceError, match="the C compiler that CC names, no-such-compiler"):
        c_compiler()


def test_a_compiler_with_options_is_run_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", f"{c_compiler()[0]} -DANSWER=42")
    assert SharedObject(compile_c("int answer = ANSWER;"), "answer").address("answer")


@pytest.mark.skipif(os.name == "nt", reason="the compiler is a shell script")
def test_the_compiler_runs_without_a_shell_in_a_folder_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The words of CC are taken as they are, and whatever the compiler writes goes with its folder."""
    here, script = tmp_path / "here", tmp_path / "a b; touch shell" / "cc"
    for folder in (here, script.parent):
        folder.mkdir()
    script.write_text(
        "#!/bin/sh\n"
        f'printf "%s\\n" "$PWD" "$TMPDIR" "$@" > {shlex.quote(str(tmp_path / "seen"))}\n'
        f'echo x > left; echo x > "$TMPDIR/left too"; exec {c_compiler()[0]} "$@"\n'
    )
    script.chmod(0o755)
    word = "-DA=$(touch shell)`touch shell`;touch shell&&touch shell|touch shell"
    monkeypatch.setenv("CC", shlex.join([str(script), word]))
    monkeypatch.chdir(here)
    SharedObject(compile_c(ADD), "test").address("one")
    folder, temporary, first, *_ = (tmp_path / "seen").read_text().splitlines()
    assert folder == temporary and first == word
    assert Path(folder).name.startswith("polygrad-") and not Path(folder).exists()
    assert os.listdir(here) == [] and os.listdir(script.parent) == ["cc"]


def test_an_interrupted_compilation_leaves_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def run(command: list[str], cwd: str, **options: Any) -> None:
        assert not options.get("shell") and os.listdir(cwd) == []
        Path(cwd, "part.o").touch()
        seen.append(cwd)
        raise KeyboardInterrupt

    monkeypatch.setattr(cc_compile.subprocess, "run", run)
    with pytest.raises(KeyboardInterrupt):
        compile_c(ADD)
    assert len(seen) == 1 and not os.path.exists(seen[0])


def test_a_compiler_that_does_not_run_is_a_device_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake = tmp_path / "cc"
    fake.write_text("#!/bin/sh\necho no such processor >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CC", str(fake))
    with pytest.raises(DeviceError, match="does not know this processor: no such processor"):
        cc_compile.host_macros.__wrapped__()


def test_the_device_is_not_available_without_a_compiler() -> None:
    code = """
from polygrad import Device, errors
print("CC" in Device.available())
try:
    Device["CC"]
except errors.DeviceError as e:
    print(e)
"""
    root = Path(cc_compile.__file__).parents[2]
    env = {k: v for k, v in os.environ.items() if k != "CC"} | {"PATH": "", "PYTHONPATH": str(root)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert done.stdout.startswith("False\ndevice CC: a C compiler"), done.stderr
