/** `LaunchList`: calls of kernels in order, which are prepared once and run many times with new addresses. */

import { Barrier } from "./barrier";
import { runAll, Trap, type Call, type KernelFunction } from "./kernel_calls";
import { InternalError, ProgramError } from "./errors";
import { COUNTER_LINES, PARTS_PER_THREAD } from "./shared_words";
import type { Job } from "./thread";
import type { ThreadPool } from "./thread_pool";

/** Words that a list fills itself, after its bases: see `THREAD_VARIABLES`. */
const THREAD = 0;
const THREADS = 1;
const PART = 2;
const PARTS = 3;
const OWN_WORDS = 4;

/** Flags of a call. */
export const PARALLEL = 1;
export const BARRIER = 2;

/** A function of an instance. It keeps its module alive, so the cache finds the module by its bytes. */
export interface Kernel {
  readonly name: string;
  readonly call: KernelFunction;
  readonly module: WebAssembly.Module;
}

/** The threads that may run a list together, and the memory that it works on. */
export interface Workplace {
  readonly pool: ThreadPool;
  readonly memory: WebAssembly.Memory;
}

/**
 * Calls in order. Each argument is one of the bases plus a constant, modulo 2**32.
 *
 * Fill `bases` (addresses of buffers, then variables), then `run()`; both may be repeated. The list fills the words
 * after them: the number of the thread, the number of threads, the number of the part, and the number of parts.
 */
export class LaunchList {
  readonly bases: Uint32Array;
  readonly #words: Uint32Array;
  readonly #kernels: Kernel[] = [];
  readonly #functions: KernelFunction[] = [];
  readonly #calls: Call[] = [];
  readonly #sources: Uint32Array;
  readonly #offsets: Uint32Array;
  readonly #args: Int32Array;
  readonly #shared?: { readonly pool: ThreadPool; readonly barrier: Barrier; readonly job: Job };
  /** The job's number in the pool; 0 before the first run with threads. */
  #id = 0;

  /**
   * `plan` is, for each call: the kernel's number, flags, how many arguments, then a source and an offset for each.
   */
  constructor(kernels: readonly Kernel[], plan: Uint32Array, nBases: number, workplace?: Workplace) {
    const sources: number[] = [];
    const offsets: number[] = [];
    let line = 0;
    const words = plan.values();
    const next = (): number => words.next().value ?? 0;
    for (let position = 0; position < plan.length;) {
      const kernel = kernels[next()];
      const flags = next();
      const n = next();
      if (kernel?.call.length !== n) {
        throw new ProgramError(
          `kernel ${kernel?.name ?? "?"}: expected ${kernel?.call.length ?? "a kernel with its"} arguments, got ${n}`,
        );
      }
      const first = sources.length;
      for (let i = 0; i < n; i++) {
        sources.push(next());
        offsets.push(next());
      }
      this.#kernels.push(kernel);
      this.#functions.push(kernel.call);
      const part = sources.indexOf(nBases + PART, first);
      const needsLine = part >= 0 && line === COUNTER_LINES;
      const barrier = (flags & BARRIER) !== 0 || needsLine;
      if (barrier) line = 0;
      this.#calls.push({
        first,
        n,
        parallel: (flags & PARALLEL) !== 0,
        barrier,
        line,
        ...(part >= 0 && { part }),
      });
      if (part >= 0) line++;
      position += 3 + 2 * n;
    }
    this.#words = new Uint32Array(nBases + OWN_WORDS);
    this.bases = this.#words.subarray(0, nBases);
    this.#sources = Uint32Array.from(sources);
    this.#offsets = Uint32Array.from(offsets);
    const shared = workplace !== undefined && this.#calls.some(({ parallel }) => parallel);
    this.#args = shared
      ? new Int32Array(new SharedArrayBuffer(4 * sources.length))
      : new Int32Array(sources.length);
    if (shared) {
      const { pool, memory } = workplace;
      const calls = this.#calls;
      const job = {
        memory,
        calls,
        kernels: this.#kernels.map(({ module, name }, i) => (calls[i]?.parallel ? { module, name } : null)),
        args: this.#args,
        threadArgs: [...sources.keys()].filter((i) => sources[i] === nBases + THREAD),
      };
      const barrier = new Barrier(memory);
      barrier.ownerMaySleep = pool.ownerMaySleep;
      this.#shared = { pool, barrier, job };
      if (pool.threads > 1) this.#id = pool.add(job, this);
    }
  }

  /** Acquire the workers of the next run; how many threads it has. */
  #acquire(): number {
    if (this.#shared === undefined) return 1;
    const { pool, job } = this.#shared;
    if (this.#id === 0 && pool.threads > 1) this.#id = pool.add(job, this);
    return pool.acquire();
  }

  /** Make every call. Throws InternalError when a kernel traps. */
  run(): void {
    const args = this.#args;
    const words = this.#words;
    const shared = this.#shared;
    const threads = this.#acquire();
    words[this.bases.length + THREADS] = threads;
    words[this.bases.length + PARTS] = threads === 1 ? 1 : threads * PARTS_PER_THREAD;
    for (let i = 0; i < args.length; i++) {
      args[i] = (words[this.#sources[i] ?? 0] ?? 0) + (this.#offsets[i] ?? 0);
    }
    try {
      if (shared === undefined || threads === 1) runAll(this.#calls, this.#functions, args);
      else shared.pool.run(this.#id, shared.barrier, this.#calls, this.#functions, args);
    } catch (cause) {
      if (!(cause instanceof Trap)) throw cause;
      const name = this.#kernels[cause.number]?.name ?? "?";
      throw new InternalError(`kernel ${name}: trapped: ${cause.message}`, { cause: cause.cause });
    }
    if (threads > 1 && shared?.barrier.failed) {
      const names = this.#kernels.filter((_, i) => this.#calls[i]?.parallel).map(({ name }) => name);
      throw new InternalError(`kernel ${[...new Set(names)].join(" or ")}: trapped in another thread`);
    }
  }
}
