/**
 * The first words of a memory that threads share, by which they synchronise. They lie in the guard before the first
 * buffer, which no kernel writes. `polygrad/shared_words.py` has the same words in Python, for drivers.
 */

/** Numbers of the barrier's words. */
export const ARRIVED = 0;
export const GENERATION = 1;
export const SLEEPERS = 2;
export const FAILED = 3; // a thread trapped: no thread waits any more
export const MAY_SLEEP = 4; // whether thread 0 may sleep

/** Not 0: kernels return at their next safepoint, and a driver returns before it writes memory that outlives the run. */
export const STOP = 5;
/**
 * A driver sets it from OPEN to CLOSED before it writes memory that outlives the run, and returns if it is STOPPED. The thread
 * that asks for a stop sets it from OPEN to STOPPED, and STOP after that. CLOSED: the run must not be stopped.
 */
export const COMMITTED = 6;
export const OPEN = 0;
export const CLOSED = 1;
export const STOPPED = 2;

export const MAX_THREADS = 8;

/** A launch that has parts has this many for each thread. */
export const PARTS_PER_THREAD = 4;

/** The number of the first word that counts taken parts. Each line has a word for each thread. */
export const COUNTERS = 16;
export const COUNTER_LINES = 32;

/** Address of the first buffer. */
export const FIRST_BUFFER = 4 * (COUNTERS + COUNTER_LINES * MAX_THREADS);
