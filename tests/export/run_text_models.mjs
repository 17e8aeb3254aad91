/**
 * `node run_text_models.mjs RUNTIME TOKENIZERS JOBS`: for each job in a JSON file, loads a model and prints what it gives.
 * `page/text.mjs` does the same in a page.
 */

import { readFile } from "node:fs/promises";

import { doJob } from "./page/text_job.mjs";

const [runtime, tokenizers, jobs] = process.argv.slice(2);
const modules = { runtime: await import(runtime), tokenizers: await import(tokenizers) };
const results = [];
for (const job of JSON.parse(await readFile(jobs, "utf8"))) results.push(await doJob(modules, job));
console.log(JSON.stringify(results));
