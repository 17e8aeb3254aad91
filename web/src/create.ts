/** `create`: polygrad for JavaScript, in a page. */

import { startBridge } from "../../loader/src/bridge";
import { connectSession, type Listeners } from "../../loader/src/hosting";
import {
  createApi,
  DirectTransport,
  openUrl,
  Session,
  type Polygrad,
} from "../../wasm_runtime/src/api/index";
import { pixelsOf } from "./image";
import { absolute, load, type LoadOptions } from "./load";
import { startWorker } from "./start_worker";

export interface CreateOptions extends LoadOptions {
  /** The default device, such as "WASM"; "auto", unless given, is the best that there is. */
  device?: string;
  /** Whether it runs in a worker, so that the page never freezes; then only awaited reads work. */
  worker?: boolean;
  /** The folder with this package's files; that of this script unless given. */
  baseURL?: string | URL;
}

/** Options as they can be sent to a worker. */
export type SentOptions = Omit<CreateOptions, keyof Listeners | "worker">;

/** The options that the loader takes. */
export function loadOptions({ device = "auto", ...options }: Omit<CreateOptions, "worker">): LoadOptions {
  return device === "auto" ? options : { ...options, env: { DEVICE: device, ...options.env } };
}

let said = false;

function sayOneThread({ threads }: CreateOptions): void {
  if (said || globalThis.crossOriginIsolated || threads === 1) return;
  said = true;
  console.info(
    "polygrad: the page is not cross-origin isolated, so kernels run on one thread. For more, send the headers " +
      "Cross-Origin-Opener-Policy: same-origin and Cross-Origin-Embedder-Policy: require-corp.",
  );
}

async function inThisThread(options: CreateOptions, base: string | URL): Promise<Session> {
  const { pyodide } = await load(loadOptions(options), base);
  const { bridge, info } = startBridge(pyodide);
  return new Session(new DirectTransport(bridge), info);
}

function inWorker(options: CreateOptions, base: string | URL): Promise<Session> {
  const { stdout, stderr, onProgress, ...sent } = absolute(options, base) as CreateOptions;
  const url = new URL("polygrad-session.mjs", base);
  const worker = startWorker(url);
  return connectSession(
    {
      post: (message, transfer) => {
        worker.postMessage(message, transfer);
      },
      listen: (listener) => {
        worker.addEventListener("message", (event) => {
          listener(event.data);
        });
      },
      failed: (listener) => {
        worker.addEventListener("error", (event) => {
          listener(event.message || `${url.href} could not be loaded`);
        });
      },
      close: () => {
        worker.terminate();
      },
    },
    sent,
    { stdout, stderr, onProgress },
  );
}

/** Starts polygrad; its files are where `script` is, unless an option says otherwise. */
export function creator(script: string | URL): (options?: CreateOptions) => Promise<Polygrad> {
  return async ({ worker = false, baseURL, ...options } = {}) => {
    const base = baseURL === undefined ? script : new URL(`${String(baseURL)}/`, document.baseURI);
    sayOneThread(options);
    const session = await (worker ? inWorker(options, base) : inThisThread(options, base));
    session.pixels = pixelsOf;
    return createApi(session, { open: openUrl });
  };
}
