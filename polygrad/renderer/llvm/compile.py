"""LLVM IR text -> an object file for this machine's processor, through llvmlite.

Compile time matters most here. The text is in SSA form, unrolled and vectorised, so no IR pass runs. Code
generation at its second level has the passes that are still needed: loop strength reduction, machine CSE and
LICM, scheduling, register allocation. `compile_ir` may be called from several threads at once: every call has
a context of its own and every thread a target machine. The C functions are called without llvmlite's global
lock, for which threads would wait; LLVM needs no lock for separate contexts. `submit` compiles in the
background while the caller writes the next kernels.

Must not know: UOps, devices, caches.
"""

from __future__ import annotations

import concurrent.futures
import ctypes
import functools
import hashlib
import re
import threading
from typing import Any

import llvmlite.binding as llvm

from polygrad.background import compilers
from polygrad.codegen.target import Target
from polygrad.errors import CompileError
from polygrad.helpers import env_int
from polygrad.renderer.host import cache_sizes, code_threads, may_use_tiles
from polygrad.renderer.llvm.x86_products import TILE_FUNCTIONS, X86_DOTS, X86_MATMULS

_OPT_LEVEL = 2
_ASSEMBLY, _OBJECT = 0, 1  # LLVMCodeGenFileType
_RAW_FUNCTIONS = (
    "LLVMPY_ContextCreate", "LLVMPY_ContextDispose", "LLVMPY_ParseAssembly", "LLVMPY_VerifyModule",
    "LLVMPY_DisposeModule", "LLVMPY_TargetMachineEmitToMemory", "LLVMPY_GetBufferStart",
    "LLVMPY_GetBufferSize", "LLVMPY_DisposeMemoryBuffer", "LLVMPY_DisposeString",
)  # fmt: skip


@functools.cache
def _host() -> tuple[str, str, str]:
    """Triple, processor name and feature string."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def llvm_version() -> str:
    """Of the LLVM in llvmlite: 20.1.8."""
    return ".".join(map(str, llvm.llvm_version_info))


def processor_name() -> str:
    """This machine's processor, in LLVM's words: znver4."""
    return _host()[1]


@functools.cache
def host_features() -> frozenset[str]:
    """What this machine's processor has, in LLVM's words (`avx2`, `fma`, `f16c`, `neon`)."""
    return frozenset(x[1:] for x in _host()[2].split(",") if x.startswith("+"))


def _is_arm() -> bool:
    return _host()[0].startswith(("aarch64", "arm64"))


@functools.cache
def host_target() -> Target:
    """What this machine's processor can do, as the Target of device CPU."""
    triple, name, features = _host()
    digest = hashlib.sha256(features.encode()).hexdigest()[:12]
    simd, registers, fma = 16, 16, "fma" in host_features()
    if _is_arm():
        registers, fma = 32, True
    elif {"avx512f", "avx512vl", "avx512bw", "avx512dq"} <= host_features():
        simd, registers = 64, 32
    elif "avx2" in host_features():
        simd = 32
    return Target(
        "CPU",
        simd,
        registers,
        fma,
        scalar_fma=fma,
        dots=frozenset(
            kinds for kinds, dot in X86_DOTS.items() if simd == 64 and dot.feature in host_features()
        ),
        matrices=frozenset(
            kinds
            for kinds, matmul in X86_MATMULS.items()
            if simd == 64 and {"amx-tile", matmul.feature} <= host_features() and may_use_tiles()
        ),
        threads=code_threads(),
        cache=cache_sizes(),
        processor=f"{triple}-{name}-{digest}-llvm{llvm_version()}-O{_OPT_LEVEL}",
    )


def host_has_half() -> bool:
    """Whether instructions convert float16. Without them LLVM calls functions that nothing provides."""
    return _is_arm() or "f16c" in host_features()


