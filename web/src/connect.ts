/** The page's end of the worker. */

import { connectSession, type Listeners } from "../../loader/src/hosting";
import type { Connection } from "../../wasm_runtime/src/api/index";
import { absolute, type LoadOptions } from "./load";
import { startWorker } from "./start_worker";

/** How a session starts, in the page or in a worker. */
export interface SessionOptions extends LoadOptions {
  /** The default device: "WASM" (the default), "WEBGPU", or "auto", which is WEBGPU where there is a GPU. */
  device?: string;
}

/** Options as they can be sent to a worker. */
export type SentOptions = Omit<SessionOptions, keyof Listeners | "signal">;

/** The options that the loader takes. */
export function loadOptions({ device, ...options }: SessionOptions): LoadOptions {
  return device === undefined ? options : { ...options, env: { DEVICE: device, ...options.env } };
}

/** Connects to a new worker, whose script `polygrad-worker.mjs` lies in the folder `base`. */
export function connectWorker(options: SessionOptions, base: URL): Promise<Connection> {
  const { stdout, stderr, onProgress, signal, ...sent } = absolute(options, base) as SessionOptions;
  const { worker, failed } = startWorker(new URL("polygrad-worker.mjs", base));
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
      failed,
      close: () => {
        worker.terminate();
      },
    },
    sent,
    { stdout, stderr, onProgress },
    signal,
  );
}
