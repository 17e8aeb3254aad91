/** The threads of a Python, by the option `threads`. */

import { threadBound, ThreadPool, type ThreadWorker } from "../../wasm_runtime/src/thread_pool";
import type { CommonOptions } from "./polygrad";

/** What Python is told of them, unless the environment says otherwise: no more than there are processors. */
export function threadVariables(
  { threads }: CommonOptions,
  processors: number,
  pool: ThreadPool | undefined,
): Record<string, string> {
  const count = pool === undefined ? 1 : (threads ?? Math.min(pool.bound, processors));
  return { POLYGRAD_THREADS: String(count) };
}

/** A pool, unless one thread is asked for. */
export function poolFor(
  { threads }: CommonOptions,
  processors: number,
  startWorker: () => ThreadWorker,
): ThreadPool | undefined {
  const bound = threads ?? threadBound(processors);
  if (!Number.isInteger(bound) || bound < 1 || bound > 64) {
    throw new RangeError(`polygrad: expected threads from 1 to 64, got ${bound}`);
  }
  return bound === 1 ? undefined : new ThreadPool(bound, startWorker);
}
