/** Node's WebAssembly engine: its features switched on, and workers that share its memory. */

import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";

import { detectFeatures, repairDotsBy } from "../../wasm_runtime/src/features";

// Node 20 has relaxed SIMD behind this flag, which later versions do not have.
if (!detectFeatures().includes("relaxed-simd")) setFlagsFromString("--experimental-wasm-relaxed-simd");

// Node 20's baseline compiler computes dot products of relaxed SIMD wrongly, the optimising one does not. Without the first
// one all WebAssembly starts slowly (Python in three times its time), so it is switched off for modules that need that.
repairDotsBy(() => {
  setFlagsFromString("--no-liftoff");
});

/** A worker that ends with the process. A worker that fails takes part in no run. */
export function startWorker(): Worker {
  const worker = new Worker(new URL("./thread.js", import.meta.url));
  worker.unref();
  return worker.on("error", () => undefined);
}
