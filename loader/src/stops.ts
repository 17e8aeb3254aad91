/**
 * How a thread stops what a worker computes for it: shared words. A worker that computes receives no messages.
 *
 * The flag says that a stop was asked for. The words of the tensors' memory say whether the present run may be stopped
 * (`shared_words.ts`); the exchange of one of them decides which comes first, the stop or the run's commit point.
 */

import { CLOSED, COMMITTED, OPEN, STOP, STOPPED } from "../../wasm_runtime/src/shared_words";
import type { StopSwitch } from "../../wasm_runtime/src/api/client";

const WORDS = 8;

/** Whether memory can be shared with a worker: in Node, and in pages that are cross-origin isolated, as the others lack the class. */
const canShare = (): boolean => typeof SharedArrayBuffer !== "undefined";

/** The worker's end: `Stopper` of polygrad/engine/stopping.py. */
export class Stopper {
  readonly #flag: Int32Array;
  readonly #tell: (memory: SharedArrayBuffer) => void;
  #words: Int32Array | undefined;

  /** `tell`: gives the other end the memory of tensors. */
  constructor(flag: Int32Array, tell: (memory: SharedArrayBuffer) => void) {
    this.#flag = flag;
    this.#tell = tell;
  }

  /** Runs on this memory may be stopped in their middle, if it is shared: the first memory is that of tensors. */
  watch({ buffer }: WebAssembly.Memory): void {
    if (this.#words !== undefined || !(buffer instanceof SharedArrayBuffer)) return;
    this.#words = new Int32Array(buffer, 0, WORDS);
    Atomics.store(this.#words, COMMITTED, CLOSED);
    this.#tell(buffer);
  }

  asked(): boolean {
    return Atomics.load(this.#flag, 0) !== 0;
  }

  begin(): boolean {
    if (this.#words !== undefined) Atomics.store(this.#words, COMMITTED, OPEN);
    return !this.asked(); // after that: a stop that comes later finds the run open
  }

  end(): boolean {
    const words = this.#words;
    if (words === undefined || Atomics.exchange(words, COMMITTED, CLOSED) !== STOPPED) return false;
    while (Atomics.load(words, STOP) === 0); // it is written right after STOPPED
    Atomics.store(words, STOP, 0);
    return true;
  }
}

/** The other end. */
export class SharedStopSwitch implements StopSwitch {
  readonly flag = new Int32Array(new SharedArrayBuffer(4));
  #words: Int32Array | undefined;

  /** A switch, where memory can be shared. */
  static create(): SharedStopSwitch | undefined {
    return canShare() ? new SharedStopSwitch() : undefined;
  }

  /** What the worker's end tells. */
  set memory(memory: SharedArrayBuffer) {
    this.#words = new Int32Array(memory, 0, WORDS);
  }

  arm(): void {
    Atomics.store(this.flag, 0, 0);
  }

  stop(): void {
    Atomics.store(this.flag, 0, 1);
    const words = this.#words;
    if (words === undefined || Atomics.compareExchange(words, COMMITTED, OPEN, STOPPED) !== OPEN) return;
    Atomics.store(words, STOP, 1);
  }
}
