/**
 * `Barrier`: the threads of a run wait for each other, and take parts of its work in turn. Its words are
 * those of `shared_words.ts`. The drivers of captured Programs have the same in WebAssembly
 * (`polygrad/renderer/wasm/driver.py`).
 *
 * A thread that waits spins for some microseconds, then sleeps. A page's own thread never
 * sleeps, for browsers forbid it. The last to arrive increments the generation, which the others poll.
 */

import {
  ARRIVED,
  COUNTERS,
  FAILED,
  FIRST_BUFFER,
  GENERATION,
  MAX_THREADS,
  MAY_SLEEP,
  SLEEPERS,
} from "./shared_words";

/** How often a thread polls before it sleeps: some 30 microseconds. */
export const SPINS = 10_000;

export class Barrier {
  readonly #words: Int32Array;

  constructor(memory: WebAssembly.Memory) {
    this.#words = new Int32Array(memory.buffer, 0, FIRST_BUFFER / 4);
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
    this.#words.fill(0, COUNTERS);
  }

  /** How many parts of thread `owner` in the launch that has counters `line` were taken; one more is now. */
  takePart(line: number, owner: number): number {
    return Atomics.add(this.#words, COUNTERS + line * MAX_THREADS + owner, 1);
  }

  /** Wait until all `threads` have arrived. False: one of them trapped, and this thread must leave the run. */
  wait(thread: number, threads: number): boolean {
    const words = this.#words;
    const generation = Atomics.load(words, GENERATION);
    if (Atomics.add(words, ARRIVED, 1) === threads - 1) {
      Atomics.store(words, ARRIVED, 0);
      words.fill(0, COUNTERS); // all parts are taken, and nobody takes others before the release
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
