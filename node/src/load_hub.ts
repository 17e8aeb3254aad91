/** The JavaScript libraries of `polygrad.hf`, in Node. */

import { createRequire } from "node:module";

/** What `loader/src/hub.ts` exports, at once: CommonJS is loaded while Python waits. */
export function loadHub(): unknown {
  return createRequire(import.meta.url)("./cjs/hub.js");
}
