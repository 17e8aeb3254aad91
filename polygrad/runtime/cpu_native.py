"""What threads of the CPU device do natively: start a job together, wait for each other, look for work.

LLVM IR text, compiled by whoever opens the device. A job is `void job(char *a, char *b, int64_t thread,
int64_t threads, void **team)`: all threads call it. `team` is memory that they share, the words named below;
words that one thread writes and another watches have cache lines of their own.

    meet(team, threads)              waits until all threads are here: a counter, and a phase that the last of
                                     them advances; those who wait spin, then let others run
    start(team, job, a, b, threads)  posts a job; how many workers must be woken for it. If none, does its
                                     share as thread 0, and all is done
    finish(team)                     the share of thread 0 otherwise, once they are woken
    serve(team, thread)              a worker: does jobs as they come, for some time after each; then returns
    run_list(list, values, ...)      a job: launches in order

A worker that gives up says so (`ASLEEP`) and then looks for a job once more; who posts one does so and then
looks whether the worker had given up (`WOKEN`). Of the two at least one sees the other, and one of them only
takes the job back.

Must not know: Python's threads, Programs.
"""

from __future__ import annotations

import platform

# Words of the team.
MEET, YIELD, PATIENCE = (
    0,
    1,
    2,
)  # addresses of `meet` and of the system's yield; spins until a worker gives up
JOB, A, B, COUNT, OPEN = 8, 9, 10, 11, 12  # the job; OPEN: it is posted, and thread 0 has yet to do its share
ARRIVED, PHASE = 16, 24
WORKERS, WORDS_PER_WORKER = 32, 8  # thread t: from WORKERS + WORDS_PER_WORKER * t, the words below
POSTED, SEEN, STATE = 0, 1, 2
AWAKE, ASLEEP, WOKEN = 0, 1, 2

# Words of a launch list: how many launches, bytes between two threads' values; then for each launch its
# function, the address of its pointers, the byte offset of its values, and flags.
PARALLEL, MEET_BEFORE = 1, 2

_SPINS_BEFORE_YIELD = 1000

_PAUSES = {
    **dict.fromkeys(
        ("x86_64", "amd64", "i386", "i686"), ("@llvm.x86.sse2.pause()", "@llvm.x86.sse2.pause()")
    ),
    **dict.fromkeys(("aarch64", "arm64"), ("@llvm.aarch64.hint(i32)", "@llvm.aarch64.hint(i32 1)")),
}


def team_text() -> str:
    """The functions above, for this machine."""
    declared, called = _PAUSES.get(platform.machine().lower(), ("", ""))
    return _TEXT.format(
        declare_pause=f"declare void {declared}" if declared else "",
        pause=f"call void {called}" if called else "",
        **{name: value for name, value in globals().items() if isinstance(value, int)},
    )


