/** polygrad on the page's own thread. */

import { load } from "/dist/polygrad.mjs";
import { source } from "./python.mjs";

export async function multiply(a, b) {
  const python = await load({ threads: 1 });
  return { product: python.runPython(source(a, b)).toJs(), after: python.kept };
}
