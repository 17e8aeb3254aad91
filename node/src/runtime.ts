/**
 * `polygrad/runtime` in Node: exported models, without Python.
 *
 *     import { load } from "polygrad/runtime";
 *     const model = await load("model.pgrd");
 *     const { logits } = await model.run({ x: pixels });
 */

import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";

import { loadModel, type Model } from "../../wasm_runtime/src/model";
import { sharedPool, threadCount } from "../../wasm_runtime/src/pools";
import {
  bytesOf,
  collect,
  fetchFile,
  once,
  type ByteSource,
  type ModelOptions,
} from "../../wasm_runtime/src/source";
import { sharedDevice } from "../../wasm_runtime/src/webgpu/shared";
import { startWorker } from "./engine";
import { gpuOfNode } from "./gpu_of_node";
import { readBytes } from "./read_bytes";

export * from "../../wasm_runtime/src/exported";

const openGpu = sharedDevice(async () => ({ gpu: await gpuOfNode() }));

/**
 * The exported step in `source`: a path, an http(s) or file URL, a response, or bytes.
 * Rejects with ProgramError when it is damaged, of another version, or for neither WebAssembly nor WebGPU (npm package
 * `webgpu`); with DeviceError when it needs a GPU and there is none; FetchError, CompileError, OutOfMemoryError.
 */
export async function load(source: string | URL | ByteSource, options: ModelOptions = {}): Promise<Model> {
  const threads = threadCount(options.threads, availableParallelism());
  const bytes =
    typeof source === "string" || source instanceof URL
      ? await open(source, options)
      : await bytesOf(source, options);
  return loadModel(bytes, { pool: () => sharedPool(threads, startWorker), gpu: openGpu });
}

async function open(place: string | URL, options: ModelOptions): Promise<Uint8Array> {
  if (/^https?:/.test(String(place))) return bytesOf(await fetchFile(place, "load", options.signal), options);
  const bytes = await readBytes(place instanceof URL ? fileURLToPath(place) : place);
  return collect({ pieces: once(bytes), length: bytes.length }, options);
}
