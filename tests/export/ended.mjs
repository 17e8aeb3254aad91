/** `node ended.mjs RUNTIME MODEL`: a model whose run has no end, in a worker that is ended; prints what happened. */

import { once } from "node:events";
import { Worker } from "node:worker_threads";

const [runtime, path] = process.argv.slice(2);
const worker = new Worker(new URL("./ended_worker.mjs", import.meta.url), { workerData: { runtime, path } });
await once(worker, "message"); // ready
const answers = [];
worker.on("message", (answer) => answers.push(answer));
worker.postMessage({});
await new Promise((resolve) => setTimeout(resolve, 300));
const code = await worker.terminate();
console.log(JSON.stringify({ answers: answers.length, code }));
