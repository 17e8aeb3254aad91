/** The JavaScript libraries of `polygrad.hf`, in Node. */

import { createRequire } from "node:module";

/** The exports of `loader/src/hub.ts`. CommonJS is loaded synchronously, while Python waits. */
export function loadHub(): unknown {
  return createRequire(import.meta.url)("./cjs/hub.js");
}
