/** The worker that `create({ worker: true })` starts. */

import { parentPort } from "node:worker_threads";

import { serveSession, startBridge } from "../../wasm_runtime/src/api/index";
import { loadOptions, type CreateOptions } from "./create";
import { loadPolygrad } from "./index";

const port = parentPort;

const receive = serveSession(
  (message, transfer) => port?.postMessage(message, transfer),
  async (options, { stdout, stderr }) => {
    const { pyodide } = await loadPolygrad(loadOptions({ ...(options as CreateOptions), stdout, stderr }));
    return startBridge(pyodide);
  },
);

port?.on("message", receive);
