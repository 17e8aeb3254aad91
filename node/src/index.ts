/**
 * polygrad in Node.
 *
 *     import { loadPolygrad } from "polygrad";
 *     const polygrad = await loadPolygrad();
 *     polygrad.runPython("from polygrad import Tensor; Tensor([1, 2]).sum().item()");
 */

import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { setFlagsFromString } from "node:v8";
import { Worker } from "node:worker_threads";

import { loadPyodide } from "pyodide";

import { detectFeatures } from "../../wasm_runtime/src/features";
import { poolFor, threadVariables } from "../../loader/src/pool";
import { furnish, type CommonOptions, type Polygrad } from "../../loader/src/polygrad";
import { diskStore } from "./disk_store";
import { findWheel } from "./find_wheel";

// Node 20 has relaxed SIMD but hides it behind this flag, which later Nodes no longer know.
if (!detectFeatures().includes("relaxed-simd")) setFlagsFromString("--experimental-wasm-relaxed-simd");

export { mountFolder } from "./mount";
export * from "../../wasm_runtime/src/index";
export type { Polygrad };

export interface LoadOptions extends CommonOptions {
  /** The wheel: its bytes, or its path. The one that came with this package unless given. */
  wheel?: string | Uint8Array<ArrayBuffer>;
  /** Where bytecode is kept between starts; a folder in the user's cache unless given, nowhere if `false`. */
  cacheDir?: string | false;
}

/** A thread that ends with the process. One that fails takes part in nothing. */
function startWorker(): Worker {
  const worker = new Worker(new URL("./thread.js", import.meta.url));
  worker.unref();
  return worker.on("error", () => undefined);
}

/** Start Python with polygrad installed. */
export async function loadPolygrad(options: LoadOptions = {}): Promise<Polygrad> {
  const processors = availableParallelism();
  const pool = poolFor(options, processors, startWorker);
  const { wheel = await findWheel() } = options;
  const bytes = typeof wheel === "string" ? readFile(wheel).then((data) => Uint8Array.from(data)) : wheel;
  const env = { HOME: "/home/pyodide", ...threadVariables(options, processors, pool), ...options.env };
  const pyodide = await loadPyodide({ env });
  const store = options.cacheDir === false ? undefined : diskStore(options.cacheDir);
  return furnish(pyodide, await bytes, store, options, pool);
}
