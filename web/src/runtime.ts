/**
 * `polygrad/runtime` in a page or a worker: exported models, without Python.
 *
 *     import { load } from "./polygrad-runtime.mjs";
 *     const model = await load("model.pgrd");
 *     const { logits } = await model.run({ x: pixels });
 */

import { openLanguageModel, type LanguageModel } from "../../wasm_runtime/src/generation/language_model";
import {
  openClassifier,
  openEncoder,
  type Classifier,
  type Encoder,
} from "../../wasm_runtime/src/generation/text_readers";
import type { ModelHost } from "../../wasm_runtime/src/loading";
import { loadModel, type Model } from "../../wasm_runtime/src/model";
import { sharedPool, threadCount } from "../../wasm_runtime/src/pools";
import {
  measured,
  openSource,
  type ByteSource,
  type ModelOptions,
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

/**
 * The exported step in `source`. Rejects with ProgramError when it is damaged, of another version or kind, or for neither
 * WebAssembly nor WebGPU; with DeviceError when it needs a GPU and there is none; FetchError, CompileError,
 * OutOfMemoryError.
 */
export async function load(source: ModelSource, options: PageModelOptions = {}): Promise<Model> {
  const host = hostOf(options);
  return loadModel(await open(source, "load", options), host);
}

/** The exported model that generates text in `source`. Rejects as `load` does. */
export async function loadLanguageModel(
  source: ModelSource,
  options: PageTextModelOptions = {},
): Promise<LanguageModel> {
  const host = hostOf(options);
  return openLanguageModel(await open(source, "loadLanguageModel", options), host, options.tokenizers);
}

/** The exported model that gives vectors of texts in `source`. Rejects as `load` does. */
export async function loadTextEncoder(
  source: ModelSource,
  options: PageTextModelOptions = {},
): Promise<Encoder> {
  const host = hostOf(options);
  return openEncoder(await open(source, "loadTextEncoder", options), host, options.tokenizers);
}

/** The exported model that gives labels of texts in `source`. Rejects as `load` does. */
export async function loadTextClassifier(
  source: ModelSource,
  options: PageTextModelOptions = {},
): Promise<Classifier> {
  const host = hostOf(options);
  return openClassifier(await open(source, "loadTextClassifier", options), host, options.tokenizers);
}

/** What a model gets of this host. Throws RangeError for a wrong option, so it comes before a file is opened. */
function hostOf({ threads, baseURL }: PageModelOptions): ModelHost {
  const count = threadCount(threads, navigator.hardwareConcurrency);
  return { pool: () => poolOf(count, baseURL), gpu: openGpu };
}

async function open(
  source: ModelSource,
  what: string,
  options: ModelOptions,
): Promise<AsyncIterable<Uint8Array>> {
  const isAddress = typeof source === "string" || source instanceof URL;
  const file = isAddress
    ? await cache.open(source, what, options)
    : cache.verified(openSource(source, what, options.signal), what, "model", options);
  return measured(file, options);
}
