"""A captured Program's driver for the CPU: a function `run` that calls the kernels, which the runtime links
it to. All threads call it.

void run(char **table, int64_t *variables, int64_t thread, int64_t threads, void **team) {
  char *pointers[N]; int64_t values[M];
  pointers[0] = table[i] + OFFSET; ... values[0] = thread; ... kernel0(pointers, values);
  if (threads > 1) team[0](team, threads);     between neighbours of which one is divided between threads
  if (thread == 0) { ... kernel1(pointers, values); ... }                  a kernel that is not
  ...
}
"""

from __future__ import annotations

from dataclasses import replace

from polygrad.engine.cache import DiskCache
from polygrad.renderer.llvm_compile import compile_ir
from polygrad.runtime.program import THREAD, THREADS, Launch, Program


def link_cpu(program: Program) -> Program:
    """`program` with a driver."""
    return replace(program, driver=compile_cached(program.target, driver_text(program)))


def compile_cached(target: str, text: str) -> bytes:
    """The object file of LLVM IR text, from the disk cache if it has it."""
    cache, key = DiskCache.default(), DiskCache.key(target, text)
    code = cache.get(key)
    if code is None:
        code = compile_ir(text)
        cache.put(key, code)
    return code


def driver_text(program: Program) -> str:
    """The driver as LLVM IR."""
    return _Driver(program).text()


_MEET = """define internal void @meet(ptr %team, i64 %threads) {
  %alone = icmp ult i64 %threads, 2
  br i1 %alone, label %done, label %wait
wait:
  %function = load ptr, ptr %team
  call void %function(ptr %team, i64 %threads)
  br label %done
done:
  ret void
}"""


class _Driver:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.lines: list[str] = []
        self.names = [v.name for v in program.variables]
        self.number = 0

    def text(self) -> str:
        program, lines = self.program, self.lines
        parallel = [program.kernels[x.kernel].parallel for x in program.launches]
        n_pointers = max((len(x.bindings) for x in program.launches), default=0)
        n_values = max((len(kernel.variables) for kernel in program.kernels), default=0)
        lines += [f"declare void @{kernel.name}(ptr, ptr)" for kernel in program.kernels]
        if any(parallel):
            lines.append(_MEET)
        lines += [
            "define void @run(ptr %table, ptr %variables, i64 %thread, i64 %threads, ptr %team) {",
            f"  %pointers = alloca [{n_pointers} x ptr]",
            f"  %values = alloca [{n_values} x i64]",
            "  %first = icmp eq i64 %thread, 0",
        ]
        before = True  # all threads are here
        for i, launch in enumerate(program.launches):
            together = parallel[i] or not any(parallel)
            if together and not before:
                lines += [f"  br label %all{i}", f"all{i}:"]
            if i and (parallel[i] or parallel[i - 1]):
                lines.append("  call void @meet(ptr %team, i64 %threads)")
            if before and not together:
                end = next((j for j in range(i, len(parallel)) if parallel[j]), len(parallel))
                lines += [f"  br i1 %first, label %alone{i}, label %all{end}", f"alone{i}:"]
            self._launch(launch)
            before = together
        if not before:
            lines += [f"  br label %all{len(parallel)}", f"all{len(parallel)}:"]
        return "\n".join([*lines, "  ret void", "}", ""])

    def _launch(self, launch: Launch) -> None:
        kernel = self.program.kernels[launch.kernel]
        for i, binding in enumerate(launch.bindings):
            entry, offset = self.program.place(binding)
            pointer = self._value(
                f"load ptr, ptr {self._value(f'getelementptr ptr, ptr %table, i64 {entry}')}"
            )
            if offset:
                pointer = self._value(f"getelementptr i8, ptr {pointer}, i64 {offset}")
            self._store("ptr", pointer, "%pointers", i)
        for i, name in enumerate(kernel.variables):
            if name in (THREAD, THREADS):
                given = f"%{name}"
            else:
                source = self._value(f"getelementptr i64, ptr %variables, i64 {self.names.index(name)}")
                given = self._value(f"load i64, ptr {source}")
            self._store("i64", given, "%values", i)
        self.lines.append(f"  call void @{kernel.name}(ptr %pointers, ptr %values)")

    def _value(self, text: str) -> str:
        self.number += 1
        self.lines.append(f"  %v{self.number} = {text}")
        return f"%v{self.number}"

    def _store(self, kind: str, value: str, where: str, position: int) -> None:
        at = self._value(f"getelementptr {kind}, ptr {where}, i64 {position}")
        self.lines.append(f"  store {kind} {value}, ptr {at}")
