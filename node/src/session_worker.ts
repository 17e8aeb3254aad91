/** The worker that `create({ worker: true })` starts. */

import { parentPort } from "node:worker_threads";

import { startBridge } from "../../loader/src/bridge";
import { serveSession } from "../../loader/src/hosting";
import { loadOptions, type CreateOptions } from "./create";
import { loadPolygrad } from "./index";

const port = parentPort;

const receive = serveSession(
  (message, transfer) => port?.postMessage(message, transfer),
  async (options, listeners) =>
    startBridge(await loadPolygrad(loadOptions({ ...(options as CreateOptions), ...listeners }))),
);

port?.on("message", receive);
