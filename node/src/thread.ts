/** A worker that runs kernels. */

import { parentPort } from "node:worker_threads";

import { Thread, type ThreadMessage } from "../../wasm_runtime/src/thread";

const thread = new Thread();

parentPort?.on("message", (message: ThreadMessage) => {
  thread.receive(message);
});
