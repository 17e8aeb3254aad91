/** Does the jobs of `jobs.json` in the page's own thread and in a worker, and leaves what came of them in `result`. */

import * as runtime from "/dist/polygrad-runtime.mjs";
import * as tokenizers from "/dist/polygrad-tokenizers.mjs";

import { doJob } from "./text_job.mjs";

const jobs = await (await fetch("jobs.json")).json();
const inPage = [];
for (const job of jobs) inPage.push(await doJob({ runtime, tokenizers }, job));

const worker = new Worker("text_worker.mjs", { type: "module" });
const inWorker = await new Promise((settle, fail) => {
  worker.onmessage = ({ data }) => settle(data);
  worker.onerror = ({ message }) => fail(new Error(message));
  worker.postMessage(jobs);
});

// A page that draws while a model gives short answers for a second: how many tasks ran in between.
let ticks = 0;
const timer = setInterval(() => ticks++, 1);
const model = await runtime.loadLanguageModel(jobs[0].source, { tokenizers });
for (const end = performance.now() + 1000; performance.now() < end;) {
  for await (const piece of model.generate("hello", { maxNewTokens: 200, stopTokens: [] })) void piece;
}
clearInterval(timer);

window.result = { inPage, inWorker, ticks };
