/**
 * `Barrier`: the threads of a run wait for each other. Its words are the first ones of the shared memory
 * that the kernels work on, in the guard before the first buffer, which nothing else writes. The drivers of
 * captured Programs have the same barrier in WebAssembly (`polygrad/renderer/wasm_driver.py`).
 *
 * A thread that waits spins for some microseconds, then sleeps. A page's own thread never
 * sleeps, for browsers forbid it. The last to arrive increments the generation, which the others poll.
 */

const ARRIVED = 0;
const GENERATION = 1;
const SLEEPERS = 2;
const FAILED = 3; // a thread trapped: no thread waits any more
const MAY_SLEEP = 4; // whether thread 0 may sleep
const WORDS = 5;

/** How often a thread polls before it sleeps: some 30 microseconds. */
export const SPINS = 10_000;

export class Barrier {
  readonly #words: Int32Array;

  constructor(memory: WebAssembly.Memory) {
    this.#words = new Int32Array(memory.buffer, 0, WORDS);
  }

  /** Say whether thread 0 may sleep. */
  set ownerMaySleep(may: boolean) {
    Atomics.store(this.#words, MAY_SLEEP, Number(may));
  }

  /** Whether a thread trapped since `reset`. */
  get failed(): boolean {
    return Atomics.load(this.#words, FAILED) !== 0;
  }

  /** Make ready for a run; only between runs. */
  reset(): void {
    Atomics.store(this.#words, ARRIVED, 0);
    Atomics.store(this.#words, FAILED, 0);
  }

  /** Wait until all `threads` have arrived. False: one of them trapped, and this thread must leave the run. */
  wait(thread: number, threads: number): boolean {
    const words = this.#words;
    const generation = Atomics.load(words, GENERATION);
    if (Atomics.add(words, ARRIVED, 1) === threads - 1) {
      Atomics.store(words, ARRIVED, 0);
      this.#release();
      return !this.failed;
    }
    const sleeps = thread > 0 || Atomics.load(words, MAY_SLEEP) !== 0;
    for (let n = 0; Atomics.load(words, GENERATION) === generation && !this.failed; n++) {
      if (n < SPINS || !sleeps) continue;
      Atomics.add(words, SLEEPERS, 1);
      Atomics.wait(words, GENERATION, generation);
      Atomics.sub(words, SLEEPERS, 1);
    }
    return !this.failed;
  }

  /** Release all threads that wait, now and in the rest of this run. */
  fail(): void {
    Atomics.store(this.#words, FAILED, 1);
    this.#release();
  }

  #release(): void {
    Atomics.add(this.#words, GENERATION, 1);
    if (Atomics.load(this.#words, SLEEPERS) > 0) Atomics.notify(this.#words, GENERATION);
  }
}
