/** The threads of a Python, by the option `threads`. */

import { threadCount } from "../../wasm_runtime/src/pools";
import { ThreadPool, type ThreadWorker } from "../../wasm_runtime/src/thread_pool";
import type { CommonOptions } from "./polygrad";

/** The environment variable that tells Python the number of threads, unless it is set; at most the processors. */
export function threadVariables(
  { threads }: CommonOptions,
  processors: number,
  pool: ThreadPool | undefined,
): Record<string, string> {
  const count = pool === undefined ? 1 : (threads ?? Math.min(pool.bound, processors));
  return { POLYGRAD_THREADS: String(count) };
}

/** A pool; undefined for one thread. */
export function poolFor(
  { threads }: CommonOptions,
  processors: number,
  startWorker: () => ThreadWorker,
): ThreadPool | undefined {
  const bound = threadCount(threads, processors);
  return bound === 1 ? undefined : new ThreadPool(bound, startWorker);
}
