"""The native functions of the CPU device's threads: they start jobs, wait at barriers and look for work.

They are LLVM IR text, compiled when the device is opened. A job is `void job(char *a, char *b, int64_t
thread, int64_t threads, void **team)`: all threads call it. `team` is shared memory with the words named
below. Words that one thread writes and another polls are in separate cache lines.

    barrier(team, threads)               waits until all threads are here: a counter, and a phase that the
                                         last of them advances; waiting threads spin, then yield
    start_job(team, job, a, b, threads)  posts a job; returns how many workers must be woken for it. If none,
                                         runs thread 0's share, and the job is done
    finish_job(team)                     runs thread 0's share otherwise, once they are woken
    serve_jobs(team, thread)             a worker: runs jobs as they are posted; returns after some time
                                         without any
    run_list(list, values, ...)          a job: launches in order, with their barriers

A worker that gives up stores `ASLEEP` in its state and then looks for a job once more. A thread that posts a
job does so first, and then tries to change the worker's state from `ASLEEP` to `WOKEN`. At least one of the
two sees the other's write, and only one of them changes the state back.

    run_parts(function, pointers, values, place, number, ...)
                                         calls a kernel for the parts that this thread takes; their number
                                         goes to `values[place]`

Parts are taken from counters of the job, one for each thread and each launch that has parts. A thread begins
with its own parts, which are adjacent, and then steals those that other threads have left. So if a thread is
preempted, the others wait only for the part that it is executing.

Knows neither Python's threads nor Programs.
"""

from __future__ import annotations

import platform

from polygrad.helpers import PARTS_PER_THREAD

# Words of the team.
BARRIER, YIELD = 0, 1  # addresses of `barrier` and of the system's yield
SPIN_LIMIT = 2  # how often a worker looks for a job before it gives up
RUN_PARTS = 3  # the address of `run_parts`
JOB, A, B, COUNT, OPEN = 8, 9, 10, 11, 12  # the job; OPEN: it is posted, and thread 0 has yet to do its share
COUNTERS = 13  # the address of the job's counters: for each launch, a cache line for each thread
ARRIVED, PHASE = 16, 24
WORKERS, WORDS_PER_WORKER = 32, 8  # thread t: from WORKERS + WORDS_PER_WORKER * t, the words below
POSTED, SEEN, STATE = 0, 1, 2
AWAKE, ASLEEP, WOKEN = 0, 1, 2

# Words of a launch list: the number of launches, and the bytes between two threads' values. Then for each
# launch its function, the address of its pointers, the byte offset of its values, flags, the position of
# `part` among the values, and the index of the launch among those that have parts.
PARALLEL, BARRIER_BEFORE, HAS_PARTS = 1, 2, 4
LAUNCH_WORDS = 6

LINE_WORDS = 8  # of a cache line

SPINS_BEFORE_YIELD = 1000

_PAUSES = {
    **dict.fromkeys(
        ("x86_64", "amd64", "i386", "i686"), ("@llvm.x86.sse2.pause()", "@llvm.x86.sse2.pause()")
    ),
    **dict.fromkeys(("aarch64", "arm64"), ("@llvm.aarch64.hint(i32)", "@llvm.aarch64.hint(i32 1)")),
}


def team_text() -> str:
    """The functions above, for this machine."""
    pause_declaration, pause_call = _PAUSES.get(platform.machine().lower(), ("", ""))
    numbers = {name: value for name, value in globals().items() if isinstance(value, int)}
    return _TEXT.format(
        declare_pause=f"declare void {pause_declaration}" if pause_declaration else "",
        pause=f"call void {pause_call}" if pause_call else "",
        **numbers | {"PARTS_PER_THREAD": PARTS_PER_THREAD},
    )


