/**
 * `ThreadPool`: workers that run lists of calls together with the thread that owns the pool.
 *
 * Messages bring modules and calls to the workers, and shared words start runs. The owner never waits for a message
 * to arrive: a run takes the workers that have received all messages. There may be none, because results do not
 * depend on the number of threads.
 */

import { SPINS, type Barrier } from "./barrier";
import { MAX_THREADS } from "./shared_words";
import { runShare, type Call, type KernelFunction } from "./kernel_calls";
import {
  DONE,
  JOB,
  NUMBER_BITS,
  POSTED,
  RECEIVED,
  SIGNAL,
  SLEEPERS,
  THREADS,
  TICKET,
  WORKERS,
  type Job,
  type ThreadMessage,
} from "./thread";

/** What a pool needs of a worker. */
export interface ThreadWorker {
  postMessage(message: ThreadMessage): void;
}

/** The most threads that run a parallel kernel, on a machine of `processors`. */
export function threadBound(processors: number): number {
  return Math.max(2, Math.min(processors, MAX_THREADS));
}

/** Whether this thread may sleep. A page's own thread may not. */
function maySleep(): boolean {
  try {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 1);
    return true;
  } catch {
    return false;
  }
}

export class ThreadPool {
  /** The most threads of a run, including the owner's. */
  readonly bound: number;
  readonly ownerMaySleep = maySleep();
  readonly #startWorker: () => ThreadWorker;
  readonly #control: Int32Array;
  #workers: ThreadWorker[] = [];
  /** The control words of the workers that take part in the next run. */
  #acquired: number[] = [];
  #threads: number;
  #posted = 0;
  #jobs = 0;

  readonly #collected = new FinalizationRegistry<number>((id) => {
    this.#post(() => ({ kind: "drop", id }));
  });

  constructor(bound: number, startWorker: () => ThreadWorker) {
    this.bound = this.#threads = bound;
    this.#startWorker = startWorker;
    this.#control = new Int32Array(new SharedArrayBuffer(4 * (WORKERS + 2 * bound)));
  }

  /** How many threads runs may use: 1 to `bound`. */
  get threads(): number {
    return this.#threads;
  }

  set threads(threads: number) {
    this.#threads = Math.max(1, Math.min(threads, this.bound));
  }

  /** Start the workers, once. In a page they become ready only while its thread is idle. */
  start(): void {
    if (this.#workers.length > 0) return;
    this.#workers = Array.from({ length: this.bound - 1 }, () => this.#startWorker());
    this.#post((worker) => ({ kind: "start", control: this.#control, worker }));
  }

  /** Send `job` to the workers, who keep it as long as `owner` lives; the number of the job. */
  add(job: Job, owner: object): number {
    this.start();
    const id = ++this.#jobs;
    this.#post(() => ({ kind: "add", id, job }));
    this.#collected.register(owner, id);
    return id;
  }

  /** Acquire the workers of a run that are ready; how many threads the run has with them. */
  acquire(): number {
    this.#acquired = [];
    for (let i = 0; i < this.#workers.length && this.#acquired.length < this.#threads - 1; i++) {
      const words = WORKERS + 2 * i;
      if (Atomics.load(this.#control, words + RECEIVED) === this.#posted) this.#acquired.push(words);
    }
    return this.#acquired.length + 1;
  }

  /** Run a job with the acquired workers. Throws Trap for this thread's calls. */
  run(
    id: number,
    barrier: Barrier,
    calls: readonly Call[],
    functions: readonly KernelFunction[],
    args: Int32Array,
  ): void {
    const control = this.#control;
    const acquired = this.#acquired;
    const threads = acquired.length + 1;
    barrier.reset();
    Atomics.store(control, JOB, id);
    Atomics.store(control, THREADS, threads);
    Atomics.store(control, DONE, 0);
    acquired.forEach((words, i) => {
      const turn = ((Atomics.load(control, words + TICKET) >>> NUMBER_BITS) + 1) & 0x3fffff;
      Atomics.store(control, words + TICKET, (turn << NUMBER_BITS) | (i + 1));
    });
    this.#signal();
    try {
      runShare(calls, functions, args, { barrier, thread: 0, threads });
    } catch (error) {
      barrier.fail();
      throw error;
    } finally {
      this.#join(acquired.length);
    }
  }

  #join(workers: number): void {
    const control = this.#control;
    let done = Atomics.load(control, DONE);
    for (let n = 0; done < workers; n++) {
      if (n >= SPINS && this.ownerMaySleep) Atomics.wait(control, DONE, done);
      done = Atomics.load(control, DONE);
    }
  }

  #signal(): void {
    Atomics.add(this.#control, SIGNAL, 1);
    if (Atomics.load(this.#control, SLEEPERS) > 0) Atomics.notify(this.#control, SIGNAL);
  }

  #post(message: (worker: number) => ThreadMessage): void {
    this.#workers.forEach((worker, i) => {
      worker.postMessage(message(i));
    });
    this.#posted++;
    Atomics.store(this.#control, POSTED, this.#posted);
    this.#signal();
  }
}
