"""Threads of CPU and CC: they do jobs together, sleep, wake, and survive forks, exits and errors."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
from c_compiler import CC

from polygrad.renderer.cstyle.c_compile import compile_c
from polygrad.renderer.llvm.compile import compile_ir
from polygrad.runtime.cpu.base import Linker, NativeRuntime
from polygrad.runtime.cpu.cc import CCRuntime
from polygrad.runtime.cpu.device import CPURuntime
from polygrad.runtime.cpu.threads import PartCounters, Team

# add: words[thread] += thread + 1. chain: rounds in which each thread adds what its neighbour had before the
# round to its own word, with a barrier between reading and writing.
JOBS = """
define void @add(ptr %words, ptr %b, i64 %thread, i64 %threads, ptr %team) {
  %own.ptr = getelementptr i64, ptr %words, i64 %thread
  %old = load i64, ptr %own.ptr
  %more = add i64 %thread, 1
  %new = add i64 %old, %more
  store i64 %new, ptr %own.ptr
  ret void
}
define void @chain(ptr %words, ptr %rounds, i64 %thread, i64 %threads, ptr %team) {
  %n = ptrtoint ptr %rounds to i64
  %barrier = load ptr, ptr %team
  %own.ptr = getelementptr i64, ptr %words, i64 %thread
  %right = add i64 %thread, 1
  %neighbour = urem i64 %right, %threads
  %other.ptr = getelementptr i64, ptr %words, i64 %neighbour
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %other = load i64, ptr %other.ptr
  %own = load i64, ptr %own.ptr
  call void %barrier(ptr %team, i64 %threads)
  %sum = add i64 %own, %other
  store i64 %sum, ptr %own.ptr
  call void %barrier(ptr %team, i64 %threads)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


MAKERS = {"CPU": lambda: CPURuntime(compile=compile_ir), "CC": lambda: CCRuntime(compile=compile_c)}


@pytest.fixture(scope="module", params=["CPU", CC])
def native_device(request) -> str:
    return request.param


@pytest.fixture
def make_runtime(native_device) -> Callable[[], NativeRuntime]:
    return MAKERS[native_device]


@pytest.fixture(scope="module")
def runtime(native_device) -> NativeRuntime:
    return MAKERS[native_device]()


@pytest.fixture(scope="module")
def linker() -> Linker:
    return CPURuntime()._linker


@pytest.fixture(scope="module")
def jobs(linker) -> dict[str, int]:
    names = ["add", "chain"]
    return dict(zip(names, linker.link_forever(compile_ir(JOBS), names), strict=True))


@pytest.fixture
def team(runtime) -> Team:
    return runtime._team()


def words(*values: int) -> ctypes.Array:
    return (ctypes.c_int64 * len(values))(*values)


def run(team: Team, job: int, memory: ctypes.Array, threads: int, b: int = 0) -> bool:
    return team.run(job, ctypes.addressof(memory), b, threads)


def test_every_thread_does_its_share(team, jobs):
    for threads in (2, 3, 5, 2, 4):
        memory = words(*[10] * 6)
        assert run(team, jobs["add"], memory, threads)
        assert list(memory) == [10 + t + 1 if t < threads else 10 for t in range(6)]


def test_many_jobs_back_to_back(team, jobs):
    memory = words(0, 0)
    for _ in range(2000):
        assert run(team, jobs["add"], memory, 2)
    assert list(memory) == [2000, 4000]


def test_jobs_after_pauses_in_which_workers_fall_asleep(team, jobs):
    memory = words(0, 0, 0)
    for i in range(200):
        assert run(team, jobs["add"], memory, 3)
        time.sleep((0, 20e-6, 140e-6, 160e-6, 1e-3)[i % 5])
    assert list(memory) == [200, 400, 600]


@pytest.mark.parametrize("threads", [2, 3, 4])
def test_barriers_order_what_threads_do(team, jobs, threads):
    memory, expected = words(*range(1, threads + 1)), list(range(1, threads + 1))
    for _ in range(40):
        expected = [(x + expected[(i + 1) % threads]) % 2**64 for i, x in enumerate(expected)]
    assert run(team, jobs["chain"], memory, threads, 40)
    assert [x % 2**64 for x in memory] == expected


# parts: a job that calls the kernel `slow` for the parts that a thread takes, of one launch. slow: counts
# part `values[0]` in words[part], and holds thread 1 up until all parts have been taken.
PART_JOBS = """
define void @slow(ptr %words, ptr %values) {
  %part = load i64, ptr %values
  %thread.ptr = getelementptr i64, ptr %values, i64 1
  %thread = load i64, ptr %thread.ptr
  %total = getelementptr i64, ptr %words, i64 8
  %before = atomicrmw add ptr %total, i64 1 seq_cst
  %count.ptr = getelementptr i64, ptr %words, i64 %part
  %ignored = atomicrmw add ptr %count.ptr, i64 1 seq_cst
  %slow = icmp eq i64 %thread, 1
  br i1 %slow, label %held, label %done
held:
  %owner = getelementptr i64, ptr %words, i64 9
  %also = atomicrmw add ptr %owner, i64 1 seq_cst
  br label %wait
wait:
  %now = load atomic i64, ptr %total seq_cst, align 8
  %all = icmp eq i64 %now, 8
  br i1 %all, label %done, label %wait
done:
  ret void
}
define void @parts(ptr %words, ptr %b, i64 %thread, i64 %threads, ptr %team) {
  %values = alloca [2 x i64]
  %thread.ptr = getelementptr i64, ptr %values, i64 1
  store i64 %thread, ptr %thread.ptr
  %function.ptr = getelementptr ptr, ptr %team, i64 3
  %function = load ptr, ptr %function.ptr
  call void %function(ptr @slow, ptr %words, ptr %values, i64 0, i64 0, i64 %thread, i64 %threads, ptr %team)
  ret void
}
"""


def test_a_thread_that_is_held_up_holds_up_one_part(linker, team):
    """Thread 1 stays in its first part until all others are done: thread 0 does the other seven."""
    names = ["parts"]
    (job,) = linker.link_forever(compile_ir(PART_JOBS), names)
    counters = PartCounters(1, 2)
    for _ in range(20):
        memory = words(*[0] * 10)
        assert team.run(job, ctypes.addressof(memory), 0, 2, counters)
        assert list(memory)[:9] == [*[1] * 8, 8]
        assert memory[9] <= 1


def test_a_caller_that_finds_the_team_busy_is_told(team, jobs):
    memory = words(0, 0)
    with team._busy:
        assert not run(team, jobs["add"], memory, 2)
    assert run(team, jobs["add"], memory, 2)
    assert list(memory) == [1, 2]


def test_an_interrupt_after_the_start_leaves_no_half_job(team, jobs):
    memory = words(0, 0)
    time.sleep(0.01)  # asleep: `_start_job` returns before the job is done
    start = team._start_job

    def interrupted(*arguments):
        start(*arguments)
        raise KeyboardInterrupt

    team._start_job = interrupted
    try:
        with pytest.raises(KeyboardInterrupt):
            run(team, jobs["add"], memory, 2)
    finally:
        team._start_job = start
    assert list(memory) == [1, 2]
    assert run(team, jobs["add"], memory, 2)
    assert list(memory) == [2, 4]


def test_a_team_that_is_no_longer_used_ends_its_threads(jobs, make_runtime):
    runtime = make_runtime()
    team = runtime._team()
    memory = words(0, 0, 0)
    assert run(team, jobs["add"], memory, 3)
    threads = list(team._workers.threads)
    assert len(threads) == 2
    team._stop()
    assert not any(t.is_alive() for t in threads)
    assert not run(team, jobs["add"], memory, 3)
    assert list(memory) == [1, 2, 3]


def test_no_thread_to_be_had_means_working_alone(jobs, make_runtime, monkeypatch):
    team = make_runtime()._team()

    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert not run(team, jobs["add"], words(0, 0), 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_team_of_its_own(team, jobs):
    memory = words(0, 0, 0)
    assert run(team, jobs["add"], memory, 3)
    child = os.fork()
    if child == 0:
        fine = run(team, jobs["add"], memory, 3) and list(memory) == [2, 4, 6]
        os._exit(0 if fine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert run(team, jobs["add"], memory, 3)
    assert list(memory) == [2, 4, 6]


PROGRAM = """
import atexit, sys
from polygrad import Tensor, set_num_threads

set_num_threads(3)
x, y = [Tensor.ones(512, 512).contiguous().realize() for _ in range(2)]
late = lambda x=x: print((x @ x + 1).sum().item(), flush=True)
if "early" in sys.argv:
    atexit.register(late)  # runs after what the first job registers
late(y)  # compiled: an exiting interpreter starts no threads for that
if "late" in sys.argv:
    atexit.register(late)
"""


@pytest.mark.parametrize("when", ["", "early", "late"])
def test_a_process_ends_while_its_workers_spin(native_device, when):
    command, env = [sys.executable, "-c", PROGRAM, when], os.environ | {"DEVICE": native_device}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout == f"{512.0 * 512 * 513}\n" * (2 if when else 1)


@pytest.mark.slow
def test_ten_thousand_jobs_with_and_without_pauses(team, jobs):
    memory = words(0, 0, 0)
    for i in range(10_000):
        assert run(team, jobs["add"], memory, 2 + i % 2)
        if i % 7 == 0:
            time.sleep(i % 3 * 1e-4)
    assert list(memory) == [10_000, 20_000, 15_000]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not place threads")
def test_workers_keep_off_the_processor_of_who_wakes_them(jobs, make_runtime):
    team = make_runtime()._team()
    allowed = os.sched_getaffinity(0)
    for threads in (2, len(allowed) + 1):  # where there are others, and where there are too few
        assert run(team, jobs["add"], words(*[0] * threads), threads)
        expected = len(allowed) - 1 if len(allowed) >= threads else len(allowed)
        for worker in team._workers.threads[: threads - 1]:
            assert len(os.sched_getaffinity(worker.native_id)) == expected