_TEXT = """
{declare_pause}

define void @barrier(ptr %team, i64 %threads) {{
  %single = icmp ult i64 %threads, 2
  br i1 %single, label %done, label %arrive
arrive:
  %arrived = getelementptr i64, ptr %team, i64 {ARRIVED}
  %phase = getelementptr i64, ptr %team, i64 {PHASE}
  %now = load atomic i64, ptr %phase acquire, align 8
  %before = atomicrmw add ptr %arrived, i64 1 acq_rel, align 8
  %count = add i64 %before, 1
  %last = icmp eq i64 %count, %threads
  br i1 %last, label %release, label %wait
release:
  store atomic i64 0, ptr %arrived monotonic, align 8
  %next = add i64 %now, 1
  store atomic i64 %next, ptr %phase release, align 8
  br label %done
wait:
  %spins = phi i64 [ 0, %arrive ], [ %more, %retry ]
  %current = load atomic i64, ptr %phase acquire, align 8
  %waiting = icmp eq i64 %current, %now
  br i1 %waiting, label %spin, label %done
spin:
  %more = add i64 %spins, 1
  %long = icmp ugt i64 %more, {SPINS_BEFORE_YIELD}
  br i1 %long, label %yield, label %pause
yield:
  %yield.ptr = getelementptr i64, ptr %team, i64 {YIELD}
  %function = load ptr, ptr %yield.ptr
  %ignored = call i32 %function()
  br label %retry
pause:
  {pause}
  br label %retry
retry:
  br label %wait
done:
  ret void
}}

define internal void @run_share(ptr %team, i64 %thread) {{
  %job.ptr = getelementptr i64, ptr %team, i64 {JOB}
  %a.ptr = getelementptr i64, ptr %team, i64 {A}
  %b.ptr = getelementptr i64, ptr %team, i64 {B}
  %count.ptr = getelementptr i64, ptr %team, i64 {COUNT}
  %job = load ptr, ptr %job.ptr
  %a = load ptr, ptr %a.ptr
  %b = load ptr, ptr %b.ptr
  %threads = load i64, ptr %count.ptr
  call void %job(ptr %a, ptr %b, i64 %thread, i64 %threads, ptr %team)
  call void @barrier(ptr %team, i64 %threads)
  ret void
}}

define i64 @start_job(ptr %team, ptr %job, ptr %a, ptr %b, i64 %threads, ptr %counters, i64 %lines) {{
  %job.ptr = getelementptr i64, ptr %team, i64 {JOB}
  %a.ptr = getelementptr i64, ptr %team, i64 {A}
  %b.ptr = getelementptr i64, ptr %team, i64 {B}
  %count.ptr = getelementptr i64, ptr %team, i64 {COUNT}
  store ptr %job, ptr %job.ptr
  store ptr %a, ptr %a.ptr
  store ptr %b, ptr %b.ptr
  store i64 %threads, ptr %count.ptr
  %counters.ptr = getelementptr i64, ptr %team, i64 {COUNTERS}
  store ptr %counters, ptr %counters.ptr
  br label %reset
reset:
  %line = phi i64 [ 0, %0 ], [ %line.next, %reset.one ]
  %counted = icmp ult i64 %line, %lines
  br i1 %counted, label %reset.one, label %post
reset.one:
  %line.word = mul i64 %line, {LINE_WORDS}
  %line.ptr = getelementptr i64, ptr %counters, i64 %line.word
  store i64 0, ptr %line.ptr
  %line.next = add i64 %line, 1
  br label %reset
post:
  %t = phi i64 [ 1, %reset ], [ %t.next, %posted ]
  %asleep = phi i64 [ 0, %reset ], [ %asleep.next, %posted ]
  %more = icmp ult i64 %t, %threads
  br i1 %more, label %one, label %all
one:
  %offset = mul i64 %t, {WORDS_PER_WORKER}
  %word = add i64 %offset, {WORKERS}
  %worker = getelementptr i64, ptr %team, i64 %word
  %posted.ptr = getelementptr i64, ptr %worker, i64 {POSTED}
  %number = load i64, ptr %posted.ptr
  %number.next = add i64 %number, 1
  store atomic i64 %number.next, ptr %posted.ptr seq_cst, align 8
  %state.ptr = getelementptr i64, ptr %worker, i64 {STATE}
  %old = cmpxchg ptr %state.ptr, i64 {ASLEEP}, i64 {WOKEN} seq_cst seq_cst, align 8
  %was = extractvalue {{ i64, i1 }} %old, 1
  %one.more = zext i1 %was to i64
  br label %posted
posted:
  %asleep.next = add i64 %asleep, %one.more
  %t.next = add i64 %t, 1
  br label %post
all:
  %none.asleep = icmp eq i64 %asleep, 0
  br i1 %none.asleep, label %go, label %wake
go:
  call void @run_share(ptr %team, i64 0)
  ret i64 0
wake:
  %open.ptr = getelementptr i64, ptr %team, i64 {OPEN}
  store i64 1, ptr %open.ptr
  ret i64 %asleep
}}

define void @finish_job(ptr %team) {{
  %open.ptr = getelementptr i64, ptr %team, i64 {OPEN}
  store i64 0, ptr %open.ptr
  call void @run_share(ptr %team, i64 0)
  ret void
}}

define void @serve_jobs(ptr %team, i64 %thread) {{
  %offset = mul i64 %thread, {WORDS_PER_WORKER}
  %word = add i64 %offset, {WORKERS}
  %worker = getelementptr i64, ptr %team, i64 %word
  %posted.ptr = getelementptr i64, ptr %worker, i64 {POSTED}
  %seen.ptr = getelementptr i64, ptr %worker, i64 {SEEN}
  %state.ptr = getelementptr i64, ptr %worker, i64 {STATE}
  %limit.ptr = getelementptr i64, ptr %team, i64 {SPIN_LIMIT}
  %limit = load i64, ptr %limit.ptr
  store atomic i64 {AWAKE}, ptr %state.ptr seq_cst, align 8
  br label %look
look:
  %spins = phi i64 [ 0, %0 ], [ %spins.next, %spin ], [ 0, %work ]
  %posted = load atomic i64, ptr %posted.ptr acquire, align 8
  %seen = load i64, ptr %seen.ptr
  %nothing = icmp eq i64 %posted, %seen
  br i1 %nothing, label %spin, label %work
spin:
  {pause}
  %spins.next = add i64 %spins, 1
  %below.limit = icmp ult i64 %spins.next, %limit
  br i1 %below.limit, label %look, label %sleep
sleep:
  store atomic i64 {ASLEEP}, ptr %state.ptr seq_cst, align 8
  %latest = load atomic i64, ptr %posted.ptr seq_cst, align 8
  %unchanged = icmp eq i64 %latest, %seen
  br i1 %unchanged, label %done, label %back
back:
  %old = cmpxchg ptr %state.ptr, i64 {ASLEEP}, i64 {AWAKE} seq_cst seq_cst, align 8
  %reclaimed = extractvalue {{ i64, i1 }} %old, 1
  br i1 %reclaimed, label %work, label %done
work:
  %number = phi i64 [ %posted, %look ], [ %latest, %back ]
  store i64 %number, ptr %seen.ptr
  call void @run_share(ptr %team, i64 %thread)
  br label %look
done:
  ret void
}}

define void @run_parts(ptr %kernel, ptr %pointers, ptr %values, i64 %place, i64 %number,
                       i64 %thread, i64 %threads, ptr %team) {{
  %part.ptr = getelementptr i64, ptr %values, i64 %place
  %counters.ptr = getelementptr i64, ptr %team, i64 {COUNTERS}
  %counters = load ptr, ptr %counters.ptr
  %line = mul i64 %number, %threads
  br label %share
share:
  %turn = phi i64 [ 0, %0 ], [ %turn.next, %taken ]
  %owner = phi i64 [ %thread, %0 ], [ %owner.next, %taken ]
  %owner.line = add i64 %line, %owner
  %word = mul i64 %owner.line, {LINE_WORDS}
  %counter = getelementptr i64, ptr %counters, i64 %word
  %first = mul i64 %owner, {PARTS_PER_THREAD}
  br label %take
take:
  %taken.parts = atomicrmw add ptr %counter, i64 1 monotonic, align 8
  %left = icmp ult i64 %taken.parts, {PARTS_PER_THREAD}
  br i1 %left, label %one, label %taken
one:
  %part = add i64 %first, %taken.parts
  store i64 %part, ptr %part.ptr
  call void %kernel(ptr %pointers, ptr %values)
  br label %take
taken:
  %turn.next = add i64 %turn, 1
  %owner.more = add i64 %owner, 1
  %wraps = icmp eq i64 %owner.more, %threads
  %owner.next = select i1 %wraps, i64 0, i64 %owner.more
  %others = icmp ult i64 %turn.next, %threads
  br i1 %others, label %share, label %done
done:
  ret void
}}

define void @run_list(ptr %list, ptr %values, i64 %thread, i64 %threads, ptr %team) {{
  %count = load i64, ptr %list
  %stride.ptr = getelementptr i64, ptr %list, i64 1
  %stride = load i64, ptr %stride.ptr
  %offset = mul i64 %stride, %thread
  %own.values = getelementptr i8, ptr %values, i64 %offset
  %is.thread0 = icmp eq i64 %thread, 0
  %start = getelementptr i64, ptr %list, i64 2
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %i.next, %next ]
  %launch = phi ptr [ %start, %0 ], [ %launch.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %done
one:
  %flags.ptr = getelementptr i64, ptr %launch, i64 3
  %flags = load i64, ptr %flags.ptr
  %barrier.flag = and i64 %flags, {BARRIER_BEFORE}
  %no.barrier = icmp eq i64 %barrier.flag, 0
  br i1 %no.barrier, label %ready, label %wait
wait:
  call void @barrier(ptr %team, i64 %threads)
  br label %ready
ready:
  %parallel = and i64 %flags, {PARALLEL}
  %is.parallel = icmp ne i64 %parallel, 0
  %runs = or i1 %is.parallel, %is.thread0
  br i1 %runs, label %run, label %next
run:
  %function = load ptr, ptr %launch
  %table.ptr = getelementptr i64, ptr %launch, i64 1
  %table = load ptr, ptr %table.ptr
  %values.ptr = getelementptr i64, ptr %launch, i64 2
  %values.offset = load i64, ptr %values.ptr
  %arguments = getelementptr i8, ptr %own.values, i64 %values.offset
  %parts.flag = and i64 %flags, {HAS_PARTS}
  %whole = icmp eq i64 %parts.flag, 0
  br i1 %whole, label %run.whole, label %run.parts
run.whole:
  call void %function(ptr %table, ptr %arguments)
  br label %next
run.parts:
  %place.ptr = getelementptr i64, ptr %launch, i64 4
  %place = load i64, ptr %place.ptr
  %number.ptr = getelementptr i64, ptr %launch, i64 5
  %number = load i64, ptr %number.ptr
  call void @run_parts(ptr %function, ptr %table, ptr %arguments, i64 %place, i64 %number, i64 %thread,
                       i64 %threads, ptr %team)
  br label %next
next:
  %i.next = add i64 %i, 1
  %launch.next = getelementptr i64, ptr %launch, i64 {LAUNCH_WORDS}
  br label %loop
done:
  ret void
}}
"""