_TEXT = """
{declare_pause}

define void @meet(ptr %team, i64 %threads) {{
  %alone = icmp ult i64 %threads, 2
  br i1 %alone, label %done, label %arrive
arrive:
  %arrived = getelementptr i64, ptr %team, i64 {ARRIVED}
  %phase = getelementptr i64, ptr %team, i64 {PHASE}
  %now = load atomic i64, ptr %phase acquire, align 8
  %before = atomicrmw add ptr %arrived, i64 1 acq_rel, align 8
  %here = add i64 %before, 1
  %last = icmp eq i64 %here, %threads
  br i1 %last, label %release, label %wait
release:
  store atomic i64 0, ptr %arrived monotonic, align 8
  %next = add i64 %now, 1
  store atomic i64 %next, ptr %phase release, align 8
  br label %done
wait:
  %spins = phi i64 [ 0, %arrive ], [ %more, %again ]
  %current = load atomic i64, ptr %phase acquire, align 8
  %waiting = icmp eq i64 %current, %now
  br i1 %waiting, label %spin, label %done
spin:
  %more = add i64 %spins, 1
  %long = icmp ugt i64 %more, {_SPINS_BEFORE_YIELD}
  br i1 %long, label %yield, label %pause
yield:
  %to = getelementptr i64, ptr %team, i64 {YIELD}
  %function = load ptr, ptr %to
  %ignored = call i32 %function()
  br label %again
pause:
  {pause}
  br label %again
again:
  br label %wait
done:
  ret void
}}

define internal void @share(ptr %team, i64 %thread) {{
  %at.job = getelementptr i64, ptr %team, i64 {JOB}
  %at.a = getelementptr i64, ptr %team, i64 {A}
  %at.b = getelementptr i64, ptr %team, i64 {B}
  %at.count = getelementptr i64, ptr %team, i64 {COUNT}
  %job = load ptr, ptr %at.job
  %a = load ptr, ptr %at.a
  %b = load ptr, ptr %at.b
  %threads = load i64, ptr %at.count
  call void %job(ptr %a, ptr %b, i64 %thread, i64 %threads, ptr %team)
  call void @meet(ptr %team, i64 %threads)
  ret void
}}

define i64 @start(ptr %team, ptr %job, ptr %a, ptr %b, i64 %threads) {{
  %at.job = getelementptr i64, ptr %team, i64 {JOB}
  %at.a = getelementptr i64, ptr %team, i64 {A}
  %at.b = getelementptr i64, ptr %team, i64 {B}
  %at.count = getelementptr i64, ptr %team, i64 {COUNT}
  store ptr %job, ptr %at.job
  store ptr %a, ptr %at.a
  store ptr %b, ptr %at.b
  store i64 %threads, ptr %at.count
  br label %post
post:
  %t = phi i64 [ 1, %0 ], [ %t.next, %posted ]
  %asleep = phi i64 [ 0, %0 ], [ %asleep.next, %posted ]
  %more = icmp ult i64 %t, %threads
  br i1 %more, label %one, label %all
one:
  %offset = mul i64 %t, {WORDS_PER_WORKER}
  %word = add i64 %offset, {WORKERS}
  %worker = getelementptr i64, ptr %team, i64 %word
  %at.posted = getelementptr i64, ptr %worker, i64 {POSTED}
  %number = load i64, ptr %at.posted
  %number.next = add i64 %number, 1
  store atomic i64 %number.next, ptr %at.posted seq_cst, align 8
  %at.state = getelementptr i64, ptr %worker, i64 {STATE}
  %old = cmpxchg ptr %at.state, i64 {ASLEEP}, i64 {WOKEN} seq_cst seq_cst, align 8
  %was = extractvalue {{ i64, i1 }} %old, 1
  %one.more = zext i1 %was to i64
  br label %posted
posted:
  %asleep.next = add i64 %asleep, %one.more
  %t.next = add i64 %t, 1
  br label %post
all:
  %nobody = icmp eq i64 %asleep, 0
  br i1 %nobody, label %go, label %wake
go:
  call void @share(ptr %team, i64 0)
  ret i64 0
wake:
  %at.open = getelementptr i64, ptr %team, i64 {OPEN}
  store i64 1, ptr %at.open
  ret i64 %asleep
}}

define void @finish(ptr %team) {{
  %at.open = getelementptr i64, ptr %team, i64 {OPEN}
  store i64 0, ptr %at.open
  call void @share(ptr %team, i64 0)
  ret void
}}

define void @serve(ptr %team, i64 %thread) {{
  %offset = mul i64 %thread, {WORDS_PER_WORKER}
  %word = add i64 %offset, {WORKERS}
  %worker = getelementptr i64, ptr %team, i64 %word
  %at.posted = getelementptr i64, ptr %worker, i64 {POSTED}
  %at.seen = getelementptr i64, ptr %worker, i64 {SEEN}
  %at.state = getelementptr i64, ptr %worker, i64 {STATE}
  %at.patience = getelementptr i64, ptr %team, i64 {PATIENCE}
  %patience = load i64, ptr %at.patience
  store atomic i64 {AWAKE}, ptr %at.state seq_cst, align 8
  br label %look
look:
  %spins = phi i64 [ 0, %0 ], [ %spins.next, %spin ], [ 0, %work ]
  %posted = load atomic i64, ptr %at.posted acquire, align 8
  %seen = load i64, ptr %at.seen
  %nothing = icmp eq i64 %posted, %seen
  br i1 %nothing, label %spin, label %work
spin:
  {pause}
  %spins.next = add i64 %spins, 1
  %patient = icmp ult i64 %spins.next, %patience
  br i1 %patient, label %look, label %sleep
sleep:
  store atomic i64 {ASLEEP}, ptr %at.state seq_cst, align 8
  %late = load atomic i64, ptr %at.posted seq_cst, align 8
  %still = icmp eq i64 %late, %seen
  br i1 %still, label %done, label %back
back:
  %old = cmpxchg ptr %at.state, i64 {ASLEEP}, i64 {AWAKE} seq_cst seq_cst, align 8
  %mine = extractvalue {{ i64, i1 }} %old, 1
  br i1 %mine, label %work, label %done
work:
  %number = phi i64 [ %posted, %look ], [ %late, %back ]
  store i64 %number, ptr %at.seen
  call void @share(ptr %team, i64 %thread)
  br label %look
done:
  ret void
}}

define void @run_list(ptr %list, ptr %values, i64 %thread, i64 %threads, ptr %team) {{
  %count = load i64, ptr %list
  %at.stride = getelementptr i64, ptr %list, i64 1
  %stride = load i64, ptr %at.stride
  %offset = mul i64 %stride, %thread
  %mine = getelementptr i8, ptr %values, i64 %offset
  %first = icmp eq i64 %thread, 0
  %start = getelementptr i64, ptr %list, i64 2
  br label %loop
loop:
  %i = phi i64 [ 0, %0 ], [ %i.next, %next ]
  %launch = phi ptr [ %start, %0 ], [ %launch.next, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %one, label %done
one:
  %at.flags = getelementptr i64, ptr %launch, i64 3
  %flags = load i64, ptr %at.flags
  %meets = and i64 %flags, {MEET_BEFORE}
  %apart = icmp eq i64 %meets, 0
  br i1 %apart, label %ready, label %together
together:
  call void @meet(ptr %team, i64 %threads)
  br label %ready
ready:
  %parallel = and i64 %flags, {PARALLEL}
  %is.parallel = icmp ne i64 %parallel, 0
  %runs = or i1 %is.parallel, %first
  br i1 %runs, label %run, label %next
run:
  %function = load ptr, ptr %launch
  %at.table = getelementptr i64, ptr %launch, i64 1
  %table = load ptr, ptr %at.table
  %at.values = getelementptr i64, ptr %launch, i64 2
  %where = load i64, ptr %at.values
  %given = getelementptr i8, ptr %mine, i64 %where
  call void %function(ptr %table, ptr %given)
  br label %next
next:
  %i.next = add i64 %i, 1
  %launch.next = getelementptr i64, ptr %launch, i64 4
  br label %loop
done:
  ret void
}}
"""
