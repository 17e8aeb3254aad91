/** Starts Python with polygrad on this thread: in a page or in a worker. */

import type { loadPyodide as LoadPyodide } from "pyodide";

import { ASSETS } from "../../loader/src/assets";
import { decompressed } from "../../loader/src/gzip";
import { poolFor, threadVariables } from "../../loader/src/pool";
import type { CommonOptions, Polygrad } from "../../loader/src/polygrad";
import type { CreateModule } from "../../loader/src/pyodide_types";
import { startPolygrad } from "../../loader/src/start";
import { FetchError } from "../../wasm_runtime/src/errors";
import { fetchFile } from "../../wasm_runtime/src/source";
import { WebGPUDevice } from "../../wasm_runtime/src/webgpu/device";
import type { ThreadPool } from "../../wasm_runtime/src/thread_pool";
import { browserStore } from "./browser_store";
import { importServed } from "./import_served";
import { archiveAddress, folderAt, pageAddress, pyodideFolder } from "./places";
import { startThread } from "./start_worker";

export interface LoadOptions extends CommonOptions {
  /** The address of a wheel to use instead of this package's polygrad. */
  wheelUrl?: string | URL;
  /** The folder with Pyodide's files. The default is `pyodide/` beside this script; on a CDN, Pyodide's own package. */
  indexURL?: string | URL;
  /** Whether the browser stores a snapshot of Python's memory, compiled kernels and bytecode of wheels. The default is true. */
  cache?: boolean;
}

/** The options with addresses made absolute, so that they mean the same in a worker. */
export function absolute(
  options: LoadOptions,
  base: URL,
): LoadOptions & { wheelUrl?: string; indexURL: string } {
  const { wheelUrl, indexURL, ...others } = options;
  return {
    ...others,
    ...(wheelUrl !== undefined && { wheelUrl: new URL(wheelUrl, pageAddress()).href }),
    indexURL: (indexURL === undefined ? pyodideFolder(base) : folderAt(indexURL)).href,
  };
}

/** The error for a file of this package's or Pyodide's that is not at `url`. */
function missing(url: string, got: string, cause?: unknown): FetchError {
  const advice =
    "`npx polygrad-assets FOLDER` copies all files; then create({ baseURL: the folder's address })";
  return new FetchError(`polygrad: expected a file at ${url}, got ${got}: ${advice}`, { url, cause });
}

async function fetchBytes(
  url: string,
  { signal }: LoadOptions,
  priority?: RequestPriority,
): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetchFile(url, "polygrad", signal, priority);
  // Servers of applications answer with their page where a file is missing.
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("text/html")) throw missing(url, "a page of HTML");
  return new Uint8Array(await response.arrayBuffer());
}

/** A module of Pyodide's. */
function importPyodide(url: string): Promise<unknown> {
  return importServed(url).catch((error: unknown) => {
    throw missing(url, String(error), error);
  });
}

/** A promise whose failure is reported where it is awaited, perhaps later. */
function early<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

/** Files by address. */
type Files = ReadonlyMap<string, Uint8Array>;

/** Whether a service worker answers the requests of this page, but for those that wait synchronously. */
function hasServiceWorker(): boolean {
  try {
    return (
      typeof document !== "undefined" && "serviceWorker" in navigator && !!navigator.serviceWorker.controller
    );
  } catch {
    return false; // reading navigator.serviceWorker throws in a frame with the attribute sandbox
  }
}

/** Those of the files `urls` that a service worker keeps for when there is no network. */
async function keptByServiceWorker(urls: readonly string[]): Promise<Files> {
  const kept = new Map<string, Uint8Array>();
  if (!hasServiceWorker()) return kept;
  try {
    for (const url of urls) {
      const response = await caches.match(url, { ignoreVary: true });
      if (response !== undefined) kept.set(url, new Uint8Array(await response.arrayBuffer()));
    }
  } catch (error) {
    console.warn(`polygrad: files that a service worker keeps cannot be read: ${String(error)}`);
  }
  return kept;
}

/** The bytes at `url`, while Python waits: only an XMLHttpRequest is synchronous. `kept`: for when there is no network. */
function fetchNow(url: string, kept: Files): Uint8Array {
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  // A synchronous request cannot return binary data, so the bytes come as characters.
  request.overrideMimeType("text/plain; charset=x-user-defined");
  try {
    request.send();
  } catch (cause) {
    const found = kept.get(url);
    if (found !== undefined) return found;
    throw new FetchError(`polygrad: expected Python modules at ${url}, got no answer`, { url, cause });
  }
  const { status } = request;
  if (status !== 200) {
    throw new FetchError(`polygrad: expected Python modules at ${url}, got status ${status}`, {
      url,
      status,
    });
  }
  if (hasServiceWorker()) void fetch(url).catch(() => undefined); // so that it can keep this file, too
  return Uint8Array.from(request.responseText, (character) => character.charCodeAt(0) & 255);
}

/** A function that loads the JavaScript libraries of `polygrad.hf`: a promise of them, or later the libraries. */
function hubLoader(base: URL): () => unknown {
  const address = new URL("polygrad-hub.mjs", base).href;
  let libraries: unknown;
  return () => {
    libraries ??= importServed(address).then(
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
function startPool(options: LoadOptions, base: URL): ThreadPool | undefined {
  if (!globalThis.crossOriginIsolated) return undefined;
  const url = new URL("polygrad-thread.mjs", base);
  const pool = poolFor(options, navigator.hardwareConcurrency, () => startThread(url));
  pool?.start();
  return pool;
}

/** Start Python. Relative addresses are relative to the page; `base` is the folder of this package's files. */
export async function load(options: LoadOptions, base: URL): Promise<Polygrad> {
  const { wheelUrl, indexURL, cache = true } = absolute(options, base);
  const pool = startPool(options, base);
  const store = cache ? browserStore() : undefined;
  const wheel = wheelUrl === undefined ? undefined : early(fetchBytes(wheelUrl, options));
  // Python's own files are first: it starts while this one arrives.
  const fetchArchive = async (): Promise<Uint8Array<ArrayBuffer>> =>
    decompressed(await fetchBytes(archiveAddress(base, ASSETS.package), options, "low"));
  const archive = wheel === undefined ? early(fetchArchive()) : undefined;
  const createModule = early(
    importPyodide(`${indexURL}pyodide.asm.mjs`).then(
      (module) => (module as { default: CreateModule }).default,
    ),
  );
  const [stdlib, applications] = [
    `${indexURL}python_stdlib.zip`,
    archiveAddress(base, ASSETS.applications),
  ] as const;
  const kept = await keptByServiceWorker([stdlib, applications]);
  const { loadPyodide, version } = (await importPyodide(`${indexURL}pyodide.mjs`)) as {
    loadPyodide: typeof LoadPyodide;
    version: string;
  };
  return startPolygrad(
    {
      loadPyodide,
      version,
      createModule,
      indexURL,
      stdLibURL: archiveAddress(base, ASSETS.stdlib),
      archive: () => archive ?? fetchArchive(),
      wheel,
      readStdlib: () => fetchNow(stdlib, kept),
      readApplications: () => fetchNow(applications, kept),
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
