"""A driver as LLVM IR, which refers to its kernels by name.

void run(char **table, int64_t *variables, int64_t thread, int64_t threads, void **team) {
  char *pointers[N]; int64_t values[M];
  if (thread == 0) { pointers[0] = table[i] + OFFSET; ... kernel0(pointers, values); }        serial calls
  if (threads > 1) team[0](team, threads);                                          where a call has a barrier
  ... values[0] = thread; ... kernel1(pointers, values);                                       a parallel call
  ... parts(kernel2, pointers, values, ...);                                                one that has parts
}

For one thread `parts` calls the kernel once, else it is the team's `run_parts` (see `runtime/program.py`).
"""

from __future__ import annotations

from polygrad.helpers import PART, PARTS, PARTS_PER_THREAD, THREAD, THREADS
from polygrad.renderer.driver import Driver, DriverCall

_BARRIER = """define internal void @barrier(ptr %team, i64 %threads) {
  %single = icmp ult i64 %threads, 2
  br i1 %single, label %done, label %wait
wait:
  %function = load ptr, ptr %team
  call void %function(ptr %team, i64 %threads)
  br label %done
done:
  ret void
}"""
_PARTS = """define internal void @parts(ptr %kernel, ptr %pointers, ptr %values, i64 %place, i64 %number,
                            i64 %thread, i64 %threads, ptr %team) {
  %single = icmp ult i64 %threads, 2
  br i1 %single, label %whole, label %shared
whole:
  call void %kernel(ptr %pointers, ptr %values)
  ret void
shared:
  %entry = getelementptr ptr, ptr %team, i64 3
  %function = load ptr, ptr %entry
  call void %function(ptr %kernel, ptr %pointers, ptr %values, i64 %place, i64 %number,
                      i64 %thread, i64 %threads, ptr %team)
  ret void
}"""
# The values of THREAD_VARIABLES in a call, without those that change from part to part.
_GIVEN = {THREAD: "%thread", THREADS: "%threads", PART: "0", PARTS: "%parts"}


def llvm_driver(driver: Driver) -> str:
    """The driver's module as text."""
    return _DriverWriter(driver).text()


class _DriverWriter:
    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.lines: list[str] = []
        self.number = 0
        self.calls_with_parts = 0

    def text(self) -> str:
        driver, lines = self.driver, self.lines
        n_pointers = max((len(call.pointers) for call in driver.calls), default=0)
        n_values = max((len(call.values) for call in driver.calls), default=0)
        lines += [f"declare void @{name}(ptr, ptr)" for name in driver.kernels]
        if any(call.barrier for call in driver.calls):
            lines.append(_BARRIER)
        if any(call.has_parts for call in driver.calls):
            lines.append(_PARTS)
        lines += [
            "define void @run(ptr %table, ptr %variables, i64 %thread, i64 %threads, ptr %team) {",
            f"  %pointers = alloca [{n_pointers} x ptr]",
            f"  %values = alloca [{n_values} x i64]",
            "  %is.thread0 = icmp eq i64 %thread, 0",
            "  %is.single = icmp ult i64 %threads, 2",
            f"  %all.parts = mul i64 %threads, {PARTS_PER_THREAD}",
            "  %parts = select i1 %is.single, i64 1, i64 %all.parts",
        ]
        serial_block = ""  # the number of the open block that only thread 0 runs
        for i, call in enumerate(driver.calls):
            is_serial = driver.parallel and not call.parallel
            if serial_block and (call.barrier or not is_serial):
                serial_block = self._end_serial(serial_block)
            if call.barrier:
                lines.append("  call void @barrier(ptr %team, i64 %threads)")
            if is_serial and not serial_block:
                serial_block = f"{i}"
                lines += [f"  br i1 %is.thread0, label %serial{i}, label %all{i}", f"serial{i}:"]
            self._call(call)
        if serial_block:
            self._end_serial(serial_block)
        return "\n".join([*lines, "  ret void", "}", ""])

    def _end_serial(self, block: str) -> str:
        self.lines += [f"  br label %all{block}", f"all{block}:"]
        return ""

    def _call(self, call: DriverCall) -> None:
        for i, pointer in enumerate(call.pointers):
            address = self._value(
                f"load ptr, ptr {self._value(f'getelementptr ptr, ptr %table, i64 {pointer.entry}')}"
            )
            if pointer.offset:
                address = self._value(f"getelementptr i8, ptr {address}, i64 {pointer.offset}")
            self._store("ptr", address, "%pointers", i)
        for i, source in enumerate(call.values):
            if isinstance(source, int):
                place = self._value(f"getelementptr i64, ptr %variables, i64 {source}")
                value = self._value(f"load i64, ptr {place}")
            else:
                value = _GIVEN[source]
            self._store("i64", value, "%values", i)
        kernel = f"@{self.driver.kernels[call.kernel]}"
        if call.has_parts:
            part, number = call.values.index(PART), self.calls_with_parts
            self.calls_with_parts += 1
            of_thread = "i64 %thread, i64 %threads, ptr %team"
            arguments = f"ptr {kernel}, ptr %pointers, ptr %values, i64 {part}, i64 {number}, {of_thread}"
            self.lines.append(f"  call void @parts({arguments})")
        else:
            self.lines.append(f"  call void {kernel}(ptr %pointers, ptr %values)")

    def _value(self, text: str) -> str:
        self.number += 1
        self.lines.append(f"  %v{self.number} = {text}")
        return f"%v{self.number}"

    def _store(self, kind: str, value: str, array: str, position: int) -> None:
        place = self._value(f"getelementptr {kind}, ptr {array}, i64 {position}")
        self.lines.append(f"  store {kind} {value}, ptr {place}")
