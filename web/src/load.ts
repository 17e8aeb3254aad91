/** Starts Python with polygrad on this thread: in a page or in a worker. */

import type { loadPyodide as LoadPyodide } from "pyodide";

import { poolFor, threadVariables } from "../../wasm_runtime/src/loader/pool";
import { furnish, type CommonOptions, type Polygrad } from "../../wasm_runtime/src/loader/polygrad";
import type { ByteStore } from "../../wasm_runtime/src/loader/store";
import type { ThreadPool } from "../../wasm_runtime/src/thread_pool";
import { startWorker } from "./start_worker";

export interface LoadOptions extends CommonOptions {
  /** Where the wheel is; `polygrad.whl` beside this script unless given. */
  wheelUrl?: string | URL;
  /** The folder with Pyodide's files; `pyodide/` beside this script unless given. */
  indexURL?: string | URL;
  /** Whether bytecode is kept in the browser's cache between visits. */
  cache?: boolean;
}

/** The options with addresses made absolute, so that they mean the same in a worker. */
export function absolute(
  options: LoadOptions,
  base: string | URL,
): LoadOptions & { wheelUrl: string; indexURL: string } {
  const against = typeof document === "undefined" ? base : document.baseURI;
  const { wheelUrl, indexURL } = options;
  return {
    ...options,
    wheelUrl: wheelUrl === undefined ? new URL("polygrad.whl", base).href : new URL(wheelUrl, against).href,
    indexURL: indexURL === undefined ? new URL("pyodide/", base).href : new URL(indexURL, against).href,
  };
}

async function fetchBytes(url: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`polygrad: expected the wheel at ${url}, got status ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** The browser's cache storage, which only secure contexts have. */
function browserStore(): ByteStore | undefined {
  if (!globalThis.isSecureContext || typeof caches === "undefined") return undefined;
  const address = (key: string): string => `https://polygrad.invalid/${key}`;
  return {
    async get(key) {
      try {
        const found = await (await caches.open("polygrad")).match(address(key));
        return found === undefined ? undefined : new Uint8Array(await found.arrayBuffer());
      } catch {
        return undefined;
      }
    },
    async set(key, bytes) {
      try {
        const cache = await caches.open("polygrad");
        for (const old of await cache.keys()) await cache.delete(old);
        await cache.put(address(key), new Response(bytes));
      } catch {
        // No room, or storage is switched off: the next visit compiles again.
      }
    },
  };
}

/** Threads, where the page may share memory with them. They start now, while this thread waits for files. */
function startPool(options: LoadOptions, base: string | URL): ThreadPool | undefined {
  if (!globalThis.crossOriginIsolated) return undefined;
  const url = new URL("polygrad-thread.mjs", base);
  const pool = poolFor(options, navigator.hardwareConcurrency, () => startWorker(url));
  pool?.start();
  return pool;
}

/** Start Python. Relative addresses are relative to the page; `base` is where this script lies. */
export async function load(options: LoadOptions, base: string | URL): Promise<Polygrad> {
  const { wheelUrl, indexURL, cache = true, env = {} } = absolute(options, base);
  const pool = startPool(options, base);
  const wheel = fetchBytes(wheelUrl);
  wheel.catch(() => undefined); // reported below, once Pyodide is there
  // Bundlers leave it alone: it is a file that is served.
  const address = `${indexURL}pyodide.mjs`;
  const module = (await import(/* webpackIgnore: true */ /* @vite-ignore */ address)) as {
    loadPyodide: typeof LoadPyodide;
  };
  const threads = threadVariables(options, navigator.hardwareConcurrency, pool);
  const pyodide = await module.loadPyodide({ indexURL, env: { HOME: "/home/pyodide", ...threads, ...env } });
  return furnish(pyodide, await wheel, cache ? browserStore() : undefined, options, pool);
}
