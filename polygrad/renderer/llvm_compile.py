"""LLVM IR text -> an object file for this machine's processor, through llvmlite.

Speed of compilation decides everything here. The text comes in SSA form, unrolled and in vectors, so no IR
pass runs at all: only code generation at its second level, whose own passes (loop strength reduction, machine
CSE and LICM, scheduling, register allocation) do what is left to do. `compile_ir` may be called from several
threads at once: every call has a context of its own and every thread a target machine, and the C functions are
called below llvmlite's global lock, which would make the threads wait for each other (LLVM itself needs no lock
for separate contexts). `submit` compiles in the background while the caller goes on writing kernels.

Must not know: UOps, devices, caches.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import functools
import hashlib
import os
import threading
from typing import Any

from polygrad.codegen.target import Target
from polygrad.errors import CompileError, DeviceError
from polygrad.helpers import env_int

_OPT_LEVEL = 2
_RAW_FUNCTIONS = (
    "LLVMPY_ContextCreate", "LLVMPY_ContextDispose", "LLVMPY_ParseAssembly", "LLVMPY_VerifyModule",
    "LLVMPY_DisposeModule", "LLVMPY_TargetMachineEmitToMemory", "LLVMPY_GetBufferStart", "LLVMPY_GetBufferSize",
    "LLVMPY_DisposeMemoryBuffer", "LLVMPY_DisposeString",
)  # fmt: skip


@functools.cache
def llvm() -> Any:
    """`llvmlite.binding`, ready for this machine. Raises DeviceError when it is not installed."""
    try:
        import llvmlite.binding as binding
    except ImportError as e:
        raise DeviceError(f"device CPU: expected the package llvmlite, got {e}; pip install llvmlite") from e
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


@functools.cache
def _host() -> tuple[str, str, str, frozenset[str]]:
    """Triple, processor name, feature string and the features that are there."""
    features = llvm().get_host_cpu_features()
    present = frozenset(name for name, there in features.items() if there)
    return llvm().get_process_triple(), llvm().get_host_cpu_name(), features.flatten(), present


def _is_arm() -> bool:
    return _host()[0].startswith(("aarch64", "arm64"))


@functools.cache
def host_target() -> Target:
    """What this machine's processor can do, as the Target of device CPU."""
    _, _, _, features = _host()
    if _is_arm():
        return Target("CPU", simd_bytes=16, registers=32, fma=True)
    fma = "fma" in features
    if {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= features:
        return Target("CPU", simd_bytes=64, registers=32, fma=fma)
    return Target("CPU", simd_bytes=32 if "avx2" in features else 16, registers=16, fma=fma)


@functools.cache
def host_has_half() -> bool:
    """Whether float and float16 are converted by instructions; else LLVM would call functions nobody provides."""
    return _is_arm() or "f16c" in _host()[3]


@functools.cache
def host_key() -> str:
    """Names what object files from here depend on: processor, features, LLVM. Part of a cache's key."""
    triple, name, features, _ = _host()
    version = ".".join(str(x) for x in llvm().llvm_version_info)
    return f"{triple}-{name}-{hashlib.sha256(features.encode()).hexdigest()[:12]}-llvm{version}-O{_OPT_LEVEL}"


def make_target_machine() -> Any:
    """A new llvmlite TargetMachine for this processor. Not to be shared between threads."""
    triple, name, features, _ = _host()
    return (
        llvm()
        .Target.from_triple(triple)
        .create_target_machine(cpu=name, features=features, opt=_OPT_LEVEL, reloc="pic", codemodel="default")
    )


@functools.cache
def _raw() -> Any:
    """llvmlite's C library without its lock (with it, where a later llvmlite hides the library)."""
    lib = llvm().ffi.lib
    for name in _RAW_FUNCTIONS:
        getattr(lib, name)  # llvmlite has declared the argument types by now
    return getattr(lib, "_lib", lib)


class _Thread(threading.local):
    machine: Any = None


_thread = _Thread()


def compile_ir(text: str) -> bytes:
    """The object file of a module of LLVM IR. Thread-safe. `POLYGRAD_VERIFY=1` has LLVM check the module first.

    Raises CompileError when LLVM does not take the text.
    """
    if _thread.machine is None:
        _thread.machine = make_target_machine()
    lib, error = _raw(), ctypes.c_char_p()
    context = lib.LLVMPY_ContextCreate()
    module = None
    try:
        module = lib.LLVMPY_ParseAssembly(context, text.encode(), ctypes.byref(error))
        if not module:
            raise _refused(lib, "parse", error, text)
        if env_int("POLYGRAD_VERIFY", 0) and lib.LLVMPY_VerifyModule(module, ctypes.byref(error)):
            raise _refused(lib, "verify", error, text)
        buffer = lib.LLVMPY_TargetMachineEmitToMemory(_thread.machine, module, 1, ctypes.byref(error))
        if not buffer:
            raise _refused(lib, "compile", error, text)
        code = ctypes.string_at(lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer))
        lib.LLVMPY_DisposeMemoryBuffer(buffer)
        return code
    finally:
        if module:
            lib.LLVMPY_DisposeModule(module)
        lib.LLVMPY_ContextDispose(context)


def _refused(lib: Any, what: str, error: ctypes.c_char_p, text: str) -> CompileError:
    reason = (error.value or b"no reason given").decode(errors="replace").strip()
    if error.value is not None:
        lib.LLVMPY_DisposeString(error)
    head = "\n".join(text.splitlines()[:200])
    return CompileError(f"internal: LLVM could not {what} a kernel: expected valid LLVM IR, got: {reason}\n{head}")


def submit(text: str) -> concurrent.futures.Future[bytes]:
    """`compile_ir` in the background, on as many threads as there are processors."""
    return _pool().submit(compile_ir, text)


@functools.cache
def _pool() -> concurrent.futures.ThreadPoolExecutor:
    return concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1, "polygrad-llvm")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not live through a fork


def assembly(text: str) -> str:
    """The assembly of a module of LLVM IR, to be read."""
    module = llvm().parse_assembly(text, llvm().create_context())
    module.verify()
    return str(make_target_machine().emit_assembly(module))
