/** `create`: polygrad for JavaScript, in a page. */

import { startBridge } from "../../loader/src/bridge";
import {
  createApi,
  DirectTransport,
  openUrl,
  type Connection,
  type Polygrad,
} from "../../wasm_runtime/src/api/index";
import { connectWorker, loadOptions, type SessionOptions } from "./connect";
import { pixelsOf } from "./image";
import { load } from "./load";

export interface CreateOptions extends SessionOptions {
  /** Whether polygrad runs in a worker, so that the page never freezes. Then only awaited reads work. */
  worker?: boolean;
  /** The folder with this package's files. The default is the folder of this script. */
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

async function onThisThread(options: SessionOptions, base: string | URL): Promise<Connection> {
  const { bridge, info } = startBridge(await load(loadOptions(options), base));
  return { transport: new DirectTransport(bridge), info };
}

/** The function `create` for files that lie beside `script`, unless the option `baseURL` names another folder. */
export function creator(script: string | URL): (options?: CreateOptions) => Promise<Polygrad> {
  return async ({ worker = false, baseURL, ...options } = {}) => {
    const base = baseURL === undefined ? script : new URL(`${String(baseURL)}/`, document.baseURI);
    tellOneThread(options);
    const connection = await (worker ? connectWorker(options, base) : onThisThread(options, base));
    return createApi(connection, { open: openUrl, pixels: pixelsOf });
  };
}
