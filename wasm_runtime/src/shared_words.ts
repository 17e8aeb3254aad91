/**
 * The first bytes of a memory that threads share: the words through which they go side by side. They are the
 * guard before the first buffer, which nothing else writes. `polygrad/shared_words.py` is the same in
 * Python, for drivers.
 */

/** Numbers of the barrier's words. */
export const ARRIVED = 0;
export const GENERATION = 1;
export const SLEEPERS = 2;
export const FAILED = 3; // a thread trapped: no thread waits any more
export const MAY_SLEEP = 4; // whether thread 0 may sleep

/** Not 0: kernels return at their next safepoint, and a driver before it writes what outlives the run. */
export const STOP = 5;
/** A driver sets it to 1 when it comes to that point. */
export const COMMITTED = 6;

export const MAX_THREADS = 8;

/** Into how many parts a launch that has parts is divided, for each thread. */
export const PARTS_PER_THREAD = 4;

/** Number of the first word that counts taken parts; each line has one for each thread. */
export const COUNTERS = 16;
export const COUNTER_LINES = 32;

/** Address of the first buffer. */
export const FIRST_BUFFER = 4 * (COUNTERS + COUNTER_LINES * MAX_THREADS);
