/** A worker of the tests' thread pools. */

import { parentPort } from "node:worker_threads";

import { Thread, type ThreadMessage } from "../src/thread";

const thread = new Thread();

parentPort?.on("message", (message: ThreadMessage) => {
  thread.receive(message);
});
