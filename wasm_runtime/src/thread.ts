/**
 * `Thread`: what a worker of a `ThreadPool` does. It sleeps until there is a run or a message. It returns to its
 * event loop only to receive messages.
 */

import { Barrier, SPINS } from "./barrier";
import { runShare, type Call, type KernelFunction } from "./kernel_calls";

/** The control words that a pool and its workers share. From WORKERS on, two for each worker. */
export const SIGNAL = 0; // incremented when there is a run or a message
export const POSTED = 1; // how many messages every worker was sent
export const JOB = 2; // what to run
export const THREADS = 3; // with how many threads
export const DONE = 4; // how many workers have left the run
export const SLEEPERS = 5; // how many workers sleep
export const WORKERS = 6;
export const RECEIVED = 0; // how many messages the worker has received
export const TICKET = 1; // changes when the worker takes part in a run; the low bits are its number in the run

export const NUMBER_BITS = 8;

/** A list of calls, as a worker needs it. */
export interface Job {
  readonly memory: WebAssembly.Memory;
  readonly calls: readonly Call[];
  /** The kernels of the parallel calls. */
  readonly kernels: readonly ({ readonly module: WebAssembly.Module; readonly name: string } | null)[];
  /** Shared words: the arguments of all calls. */
  readonly args: Int32Array;
  /** The indices of the arguments that are the number of the thread. */
  readonly threadArgs: readonly number[];
}

export type ThreadMessage =
  | { readonly kind: "start"; readonly control: Int32Array; readonly worker: number }
  | { readonly kind: "add"; readonly id: number; readonly job: Job }
  | { readonly kind: "drop"; readonly id: number };

interface ReadyJob extends Job {
  readonly barrier: Barrier;
  readonly functions: readonly (KernelFunction | undefined)[];
  readonly own: Int32Array;
}

export class Thread {
  #control: Int32Array = new Int32Array(WORKERS);
  #words = WORKERS; // the index of its own control words
  #received = 0;
  #ticket = 0;
  readonly #jobs = new Map<number, ReadyJob>();

  /** Handle a message; returns when there is another. */
  receive(message: ThreadMessage): void {
    if (message.kind === "start") {
      this.#control = message.control;
      this.#words = WORKERS + 2 * message.worker;
    } else if (message.kind === "add") this.#jobs.set(message.id, ready(message.job));
    else this.#jobs.delete(message.id);
    this.#received++;
    Atomics.store(this.#control, this.#words + RECEIVED, this.#received);
    this.#serve();
  }

  #serve(): void {
    const control = this.#control;
    for (let n = 0; ; n++) {
      const signal = Atomics.load(control, SIGNAL);
      const ticket = Atomics.load(control, this.#words + TICKET);
      if (ticket !== this.#ticket) {
        this.#ticket = ticket;
        this.#run(ticket & ((1 << NUMBER_BITS) - 1));
        n = 0;
      } else if (Atomics.load(control, POSTED) !== this.#received) return;
      else if (n >= SPINS) {
        Atomics.add(control, SLEEPERS, 1);
        Atomics.wait(control, SIGNAL, signal);
        Atomics.sub(control, SLEEPERS, 1);
        n = 0;
      }
    }
  }

  #run(thread: number): void {
    const control = this.#control;
    const job = this.#jobs.get(Atomics.load(control, JOB));
    if (job !== undefined) {
      const threads = Atomics.load(control, THREADS);
      job.own.set(job.args);
      for (const i of job.threadArgs) job.own[i] = thread;
      try {
        runShare(job.calls, job.functions, job.own, { barrier: job.barrier, thread, threads });
      } catch {
        job.barrier.fail();
      }
    }
    Atomics.add(control, DONE, 1);
    Atomics.notify(control, DONE);
  }
}

function ready(job: Job): ReadyJob {
  const imports = { env: { memory: job.memory } };
  const functions = job.kernels.map((kernel) =>
    kernel === null
      ? undefined
      : (new WebAssembly.Instance(kernel.module, imports).exports[kernel.name] as KernelFunction),
  );
  return { ...job, functions, barrier: new Barrier(job.memory), own: new Int32Array(job.args.length) };
}
