/** `create`: polygrad for JavaScript, in a page. */

import { startBridge } from "../../loader/src/bridge";
import type * as CSV from "../../loader/src/csv";
import {
  createApi,
  createDirectApi,
  DirectTransport,
  type Connection,
  type DirectPolygrad,
  type Host,
  type Polygrad,
} from "../../wasm_runtime/src/api/index";
import { connectWorker, loadOptions, type SessionOptions } from "./connect";
import { cache } from "./file_cache";
import { installFormatter } from "./formatter";
import { decodeImage, pixelsOf } from "./image";
import { importServed } from "./import_served";
import { load } from "./load";
import { opfsFolder } from "./opfs_folder";
import { folderAt, folderOf } from "./places";
import { decodeSound } from "./sound";

export interface CreateOptions extends SessionOptions {
  /** Whether polygrad runs in a worker, so that the page never freezes. Then only awaited reads work. */
  worker?: boolean;
  /**
   * The folder with this package's files, relative to the page or to the worker's script. The default is the folder of
   * this script, also on a CDN.
   */
  baseURL?: string | URL;
}

let hasTold = false;

/** Tell developers, once, why kernels run on one thread. */
function tellOneThread({ threads }: CreateOptions): void {
  if (hasTold || globalThis.crossOriginIsolated || threads === 1) return;
  hasTold = true;
  console.info(
    "polygrad: the page is not cross-origin isolated, so kernels run on one thread. For more, send the headers " +
      "Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp.",
  );
}

async function onThisThread(options: SessionOptions, base: URL): Promise<Connection> {
  const { bridge, info } = startBridge(await load(loadOptions(options), base));
  return { transport: new DirectTransport(bridge), info };
}

/** Starts polygrad. What runs on the same thread can also be read at once. */
export interface Create {
  (options?: CreateOptions & { worker?: false }): Promise<DirectPolygrad>;
  (options: CreateOptions): Promise<Polygrad>;
}

/** The function `create` for files that lie beside `script`, unless the option `baseURL` names another folder. */
export function creator(script: string | undefined): Create {
  const create = async ({ worker = false, baseURL, ...options }: CreateOptions = {}): Promise<Polygrad> => {
    const base = baseURL === undefined ? folderOf(script) : folderAt(baseURL);
    tellOneThread(options);
    installFormatter();
    const stored = options.cache === false ? { cache: false } : {};
    const parser = new URL("polygrad-csv.mjs", base).href;
    const host: Host = {
      cache,
      open: (source, what, reading) => cache.open(source, what, { ...reading, ...stored }),
      pixels: pixelsOf,
      decodeImage,
      decodeSound,
      folder: opfsFolder,
      loadCSV: async () => ((await importServed(parser)) as typeof CSV).parseCSV,
    };
    if (worker) return createApi(await connectWorker(options, base), host);
    return createDirectApi(await onThisThread(options, base), host);
  };
  return create as Create;
}
