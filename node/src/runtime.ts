/**
 * `polygrad/runtime` in Node: exported models, without Python.
 *
 *     import { load } from "polygrad/runtime";
 *     const model = await load("model.pgrd");
 *     const { logits } = await model.run({ x: pixels });
 */

import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";

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
  type OpenedFile,
  type TextModelOptions,
} from "../../wasm_runtime/src/source";
import { sharedDevice } from "../../wasm_runtime/src/webgpu/shared";
import { startWorker } from "./engine";
import { cache } from "./file_cache";
import { gpuOfNode } from "./gpu_of_node";
import { openFile } from "./open_file";

export * from "../../wasm_runtime/src/exported";
export { cache };

const openGpu = sharedDevice(async () => ({ gpu: await gpuOfNode() }));

/** A path, an http(s) or file URL, a response, or bytes. */
export type ModelSource = string | URL | ByteSource;

/**
 * The exported step in `source`. Rejects with ProgramError when it is damaged, of another version or kind, or for neither
 * WebAssembly nor WebGPU (npm package `webgpu`); with DeviceError when it needs a GPU and there is none; FetchError,
 * CompileError, OutOfMemoryError.
 */
export async function load(source: ModelSource, options: ModelOptions = {}): Promise<Model> {
  const host = hostOf(options);
  return loadModel(await open(source, "load", options), host);
}

/** The exported model that generates text in `source`. Rejects as `load` does. */
export async function loadLanguageModel(
  source: ModelSource,
  options: TextModelOptions = {},
): Promise<LanguageModel> {
  const host = hostOf(options);
  return openLanguageModel(await open(source, "loadLanguageModel", options), host, options.tokenizers);
}

/** The exported model that gives vectors of texts in `source`. Rejects as `load` does. */
export async function loadTextEncoder(source: ModelSource, options: TextModelOptions = {}): Promise<Encoder> {
  const host = hostOf(options);
  return openEncoder(await open(source, "loadTextEncoder", options), host, options.tokenizers);
}

/** The exported model that gives labels of texts in `source`. Rejects as `load` does. */
export async function loadTextClassifier(
  source: ModelSource,
  options: TextModelOptions = {},
): Promise<Classifier> {
  const host = hostOf(options);
  return openClassifier(await open(source, "loadTextClassifier", options), host, options.tokenizers);
}

/** What a model gets of this host. Throws RangeError for a wrong option, so it comes before a file is opened. */
function hostOf(options: ModelOptions): ModelHost {
  const threads = threadCount(options.threads, availableParallelism());
  return { pool: () => sharedPool(threads, startWorker), gpu: openGpu };
}

async function open(
  source: ModelSource,
  what: string,
  options: ModelOptions,
): Promise<AsyncIterable<Uint8Array>> {
  return measured(await opened(source, what, options), options);
}

async function opened(source: ModelSource, what: string, options: ModelOptions): Promise<OpenedFile> {
  if (typeof source !== "string" && !(source instanceof URL)) {
    return cache.verified(openSource(source, what, options.signal), what, "model", options);
  }
  if (/^https?:/.test(String(source))) return cache.open(source, what, options);
  const path = source instanceof URL ? fileURLToPath(source) : source;
  return cache.verified(await openFile(path), what, path, options);
}
