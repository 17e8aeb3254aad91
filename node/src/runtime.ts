/**
 * `polygrad/runtime` in Node: exported models, without Python.
 *
 *     import { load } from "polygrad/runtime";
 *     const model = await load("model.pgrd");
 *     const { logits } = await model.run({ x: pixels });
 *
 * @module polygrad/runtime
 */

import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";

import { loadersOf } from "../../wasm_runtime/src/loaders";
import type { ModelHost } from "../../wasm_runtime/src/loading";
import { sharedPool, threadCount } from "../../wasm_runtime/src/pools";
import {
  openSource,
  type ByteSource,
  type ModelOptions,
  type OpenedFile,
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

const loaders = loadersOf<ModelSource, ModelOptions>({ hostOf, open });

/**
 * The exported step in `source`. Rejects with ProgramError when it is damaged, of another version or kind, or for neither
 * WebAssembly nor WebGPU (npm package `webgpu`); with DeviceError when it needs a GPU and there is none; FetchError,
 * CompileError, OutOfMemoryError.
 */
export const load = loaders.load;

/** The exported model that generates text in `source`. Rejects as `load` does. */
export const loadLanguageModel = loaders.loadLanguageModel;

/** The exported model that gives vectors of texts in `source`. Rejects as `load` does. */
export const loadTextEncoder = loaders.loadTextEncoder;

/** The exported model that gives labels of texts in `source`. Rejects as `load` does. */
export const loadTextClassifier = loaders.loadTextClassifier;

function hostOf(options: ModelOptions): ModelHost {
  const threads = threadCount(options.threads, availableParallelism());
  return { pool: () => sharedPool(threads, startWorker), gpu: openGpu };
}

async function open(source: ModelSource, what: string, options: ModelOptions): Promise<OpenedFile> {
  if (typeof source !== "string" && !(source instanceof URL)) {
    return cache.verified(openSource(source, what, options.signal), what, "model", options);
  }
  if (/^https?:/.test(String(source))) return cache.open(source, what, options);
  const path = source instanceof URL ? fileURLToPath(source) : source;
  return cache.verified(await openFile(path), what, path, options);
}
