"""Drivers in all languages: the same calls in the same order, with barriers where calls have them."""

from __future__ import annotations

import ctypes
import itertools
import random
import re
import struct
from collections.abc import Sequence
from typing import Any

import llvmlite.binding as llvm
import pytest
import wasmtime
from c_compiler import needs_c_compiler
from wasm_kernel import engine

from polygrad.errors import InternalError
from polygrad.renderer.cstyle.c_compile import compile_c
from polygrad.renderer.cstyle.c_driver import c_driver
from polygrad.renderer.driver import Driver, DriverCall, TablePointer
from polygrad.renderer.llvm.compile import compile_ir
from polygrad.renderer.llvm.driver import llvm_driver
from polygrad.renderer.wasm.driver import wasm_driver
from polygrad.runtime.cpu.cc import SharedObject
from polygrad.shared_words import COUNTER_LINES, FIRST_BUFFER
from polygrad.wasm.wat import print_module


def driver_of(*calls: str) -> Driver:
    """`p` is a parallel call, `s` a serial one; `|` in front: with a barrier."""
    return Driver(
        tuple(f"k{i}" for i in range(len(calls))),
        tuple(
            DriverCall(
                i,
                (TablePointer(i % 2, 4 * i),),
                ("thread", "threads") if "p" in c else (0,),
                "p" in c,
                "|" in c,
            )
            for i, c in enumerate(calls)
        ),
        entries=2,
    )


def llvm_calls(driver: Driver) -> str:
    """What a driver calls, in order; `( )` around what thread 0 runs alone."""
    out = []
    for line in llvm_driver(driver).split("@run(")[1].splitlines():
        if "call void @" in line:
            out.append(line.split("@")[1].split("(")[0])
        elif line.startswith("serial"):
            out.append("(")
        elif line.startswith("all"):
            out.append(")")
    return " ".join(out).replace("barrier", "|")


def c_calls(driver: Driver) -> str:
    """The same of the driver in C."""
    out, alone = [], False
    for line in c_driver(driver).split("void run(char")[1].splitlines():
        called = re.search(r"kernels\[(\d+)\]\(|(\(barrier \*\))", line)
        if called is None:
            continue
        serial = "thread == 0" in line
        if serial != alone:
            out.append("(" if serial else ")")
        alone = serial
        out.append("|" if called[2] else f"k{called[1]}")
    return " ".join([*out, ")"] if alone else out)


def kernel_module(name: str, n: int) -> bytes:
    """A kernel of one pointer and `n` values, which appends to a list at 4096: the length, then bytes."""
    params = " ".join(["i32"] * (1 + n))
    number = int(name[1:])
    last = f"(local.get {n})"
    store = f"(i32.store8 offset=4100 (i32.load (i32.const 4096)) (i32.add (i32.const {16 * number}) {last}))"
    count = "(i32.store (i32.const 4096) (i32.add (i32.load (i32.const 4096)) (i32.const 1)))"
    memory = '(import "env" "memory" (memory 1))'
    text = f'(module {memory} (func (export "{name}") (param {params}) {store} {count}))'
    return bytes(wasmtime.wat2wasm(text))


def wasm_module_of(driver: Driver) -> bytes:
    values = {call.kernel: len(call.values) for call in driver.calls}
    return wasm_driver(driver, [kernel_module(name, values[i]) for i, name in enumerate(driver.kernels)])


def wasm_calls(driver: Driver) -> str:
    text = print_module(wasm_module_of(driver))
    body = re.split(r"(?m)^  \(func \(", text)[1 + len(driver.kernels)]
    out, depth = [], []
    lines = [line.strip().rstrip(")") for line in body.splitlines()[1:]]
    for line, following in itertools.pairwise([*lines, ""]):
        if line in ("block", "loop"):
            depth.append(False)
        elif line.startswith("if (result"):
            depth.append(False)
        elif line == "if":
            depth.append(following != "return")
            out += ["("] if depth[-1] else []
        elif line == "end":
            out += [")"] if depth.pop() else []
        elif line.startswith("call "):
            number = int(line.split()[1])
            out.append(f"k{number}" if number < len(driver.kernels) else "|")
    return " ".join(out)


