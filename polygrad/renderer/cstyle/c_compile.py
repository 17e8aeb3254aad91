"""C -> a shared object for this machine's processor, through the system's C compiler.

The compiler is the environment's `CC`, else the first of `cc`, `clang` and `gcc`. The compiler also tells
what the machine can do. No option changes results: there is no fast math, and no multiply-adds are fused
other than those that the kernel asks for.

Must not know: UOps, devices, caches.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile

from polygrad.codegen.target import Target
from polygrad.errors import CompileError, DeviceError
from polygrad.renderer.host import cache_sizes, code_threads

_COMPILERS = ("cc", "clang", "gcc")
_FLAGS = (
    "-O3", "-march=native", "-std=gnu11", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing",
    "-fno-math-errno", "-fno-trapping-math", "-fPIC", "-shared", "-pipe", "-w", "-x", "c",
)  # fmt: skip
_DEFINED = re.compile(r"#define (\w+) ?(.*)")
_ERROR = re.compile(r"stdin[^\s:]*:(\d+):(?:\d+:)? (?:fatal )?error: (.*)")


def c_compiler() -> list[str]:
    """The command that compiles C, in words. Raises DeviceError where there is none."""
    asked = shlex.split(os.environ.get("CC", ""))
    for name in [asked[0]] if asked else _COMPILERS:
        path = shutil.which(name)
        if path is not None:
            return [os.path.abspath(path), *asked[1:]]
    compiler = f"the C compiler that CC names, {asked[0]}" if asked else "a C compiler (cc, clang or gcc)"
    raise DeviceError(
        f"device CC: {compiler} was not found on the PATH: install GCC 12 or Clang "
        "(Debian: apt install gcc; macOS: xcode-select --install), or set CC to one"
    )


def compiler_version() -> str:
    """The compiler's name, version and path. Raises DeviceError where there is none."""
    command = c_compiler()
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, errors="replace")
    first, _, _ = done.stdout.partition("\n")
    return f"{first.strip() or 'a C compiler'} ({command[0]})"


@functools.cache
def host_macros() -> dict[str, str]:
    """The macros that the compiler defines for this machine. Raises DeviceError."""
    command = [*c_compiler(), "-march=native", "-dM", "-E", "-x", "c", os.devnull]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    except OSError as e:
        raise DeviceError(f"device CC: {command[0]} does not run: {e}: set CC to another compiler") from e
    if done.returncode:
        raise DeviceError(
            f"device CC: {command[0]} does not know this processor: {done.stderr.strip()}: set CC to "
            "a newer GCC or Clang"
        )
    matches = (_DEFINED.fullmatch(line) for line in done.stdout.splitlines())
    return {match[1]: match[2] for match in matches if match}


def host_has_half() -> bool:
    """Whether instructions convert `_Float16`."""
    macros = host_macros()
    return "__FLT16_MAX__" in macros and ("__F16C__" in macros or "__aarch64__" in macros)


@functools.cache
def host_target() -> Target:
    """What this machine's processor can do, as the Target of device CC."""
    macros = host_macros()
    simd, registers, fma = 16, 16, "__FMA__" in macros
    if "__aarch64__" in macros:
        registers, fma = 32, True
    elif all(f"__AVX512{part}__" in macros for part in ("F", "VL", "BW", "DQ")):
        simd, registers = 64, 32
    elif "__AVX2__" in macros:
        simd = 32
    text = "\n".join(f"{name} {value}" for name, value in sorted(macros.items()))
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return Target(
        "CC",
        simd,
        registers,
        fma,
        scalar_fma=fma,
        threads=code_threads(),
        cache=cache_sizes(),
        processor=f"{digest}-{hashlib.sha256(' '.join(_FLAGS).encode()).hexdigest()[:8]}",
    )


def compile_c(source: str) -> bytes:
    """The shared object of C source. May be called from several threads at once.

    Raises CompileError, with the line, when the compiler rejects it.
    """
    return _compile(source, "kernels.so", "-lm")


def assembly_of(source: str) -> str:
    """The assembly that the compiler makes of C source. Raises CompileError."""
    return _compile(source, "kernels.s", "-S", "-fno-asynchronous-unwind-tables").decode(errors="replace")


def _compile(source: str, name: str, *options: str) -> bytes:
    """Compile C source with more `options`; the contents of its output file `name`. All files that the
    compiler makes are in a folder of their own, which is deleted. Raises CompileError."""
    with tempfile.TemporaryDirectory(prefix="polygrad-") as folder:
        path = os.path.join(folder, name)
        command = [*c_compiler(), *_FLAGS, "-", "-o", path, *options]
        variables = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(
            command, cwd=folder, env=variables, input=source, capture_output=True, text=True, errors="replace"
        )
        if done.returncode:
            raise _explain_refusal(source, done.stderr)
        with open(path, "rb") as file:
            return file.read()


def _explain_refusal(source: str, messages: str) -> CompileError:
    lines, error = source.splitlines(), _ERROR.search(messages)
    if error is None or int(error[1]) > len(lines):
        return CompileError(f"internal: the C compiler could not compile a kernel: {messages.strip()}")
    number = int(error[1])
    return CompileError(
        f"internal: the C compiler could not compile a kernel: {error[2]}\n"
        f"line {number}: {lines[number - 1].strip()}\n{messages.strip()}"
    )