def _make_target_machine() -> Any:
    triple, name, features = _host()
    target = llvm.Target.from_triple(triple)
    # ORC maps code and constants apart. Once wasmtime has reserved its gigabytes they may lie further from
    # each other than the 32-bit relocations of the small code model reach, and LLVM aborts the process.
    return target.create_target_machine(name, features, opt=_OPT_LEVEL, reloc="static", codemodel="large")


@functools.cache
def _raw() -> Any:
    """llvmlite's C library without its lock, or with it where a later llvmlite hides the library."""
    lib = llvm.ffi.lib
    for name in _RAW_FUNCTIONS:
        getattr(lib, name)  # llvmlite has declared the argument types by now
    return getattr(lib, "_lib", lib)


class _Thread(threading.local):
    machine: Any = None


_thread = _Thread()


def compile_ir(text: str) -> bytes:
    """The object file of a module of LLVM IR. Thread-safe. `POLYGRAD_VERIFY=1` has LLVM check it first.

    Raises CompileError when LLVM does not take the text.
    """
    return _emit(text, _OBJECT)


def assembly_of(text: str) -> str:
    """The assembly that this machine's processor runs for a module of LLVM IR. Raises CompileError."""
    return _emit(text, _ASSEMBLY).decode(errors="replace")


def _emit(text: str, kind: int) -> bytes:
    """A module of LLVM IR compiled to a file of a `kind`, by LLVM's number."""
    if _thread.machine is None:
        _thread.machine = _make_target_machine()
    lib, error = _raw(), ctypes.c_char_p()
    context = lib.LLVMPY_ContextCreate()
    module = None
    try:
        module = lib.LLVMPY_ParseAssembly(context, _declare(text).encode(), ctypes.byref(error))
        if not module:
            raise _explain_refusal(lib, "parse", error, text)
        if env_int("POLYGRAD_VERIFY", 0) and lib.LLVMPY_VerifyModule(module, ctypes.byref(error)):
            raise _explain_refusal(lib, "verify", error, text)
        buffer = lib.LLVMPY_TargetMachineEmitToMemory(_thread.machine, module, kind, ctypes.byref(error))
        if not buffer:
            raise _explain_refusal(lib, "compile", error, text)
        code = ctypes.string_at(lib.LLVMPY_GetBufferStart(buffer), lib.LLVMPY_GetBufferSize(buffer))
        lib.LLVMPY_DisposeMemoryBuffer(buffer)
        return code
    finally:
        if module:
            lib.LLVMPY_DisposeModule(module)
        lib.LLVMPY_ContextDispose(context)


def _declare(text: str) -> str:
    """`text` with declarations of the products that it calls. The operands of dot products of integers are
    those of older versions of LLVM; newer versions convert such declarations."""
    for name, type_ in TILE_FUNCTIONS.items():
        if name in text:
            result, operands = type_.split(" ", 1)
            text += f"declare {result} @{name}{operands}\n"
    called = {
        dot: set(re.findall(rf"@{re.escape(dot.name)}\.(\d+)", text))
        for dot in X86_DOTS.values()
        if dot.name in text
    }
    for dot, widths in called.items():
        for bits in sorted(widths):
            total, operand = dot.types(int(bits) // 32)
            text += f"declare {total} @{dot.name}.{bits}({total}, {operand}, {operand})\n"
    return text


def _explain_refusal(lib: Any, what: str, error: ctypes.c_char_p, text: str) -> CompileError:
    reason = (error.value or b"no reason given").decode(errors="replace").strip()
    if error.value is not None:
        lib.LLVMPY_DisposeString(error)
    head = "\n".join(text.splitlines()[:200])
    return CompileError(f"internal: LLVM could not {what} a kernel: {reason}\n{head}")


def submit(text: str) -> concurrent.futures.Future[bytes]:
    """`compile_ir` in the background."""
    return compilers().submit(compile_ir, text)


@functools.cache
def warm_up() -> None:
    """Initialise LLVM in the background: its first function takes 40 ms."""
    submit("define void @warm_up(ptr %p) {\n  store <4 x float> zeroinitializer, ptr %p\n  ret void\n}\n")
