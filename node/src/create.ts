/** `create`: polygrad for JavaScript, in Node. */

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";

import { startBridge } from "../../loader/src/bridge";
import { connectSession } from "../../loader/src/hosting";
import {
  ArgumentError,
  createApi,
  createDirectApi,
  DirectTransport,
  sharedPipeline,
  type SharedPipeline,
  type Connection,
  type DirectPolygrad,
  type Host,
  type Polygrad,
} from "../../wasm_runtime/src/api/index";
import type { FileCache } from "../../wasm_runtime/src/cache/file_cache";
import { cacheIn } from "./file_cache";
import { diskFolder } from "./disk_folder";
import { loadPolygrad, type LoadOptions } from "./index";

export interface CreateOptions extends LoadOptions {
  /** The default device: "WASM" (the default), "WEBGPU", or "auto", which is WEBGPU where there is a GPU. */
  device?: string;
  /** Whether polygrad runs in a worker, so that this thread stays free. Then only awaited reads work. */
  worker?: boolean;
}

/** The pieces of a file, which is opened when the first is asked for, and closed after the last. */
async function* piecesOf(path: string): AsyncGenerator<Uint8Array> {
  yield* createReadStream(path) as AsyncIterable<Uint8Array>;
}

/** Opens files by their path or address. */
function hostOn(cache: FileCache): Host {
  return {
    cache,
    async open(source, what, options) {
      const address = typeof source === "string" && /^https?:/.test(source) ? new URL(source) : source;
      if (address instanceof URL && address.protocol !== "file:") return cache.open(address, what, options);
      const path = address instanceof URL ? fileURLToPath(address) : address;
      const { size } = await stat(path).catch((error: unknown) => {
        throw new ArgumentError(`${what}: expected a file that can be read: ${String(error)}`, {
          cause: error,
        });
      });
      return cache.verified({ pieces: piecesOf(path), length: size }, what, path, options);
    },
    folder: diskFolder,
    loadCSV: async () => (await import("../../loader/src/csv")).parseCSV,
  };
}

/** The options that the loader takes. */
export function loadOptions({ device, ...options }: Omit<CreateOptions, "worker">): LoadOptions {
  return device === undefined ? options : { ...options, env: { DEVICE: device, ...options.env } };
}

function startWorker(options: CreateOptions): Promise<Connection> {
  const { stdout, stderr, onProgress, signal, ...sent } = options;
  const worker = new Worker(new URL("./session_worker.js", import.meta.url));
  return connectSession(
    {
      post: (message, transfer) => {
        worker.postMessage(message, transfer);
      },
      listen: (listener) => void worker.on("message", listener),
      failed: (listener) => {
        worker.on("error", (error) => {
          listener(String(error));
        });
        worker.on("exit", (status) => {
          listener(`it ended with status ${status}`);
        });
      },
      // The process may end when nothing is awaited any more.
      busy: (awaited) => {
        if (awaited) worker.ref();
        else worker.unref();
      },
      close: () => void worker.terminate(),
    },
    sent,
    { stdout, stderr, onProgress },
    signal,
  );
}

/**
 * Start polygrad, in a Python inside of this process. What runs on the same thread can also be read at once.
 *
 *     const { Tensor, nn } = await create();
 *     console.log(await new Tensor([[1, 2], [3, 4]]).sum().item());
 */
export async function create(options?: CreateOptions & { worker?: false }): Promise<DirectPolygrad>;
export async function create(options: CreateOptions): Promise<Polygrad>;
export async function create({ worker = false, ...options }: CreateOptions = {}): Promise<Polygrad> {
  const host = hostOn(cacheIn(options.cacheDir));
  if (worker) return createApi(await startWorker(options), host);
  const { bridge, info } = startBridge(await loadPolygrad(loadOptions(options)));
  return createDirectApi({ transport: new DirectTransport(bridge), info }, host);
}

/**
 * A model for a task, in a worker of its own: see `Polygrad.pipeline`. All models share that worker.
 *
 *     const generator = await pipeline("text-generation", "models/SmolLM2-135M-Instruct");
 *     for await (const text of generator.stream("Once upon a time")) process.stdout.write(text);
 */
export const pipeline: SharedPipeline = sharedPipeline((options) => create(options));
