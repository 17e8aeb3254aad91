/** `node --expose-gc growth_in_node.mjs PACKAGE worker|direct` prints what `growth.mjs` saw. */

import { createRequire } from "node:module";

import { grow } from "./growth.mjs";

const [folder, mode] = process.argv.slice(2);
const { create } = createRequire(`${folder}/`)("polygrad");
const pg = await create({ worker: mode === "worker" });
console.log(JSON.stringify(await grow(pg, () => globalThis.gc())));
process.exit(0);
