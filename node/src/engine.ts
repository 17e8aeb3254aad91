/** Node's WebAssembly engine: its features switched on, and workers that share its memory. */

import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";

import { detectFeatures } from "../../wasm_runtime/src/features";

// Node 20 has relaxed SIMD but hides it behind this flag, which later Nodes no longer know.
if (!detectFeatures().includes("relaxed-simd")) setFlagsFromString("--experimental-wasm-relaxed-simd");

/** A thread that ends with the process. One that fails takes part in nothing. */
export function startWorker(): Worker {
  const worker = new Worker(new URL("./thread.js", import.meta.url));
  worker.unref();
  return worker.on("error", () => undefined);
}