@pytest.mark.parametrize("calls_of", [llvm_calls, wasm_calls, c_calls])
@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        (["s", "s"], "k0 k1"),
        (["p", "p"], "k0 k1"),
        (["p", "|p"], "k0 | k1"),
        (["p", "|s", "s", "|p"], "k0 | ( k1 k2 ) | k3"),
        (["s", "|p", "|s"], "( k0 ) | k1 | ( k2 )"),
        (["s", "p", "s"], "( k0 ) k1 ( k2 )"),
        (["p", "s", "|s", "p"], "k0 ( k1 ) | ( k2 ) k3"),
        ([], ""),
    ],
)
def test_calls_and_barriers_are_in_order(calls_of, calls, expected):
    assert calls_of(driver_of(*calls)) == expected


def test_all_languages_agree_on_random_drivers():
    choose = random.Random(7)
    for _ in range(100):
        calls = [choose.choice(["p", "s", "|p", "|s"]) for _ in range(choose.randrange(1, 9))]
        calls = calls if any("p" in c for c in calls) else [c[-1] for c in calls]
        assert llvm_calls(driver_of(*calls)) == wasm_calls(driver_of(*calls)) == c_calls(driver_of(*calls))


def in_llvm(driver: Driver, functions: Sequence[Any]) -> tuple[int, Any]:
    """The address of a driver that calls ctypes functions, and what keeps it alive."""
    library = llvm.JITLibraryBuilder().add_object_img(compile_ir(llvm_driver(driver))).export_symbol("run")
    for name, function in zip(driver.kernels, functions, strict=True):
        library.import_symbol(name, ctypes.cast(function, ctypes.c_void_p).value)
    tracker = library.link(llvm.create_lljit_compiler(), "driver")
    return tracker["run"], tracker


def in_c(driver: Driver, functions: Sequence[Any]) -> tuple[int, Any]:
    library = SharedObject(compile_c(c_driver(driver)), "driver")
    kernels = (ctypes.c_void_p * len(functions)).from_address(library.address("kernels"))
    for i, function in enumerate(functions):
        kernels[i] = ctypes.cast(function, ctypes.c_void_p).value
    return library.address("run"), library


NATIVE = [in_llvm, pytest.param(in_c, marks=needs_c_compiler)]


@pytest.mark.parametrize("language", NATIVE)
@pytest.mark.parametrize(("thread", "expected"), [(0, ["k0", "k1", "k2"]), (1, ["k1"])])
def test_the_driver_runs_each_threads_calls(language, thread, expected):
    seen: list[tuple[str, int, list[int]]] = []
    driver = driver_of("s", "|p", "s")
    kind = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_int64), ctypes.POINTER(ctypes.c_int64))
    functions = [
        kind(lambda p, v, i=i: seen.append((f"k{i}", p[0], [v[0], v[1]][: len(driver.calls[i].values)])))
        for i in range(3)
    ]
    address, _alive = language(driver, functions)
    run = ctypes.CFUNCTYPE(
        None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    )(address)
    waits: list[int] = []
    barrier = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(lambda team, n: waits.append(n))
    team = (ctypes.c_void_p * 1)(ctypes.cast(barrier, ctypes.c_void_p).value)
    table, variables = (ctypes.c_int64 * 2)(1000, 2000), (ctypes.c_int64 * 1)(77)
    run(ctypes.addressof(table), ctypes.addressof(variables), thread, 2, ctypes.addressof(team))
    assert [name for name, *_ in seen] == expected
    assert ("k1", 2004, [thread, 2]) in seen
    assert thread or [x for x in seen if x[0] != "k1"] == [("k0", 1000, [77]), ("k2", 1008, [77])]
    assert waits == [2]
    run(ctypes.addressof(table), ctypes.addressof(variables), 0, 1, None)  # one thread needs no team
    assert waits == [2]


