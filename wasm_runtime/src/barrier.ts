/**
 * `Barrier`: the threads of a run wait for each other, and take parts of its work in turn. Its words are
 * those of `shared_words.ts`. The drivers of captured Programs have the same barrier in WebAssembly
 * (`polygrad/renderer/wasm/driver.py`).
 *
 * A thread that waits spins for some microseconds, then sleeps. A page's own thread never sleeps, because
 * browsers forbid it. The last thread to arrive increments the generation, which the others poll.
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

  /** Whether thread 0 may sleep. */
  set ownerMaySleep(may: boolean) {
    Atomics.store(this.#words, MAY_SLEEP, Number(may));
  }

  /** Whether a thread trapped since `reset`. */
  get failed(): boolean {
    return Atomics.load(this.#words, FAILED) !== 0;
  }

  /** Prepare a run. Call it between runs only. */
  reset(): void {
    Atomics.store(this.#words, ARRIVED, 0);
    Atomics.store(this.#words, FAILED, 0);
    this.#words.fill(0, COUNTERS);
  }

  /** Take a part of thread `owner` in the launch whose counters are `line`: how many of its parts were taken before. */
  takePart(line: number, owner: number): number {
    return Atomics.add(this.#words, COUNTERS + line * MAX_THREADS + owner, 1);
  }

  /** Wait until all `threads` have arrived. False when one of them trapped: then this thread must leave the run. */
  wait(thread: number, threads: number): boolean {
    const words = this.#words;
    const generation = Atomics.load(words, GENERATION);
    if (Atomics.add(words, ARRIVED, 1) === threads - 1) {
      Atomics.store(words, ARRIVED, 0);
      words.fill(0, COUNTERS); // all parts are taken, and no thread takes others before the release
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
