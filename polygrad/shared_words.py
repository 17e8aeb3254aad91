"""The first bytes of a memory that threads share: the words through which they go side by side.

They are the guard before the first buffer, which nothing else writes. `wasm_runtime/src/shared_words.ts` is
the same in TypeScript.

The counters say how many of a thread's parts of a launch are taken. A line of them, with a word for each
thread, belongs to one launch after the last barrier; the last thread to arrive at a barrier clears them all.
Where more launches than there are lines follow a barrier, there is one more barrier.
"""

# byte addresses of the barrier's words
ARRIVED, GENERATION, SLEEPERS, FAILED, MAY_SLEEP = range(0, 20, 4)

# Not 0: kernels return at their next safepoint, and a driver before it writes what outlives the run.
STOP = 20
# A driver sets it from OPEN to CLOSED when it comes to that point, and returns if it is STOPPED. The thread
# that asks for a stop sets it from OPEN to STOPPED, and STOP after that. CLOSED: the run must not be stopped.
COMMITTED = 24
OPEN, CLOSED, STOPPED = range(3)

# What native kernels call the word: the address of an int64 in C, the word itself in LLVM IR.
STOP_SYMBOL = "polygrad_stop"

MAX_THREADS = 8
COUNTER_LINES = 32
COUNTERS = 64  # the byte address of the first
LINE_BYTES = 4 * MAX_THREADS

FIRST_BUFFER = COUNTERS + COUNTER_LINES * LINE_BYTES
