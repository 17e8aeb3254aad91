/** Runs the cases in Node: `node node_host.mjs PACKAGE FOLDER worker|direct [CASE...]` prints results as JSON. */

import { createRequire } from "node:module";

import { cases } from "./cases.mjs";
import { runCases } from "./run_cases.mjs";

const [folder, files, mode, ...names] = process.argv.slice(2);
const { create } = createRequire(`${folder}/`)("polygrad");
const worker = mode === "worker";
const pg = await create({ worker });
console.log(JSON.stringify(await runCases(cases, names, pg, { worker, url: files })));
pg.close();
process.exit(0);