@pytest.mark.parametrize("language", NATIVE)
@pytest.mark.parametrize(("threads", "given"), [(1, (0, 1)), (2, (0, 8))])
def test_the_driver_leaves_parts_to_the_team(language, threads, given):
    calls = (DriverCall(0, (TablePointer(0, 0),), ("part", "parts"), True, False),) * 2
    seen: list[tuple[int, int]] = []
    taken: list[tuple[int, ...]] = []
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.POINTER(ctypes.c_int64))
    kernel = kind(lambda p, v: seen.append((v[0], v[1])))
    numbers = [ctypes.c_int64] * 4

    @ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.POINTER(ctypes.c_int64), *numbers, ctypes.c_void_p)
    def run_parts(function, pointers, values, *rest):
        taken.append((*rest[:-1], values[1]))

    address, _alive = language(Driver(("k0",), calls, entries=1), [kernel])
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    team = (ctypes.c_void_p * 4)(0, 0, 0, ctypes.cast(run_parts, ctypes.c_void_p).value)
    table = (ctypes.c_int64 * 1)()
    last = threads - 1
    run(address)(ctypes.addressof(table), None, last, threads, ctypes.addressof(team))
    if threads == 1:
        assert seen == [given] * 2 and not taken
    else:
        assert taken == [(0, 0, last, 2, given[1]), (0, 1, last, 2, given[1])] and not seen


class InWebAssembly:
    """A driver whose threads run one after the other."""

    def __init__(self, driver: Driver, *variables: int):
        self._store = wasmtime.Store(engine())
        self._memory = wasmtime.Memory(self._store, wasmtime.MemoryType(wasmtime.Limits(1, None)))
        module = wasmtime.Module(engine(), wasm_module_of(driver))
        self._run = wasmtime.Instance(self._store, module, [self._memory]).exports(self._store)["run"]
        words = struct.pack(f"<{len(variables)}I", *variables)
        self._memory.write(self._store, words, FIRST_BUFFER + 4 * driver.entries)

    def run(self, thread: int, threads: int) -> list[int]:
        """What the kernels have appended."""
        self._run(self._store, FIRST_BUFFER, thread, threads)
        (count,) = struct.unpack("<I", self._memory.read(self._store, 4096, 4100))
        self._memory.write(self._store, bytes(4), 4096)
        return list(self._memory.read(self._store, 4100, 4100 + count))


def test_the_driver_in_webassembly_runs_as_one_thread():
    driver = InWebAssembly(driver_of("s", "|p", "s"), 5)
    assert driver.run(0, 1) == [0 * 16 + 5, 1 * 16 + 1, 2 * 16 + 5]


def in_parts(count: int) -> Driver:
    """Calls of one kernel, which notes the number of the part."""
    return Driver(
        ("k0",), (DriverCall(0, (TablePointer(0, 0),), ("parts", "part"), True, False),) * count, entries=1
    )


def test_the_driver_in_webassembly_takes_parts_that_others_have_not_begun():
    driver = InWebAssembly(in_parts(2))
    assert driver.run(1, 3) == [4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3] * 2
    assert driver.run(0, 3) == []  # nothing is left for a thread that comes late


def test_a_single_threads_launch_in_webassembly_is_one_part_run_after_run():
    driver = InWebAssembly(in_parts(3))
    assert [driver.run(0, 1) for _ in range(3)] == [[0, 0, 0]] * 3


def test_counters_of_parts_are_used_again_behind_a_barrier():
    calls = wasm_calls(in_parts(2 * COUNTER_LINES + 1)).split()
    assert [i for i, call in enumerate(calls) if call == "|"] == [COUNTER_LINES, 2 * COUNTER_LINES + 1]
    driver = InWebAssembly(in_parts(2 * COUNTER_LINES + 1))
    assert driver.run(0, 1) == [0] * (2 * COUNTER_LINES + 1)


def test_a_module_of_more_than_a_kernel_is_refused():
    with pytest.raises(InternalError, match="functions and one imported memory"):
        wasm_driver(driver_of("s"), [bytes(wasmtime.wat2wasm('(module (func (export "k0")))'))])
