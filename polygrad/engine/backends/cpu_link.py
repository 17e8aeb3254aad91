"""A captured Program's driver for the CPU: a function `run` that calls the kernels, which the runtime links
it to.

void run(char **table, int64_t *variables) {
  char *pointers[N]; int64_t values[M];
  pointers[0] = table[i] + OFFSET; ... kernel0(pointers, values);
  ...
}
"""

from __future__ import annotations

from dataclasses import replace

from polygrad.engine.cache import DiskCache
from polygrad.renderer.llvm_compile import compile_ir
from polygrad.runtime.program import Program


def link_cpu(program: Program) -> Program:
    """`program` with a driver."""
    text = driver_text(program)
    cache, key = DiskCache.default(), DiskCache.key(program.target, text)
    code = cache.get(key)
    if code is None:
        code = compile_ir(text)
        cache.put(key, code)
    return replace(program, driver=code)


def driver_text(program: Program) -> str:
    """The driver as LLVM IR. Between kernels that depend on each other is where threads will have to meet."""
    names = [v.name for v in program.variables]
    n_pointers = max((len(x.bindings) for x in program.launches), default=0)
    lines = [f"declare void @{kernel.name}(ptr, ptr)" for kernel in program.kernels]
    lines += [
        "define void @run(ptr %table, ptr %variables) {",
        f"  %pointers = alloca [{n_pointers} x ptr]",
        f"  %values = alloca [{len(names)} x i64]",
    ]
    number = 0

    def value(text: str) -> str:
        nonlocal number
        number += 1
        lines.append(f"  %v{number} = {text}")
        return f"%v{number}"

    for launch in program.launches:
        kernel = program.kernels[launch.kernel]
        for i, binding in enumerate(launch.bindings):
            entry, offset = program.place(binding)
            pointer = value(f"load ptr, ptr {value(f'getelementptr ptr, ptr %table, i64 {entry}')}")
            if offset:
                pointer = value(f"getelementptr i8, ptr {pointer}, i64 {offset}")
            lines.append(f"  store ptr {pointer}, ptr {value(f'getelementptr ptr, ptr %pointers, i64 {i}')}")
        for i, name in enumerate(kernel.variables):
            source = value(f"getelementptr i64, ptr %variables, i64 {names.index(name)}")
            loaded = value(f"load i64, ptr {source}")
            lines.append(f"  store i64 {loaded}, ptr {value(f'getelementptr i64, ptr %values, i64 {i}')}")
        lines.append(f"  call void @{kernel.name}(ptr %pointers, ptr %values)")
    return "\n".join([*lines, "  ret void", "}", ""])
