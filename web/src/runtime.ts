/**
 * `polygrad/runtime` in a page or a worker: exported models, without Python.
 *
 *     import { load } from "./polygrad-runtime.mjs";
 *     const model = await load("model.pgrd");
 *     const { logits } = await model.run({ x: pixels });
 */

import { loadModel, type Model } from "../../wasm_runtime/src/model";
import { sharedPool, threadCount } from "../../wasm_runtime/src/pools";
import { bytesOf, fetchFile, type ByteSource, type ModelOptions } from "../../wasm_runtime/src/source";
import type { ThreadPool } from "../../wasm_runtime/src/thread_pool";
import { sharedDevice } from "../../wasm_runtime/src/webgpu/shared";
import { startWorker } from "./start_worker";

export * from "../../wasm_runtime/src/exported";

function poolOf(threads: number): ThreadPool | undefined {
  if (!globalThis.crossOriginIsolated) return undefined;
  const url = new URL("polygrad-thread.mjs", import.meta.url);
  return sharedPool(threads, () => startWorker(url));
}

const openGpu = sharedDevice(() =>
  Promise.resolve({ gpu: navigator.gpu, options: { nudge: navigator.userAgent.includes("Firefox") } }),
);

/**
 * The exported step in `source`: an address, a response, or bytes. `polygrad-thread.mjs` lies beside this file.
 * Rejects with ProgramError when it is damaged, of another version, or for neither WebAssembly nor WebGPU; with
 * DeviceError when it needs a GPU and there is none; FetchError, CompileError, OutOfMemoryError.
 */
export async function load(source: string | URL | ByteSource, options: ModelOptions = {}): Promise<Model> {
  const threads = threadCount(options.threads, navigator.hardwareConcurrency);
  const { signal } = options;
  const given =
    typeof source === "string" || source instanceof URL ? await fetchFile(source, "load", signal) : source;
  const bytes = await bytesOf(given, options);
  return loadModel(bytes, { pool: () => poolOf(threads), gpu: openGpu });
}
