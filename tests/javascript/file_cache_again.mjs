/** The second process of file_cache.mjs: `node file_cache_again.mjs PACKAGE URL`. */

import { join } from "node:path";

import { cases } from "./file_cache_cases.mjs";

const [folder, url] = process.argv.slice(2);
const runtime = await import(join(folder, "node_modules/polygrad/dist/runtime.js"));
console.log(JSON.stringify(await cases.second(runtime, url)));
