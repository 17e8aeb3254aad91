/** Starts Python with polygrad on this thread: in a page or in a worker. */

import type { loadPyodide as LoadPyodide } from "pyodide";

import { ASSETS } from "../../loader/src/assets";
import { poolFor, threadVariables } from "../../loader/src/pool";
import type { CommonOptions, Polygrad } from "../../loader/src/polygrad";
import type { CreateModule } from "../../loader/src/pyodide_types";
import { startPolygrad } from "../../loader/src/start";
import { FetchError } from "../../wasm_runtime/src/errors";
import { fetchFile } from "../../wasm_runtime/src/source";
import { WebGPUDevice } from "../../wasm_runtime/src/webgpu/device";
import type { ThreadPool } from "../../wasm_runtime/src/thread_pool";
import { browserStore } from "./browser_store";
import { startWorker } from "./start_worker";

export interface LoadOptions extends CommonOptions {
  /** The address of a wheel to use instead of this package's polygrad. */
  wheelUrl?: string | URL;
  /** The folder with Pyodide's files. The default is `pyodide/` beside this script. */
  indexURL?: string | URL;
  /** Whether the browser stores a snapshot of Python's memory, compiled kernels and bytecode of wheels. The default is true. */
  cache?: boolean;
}

/** The options with addresses made absolute, so that they mean the same in a worker. */
export function absolute(
  options: LoadOptions,
  base: string | URL,
): LoadOptions & { wheelUrl?: string; indexURL: string } {
  const against = typeof document === "undefined" ? base : document.baseURI;
  const { wheelUrl, indexURL, ...others } = options;
  return {
    ...others,
    ...(wheelUrl !== undefined && { wheelUrl: new URL(wheelUrl, against).href }),
    indexURL: indexURL === undefined ? new URL("pyodide/", base).href : new URL(indexURL, against).href,
  };
}

async function fetchBytes(url: string, signal: AbortSignal | undefined): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetchFile(url, "polygrad", signal);
  return new Uint8Array(await response.arrayBuffer());
}

/** A promise whose failure is reported where it is awaited, perhaps later. */
function early<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** The bytes at `url`, while Python waits: only an XMLHttpRequest is synchronous. */
function fetchNow(url: string): Uint8Array {
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  // A synchronous request cannot return binary data, so the bytes come as characters.
  request.overrideMimeType("text/plain; charset=x-user-defined");
  request.send();
  if (request.status !== 200) {
    const { status } = request;
    throw new FetchError(`polygrad: expected Python modules at ${url}, got status ${status}`, {
      url,
      status,
    });
  }
  return Uint8Array.from(request.responseText, (character) => character.charCodeAt(0) & 255);
}

/** A function that loads the JavaScript libraries of `polygrad.hf`: a promise of them, or later the libraries. */
function hubLoader(base: string | URL): () => unknown {
  const address = new URL("polygrad-hub.mjs", base).href;
  let libraries: unknown;
  return () => {
    libraries ??= import(/* webpackIgnore: true */ /* @vite-ignore */ address).then(
      (module: unknown) => (libraries = module),
      (error: unknown) => {
        libraries = undefined; // the next call tries again
        throw error;
      },
    );
    return libraries;
  };
}

/** Start threads, where the page may share memory with them, while this thread waits for files. */
function startPool(options: LoadOptions, base: string | URL): ThreadPool | undefined {
  if (!globalThis.crossOriginIsolated) return undefined;
  const url = new URL("polygrad-thread.mjs", base);
  const pool = poolFor(options, navigator.hardwareConcurrency, () => startWorker(url));
  pool?.start();
  return pool;
}

/** Start Python. Relative addresses are relative to the page; `base` is where this script lies. */
export async function load(options: LoadOptions, base: string | URL): Promise<Polygrad> {
  const { wheelUrl, indexURL, cache = true } = absolute(options, base);
  const pool = startPool(options, base);
  const store = cache ? browserStore() : undefined;
  const wheel = wheelUrl === undefined ? undefined : early(fetchBytes(wheelUrl, options.signal));
  const archiveUrl = new URL(`python/${ASSETS.package}`, base).href;
  const archive = wheel === undefined ? early(fetchBytes(archiveUrl, options.signal)) : undefined;
  // Bundlers must not resolve these: they are files that are served.
  const createModule = early(
    import(/* webpackIgnore: true */ /* @vite-ignore */ `${indexURL}pyodide.asm.mjs`).then(
      (module: { default: CreateModule }) => module.default,
    ),
  );
  const address = `${indexURL}pyodide.mjs`;
  const { loadPyodide, version } = (await import(/* webpackIgnore: true */ /* @vite-ignore */ address)) as {
    loadPyodide: typeof LoadPyodide;
    version: string;
  };
  return startPolygrad(
    {
      loadPyodide,
      version,
      createModule,
      indexURL,
      stdLibURL: new URL(`python/${ASSETS.stdlib}`, base).href,
      archive: () => archive ?? fetchBytes(archiveUrl, options.signal),
      wheel,
      readStdlib: () => fetchNow(`${indexURL}python_stdlib.zip`),
      readApplications: () => fetchNow(new URL(`python/${ASSETS.applications}`, base).href),
      engine: navigator.userAgent,
      openGpu: () =>
        WebGPUDevice.open(navigator.gpu, {
          nudge: navigator.userAgent.includes("Firefox"),
        }),
      loadHub: hubLoader(base),
      store,
      kernels: store,
    },
    options,
    { HOME: "/home/pyodide", ...threadVariables(options, navigator.hardwareConcurrency, pool) },
    pool,
  );
}
