"""The native functions of threads in C; `cpu/native.py` describes them.

Knows neither Python's threads nor Programs.
"""

from __future__ import annotations

from polygrad.helpers import PARTS_PER_THREAD
from polygrad.runtime.cpu import native

_CONSTANTS = (
    "BARRIER", "YIELD", "SPIN_LIMIT", "JOB", "A", "B", "COUNT", "OPEN", "COUNTERS", "ARRIVED", "PHASE",
    "WORKERS", "WORDS_PER_WORKER", "POSTED", "SEEN", "STATE", "AWAKE", "ASLEEP", "WOKEN", "PARALLEL",
    "BARRIER_BEFORE", "HAS_PARTS", "LAUNCH_WORDS", "LINE_WORDS", "SPINS_BEFORE_YIELD",
)  # fmt: skip


def team_text() -> str:
    """The C source of the functions that `cpu/native.py` describes."""
    lines = [f"{name} = {getattr(native, name)}," for name in _CONSTANTS]
    lines.append(f"PARTS_PER_THREAD = {PARTS_PER_THREAD},")
    return f"#include <stdint.h>\n\nenum {{\n  {' '.join(lines)}\n}};\n{_TEXT}"


_TEXT = """
typedef int64_t word;
typedef void job_function(void *a, void *b, word thread, word threads, word *team);
typedef void kernel_function(char **pointers, word *values);

#define ACQUIRE(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define EXCHANGE(p, expected, value) \\
  __atomic_compare_exchange_n(p, expected, value, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

static void pause_briefly(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

void barrier(word *team, word threads) {
  if (threads < 2)
    return;
  word phase = ACQUIRE(&team[PHASE]);
  if (__atomic_fetch_add(&team[ARRIVED], 1, __ATOMIC_ACQ_REL) + 1 == threads) {
    __atomic_store_n(&team[ARRIVED], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&team[PHASE], phase + 1, __ATOMIC_RELEASE);
    return;
  }
  for (word spins = 1; ACQUIRE(&team[PHASE]) == phase; spins++) {
    if (spins > SPINS_BEFORE_YIELD)
      ((int (*)(void))team[YIELD])();
    else
      pause_briefly();
  }
}

static void run_share(word *team, word thread) {
  word threads = team[COUNT];
  ((job_function *)team[JOB])((void *)team[A], (void *)team[B], thread, threads, team);
  barrier(team, threads);
}

word start_job(word *team, void *job, void *a, void *b, word threads, word *counters, word lines) {
  team[JOB] = (word)job;
  team[A] = (word)a;
  team[B] = (word)b;
  team[COUNT] = threads;
  team[COUNTERS] = (word)counters;
  for (word line = 0; line < lines; line++)
    counters[line * LINE_WORDS] = 0;
  word asleep = 0;
  for (word thread = 1; thread < threads; thread++) {
    word *worker = team + WORKERS + WORDS_PER_WORKER * thread, state = ASLEEP;
    __atomic_store_n(&worker[POSTED], worker[POSTED] + 1, __ATOMIC_SEQ_CST);
    asleep += EXCHANGE(&worker[STATE], &state, WOKEN);
  }
  if (asleep)
    team[OPEN] = 1;
  else
    run_share(team, 0);
  return asleep;
}

void finish_job(word *team) {
  team[OPEN] = 0;
  run_share(team, 0);
}

void serve_jobs(word *team, word thread) {
  word *worker = team + WORKERS + WORDS_PER_WORKER * thread, limit = team[SPIN_LIMIT], spins = 0;
  __atomic_store_n(&worker[STATE], AWAKE, __ATOMIC_SEQ_CST);
  for (;;) {
    word posted = ACQUIRE(&worker[POSTED]);
    if (posted == worker[SEEN]) {
      pause_briefly();
      if (++spins < limit)
        continue;
      __atomic_store_n(&worker[STATE], ASLEEP, __ATOMIC_SEQ_CST);
      posted = __atomic_load_n(&worker[POSTED], __ATOMIC_SEQ_CST);
      if (posted == worker[SEEN])
        return;
      word state = ASLEEP;
      if (!EXCHANGE(&worker[STATE], &state, AWAKE))
        return;
    }
    worker[SEEN] = posted;
    run_share(team, thread);
    spins = 0;
  }
}

void run_parts(kernel_function *kernel, char **pointers, word *values, word place, word number, word thread,
               word threads, word *team) {
  word *counters = (word *)team[COUNTERS] + number * threads * LINE_WORDS;
  for (word turn = 0, owner = thread; turn < threads; turn++) {
    for (;;) {
      word taken = __atomic_fetch_add(&counters[owner * LINE_WORDS], 1, __ATOMIC_RELAXED);
      if (taken >= PARTS_PER_THREAD)
        break;
      values[place] = owner * PARTS_PER_THREAD + taken;
      kernel(pointers, values);
    }
    owner = owner + 1 == threads ? 0 : owner + 1;
  }
}

void run_list(word *list, char *values, word thread, word threads, word *team) {
  char *own = values + list[1] * thread;
  for (word i = 0; i < list[0]; i++) {
    word *launch = list + 2 + i * LAUNCH_WORDS, flags = launch[3];
    if (flags & BARRIER_BEFORE)
      barrier(team, threads);
    if (!(flags & PARALLEL) && thread != 0)
      continue;
    kernel_function *kernel = (kernel_function *)launch[0];
    char **pointers = (char **)launch[1];
    word *arguments = (word *)(own + launch[2]);
    if (flags & HAS_PARTS)
      run_parts(kernel, pointers, arguments, launch[4], launch[5], thread, threads, team);
    else
      kernel(pointers, arguments);
  }
}
"""
