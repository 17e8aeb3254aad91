/** Does jobs in a worker. */

import * as runtime from "/dist/polygrad-runtime.mjs";
import * as tokenizers from "/dist/polygrad-tokenizers.mjs";

import { doJob } from "./text_job.mjs";

globalThis.onmessage = async ({ data: jobs }) => {
  const results = [];
  for (const job of jobs) results.push(await doJob({ runtime, tokenizers }, job));
  globalThis.postMessage(results);
};
