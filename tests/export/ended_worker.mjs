/** A worker that loads a model and runs it for each message. */

import { parentPort, workerData } from "node:worker_threads";

const { load } = await import(workerData.runtime);
const model = await load(workerData.path);
parentPort.on("message", async (inputs) => parentPort.postMessage(await model.run(inputs)));
parentPort.postMessage("ready");
