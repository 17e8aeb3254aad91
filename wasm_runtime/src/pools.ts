/** Pools of threads by their size, which all models of a page or a process share. */

import { threadBound, ThreadPool, type ThreadWorker } from "./thread_pool";

const pools = new Map<number, ThreadPool>();

/** The number of threads: `threads` if given, else what `threadBound` says for `processors`. Throws RangeError. */
export function threadCount(threads: number | undefined, processors: number): number {
  const bound = threads ?? threadBound(processors);
  if (!Number.isInteger(bound) || bound < 1 || bound > 64) {
    throw new RangeError(`polygrad: expected threads from 1 to 64, got ${bound}`);
  }
  return bound;
}

/** The pool of `bound` threads; undefined for one thread. */
export function sharedPool(bound: number, startWorker: () => ThreadWorker): ThreadPool | undefined {
  if (bound === 1) return undefined;
  const pool = pools.get(bound) ?? new ThreadPool(bound, startWorker);
  pools.set(bound, pool);
  return pool;
}
