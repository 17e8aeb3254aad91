/**
 * `polygrad/runtime` in a page or a worker: exported models, without Python.
 *
 *     import { load } from "./polygrad-runtime.mjs";
 *     const model = await load("model.pgrd");
 *     const { logits } = await model.run({ x: pixels });
 */

import { loadersOf } from "../../wasm_runtime/src/loaders";
import type { ModelHost } from "../../wasm_runtime/src/loading";
import { sharedPool, threadCount } from "../../wasm_runtime/src/pools";
import {
  openSource,
  type ByteSource,
  type ModelOptions,
  type OpenedFile,
  type TextModelOptions,
} from "../../wasm_runtime/src/source";
import type { ThreadPool } from "../../wasm_runtime/src/thread_pool";
import { sharedDevice } from "../../wasm_runtime/src/webgpu/shared";
import { cache } from "./file_cache";
import { folderAt, folderOf } from "./places";
import { startThread } from "./start_worker";

export * from "../../wasm_runtime/src/exported";
export { cache };

/** Options of `load` in a page. */
export interface PageModelOptions extends ModelOptions {
  /** The folder with `polygrad-thread.mjs`. The default is the folder of this script, also on a CDN. */
  baseURL?: string | URL;
}

/** Options of models that read or write text, in a page. */
export type PageTextModelOptions = PageModelOptions & TextModelOptions;

/** An address, a response, or bytes. */
export type ModelSource = string | URL | ByteSource;

function poolOf(threads: number, baseURL: string | URL | undefined): ThreadPool | undefined {
  if (!globalThis.crossOriginIsolated) return undefined;
  const base = baseURL === undefined ? folderOf(import.meta.url) : folderAt(baseURL);
  const url = new URL("polygrad-thread.mjs", base);
  return sharedPool(threads, () => startThread(url));
}

const openGpu = sharedDevice(() =>
  Promise.resolve({ gpu: navigator.gpu, options: { nudge: navigator.userAgent.includes("Firefox") } }),
);

const loaders = loadersOf<ModelSource, PageModelOptions>({ hostOf, open });

/**
 * The exported step in `source`. Rejects with ProgramError when it is damaged, of another version or kind, or for neither
 * WebAssembly nor WebGPU; with DeviceError when it needs a GPU and there is none; FetchError, CompileError,
 * OutOfMemoryError.
 */
export const load = loaders.load;

/** The exported model that generates text in `source`. Rejects as `load` does. */
export const loadLanguageModel = loaders.loadLanguageModel;

/** The exported model that gives vectors of texts in `source`. Rejects as `load` does. */
export const loadTextEncoder = loaders.loadTextEncoder;

/** The exported model that gives labels of texts in `source`. Rejects as `load` does. */
export const loadTextClassifier = loaders.loadTextClassifier;

function hostOf({ threads, baseURL }: PageModelOptions): ModelHost {
  const count = threadCount(threads, navigator.hardwareConcurrency);
  return { pool: () => poolOf(count, baseURL), gpu: openGpu };
}

async function open(source: ModelSource, what: string, options: ModelOptions): Promise<OpenedFile> {
  const isAddress = typeof source === "string" || source instanceof URL;
  if (isAddress) return cache.open(source, what, options);
  return cache.verified(openSource(source, what, options.signal), what, "model", options);
}
