/** polygrad in a worker. */

import { loadWorker } from "/dist/polygrad.mjs";
import { source } from "./python.mjs";

export async function multiply(a, b) {
  const python = await loadWorker({ threads: 1 });
  return { product: await python.runPython(source(a, b)), after: undefined };
}
