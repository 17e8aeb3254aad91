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
import { folderAt, folderOf } from "./places";
import { startThread } from "./start_worker";

export * from "../../wasm_runtime/src/exported";

/** Options of `load` in a page. */
export interface PageModelOptions extends ModelOptions {
  /** The folder with `polygrad-thread.mjs`. The default is the folder of this script, also on a CDN. */
  baseURL?: string | URL;
}

function poolOf(threads: number, baseURL: string | URL | undefined): ThreadPool | undefined {
  if (!globalThis.crossOriginIsolated) return undefined;
  const base = baseURL === undefined ? folderOf(import.meta.url) : folderAt(baseURL);
  const url = new URL("polygrad-thread.mjs", base);
  return sharedPool(threads, () => startThread(url));
}

const openGpu = sharedDevice(() =>
  Promise.resolve({ gpu: navigator.gpu, options: { nudge: navigator.userAgent.includes("Firefox") } }),
);

/**
 * The exported step in `source`: an address, a response, or bytes.
 * Rejects with ProgramError when it is damaged, of another version, or for neither WebAssembly nor WebGPU; with
 * DeviceError when it needs a GPU and there is none; FetchError, CompileError, OutOfMemoryError.
 */
export async function load(
  source: string | URL | ByteSource,
  options: PageModelOptions = {},
): Promise<Model> {
  const threads = threadCount(options.threads, navigator.hardwareConcurrency);
  const { signal, baseURL } = options;
  const given =
    typeof source === "string" || source instanceof URL ? await fetchFile(source, "load", signal) : source;
  const bytes = await bytesOf(given, options);
  return loadModel(bytes, { pool: () => poolOf(threads, baseURL), gpu: openGpu });
}
