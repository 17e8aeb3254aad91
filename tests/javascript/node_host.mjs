/** Runs the cases in Node: `node node_host.mjs PACKAGE FOLDER worker|direct [CASE...]` prints results as JSON. */

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { cases } from "./cases.mjs";
import { onnxCases } from "./onnx_cases.mjs";
import { pipelineCases } from "./pipeline_cases.mjs";
import { runCases } from "./run_cases.mjs";
import { stopCases } from "./stop_cases.mjs";

const [location, files, mode, ...names] = process.argv.slice(2);
const { create, progressBar } = createRequire(`${location}/`)("polygrad");
const worker = mode === "worker";
const pg = await create({ worker });
const onnx = JSON.parse(process.env.ONNX_MODELS ? readFileSync(process.env.ONNX_MODELS, "utf8") : "{}");
const models = process.env.PIPELINE_MODELS;
const picture = models === undefined ? [] : JSON.parse(readFileSync(`${models}/picture.json`, "utf8"));
const chosen = names.length > 0 ? { ...cases, ...onnxCases, ...pipelineCases, ...stopCases } : cases;
const own = mkdtempSync(join(tmpdir(), "polygrad-"));
const folder = (name) => join(own, name);
const filesOf = (path) => (existsSync(path) ? readdirSync(path).sort() : []);
const host = { worker, url: files, onnx, models, picture, folder, files: filesOf, progressBar };
// The process ends when all is written: a pipe takes 128 KB at a time.
const results = JSON.stringify(await runCases(chosen, names, pg, host));
await new Promise((resolve) => process.stdout.write(`${results}\n`, resolve));
rmSync(own, { recursive: true });
pg.close();
process.exit(0);
