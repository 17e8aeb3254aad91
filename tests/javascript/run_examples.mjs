/** Runs examples in one session: `node run_examples.mjs PACKAGE direct|worker < [[code, result], ...]` prints those that differ. */

import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const [folder, mode] = process.argv.slice(2);
const { create } = createRequire(`${folder}/`)("polygrad");
const pg = await create({ worker: mode === "worker" });
const AsyncFunction = (async () => undefined).constructor;

/** Whether numbers are within 1e-4, and everything else is equal. */
function isClose(a, b) {
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((x, i) => isClose(x, b[i]));
  if (typeof a === "boolean" || typeof b === "boolean") return a === b;
  const [x, y] = [Number(a), Number(b)];
  return Object.is(x, y) || x === y || Math.abs(x - y) <= 1e-4 * Math.max(1, Math.abs(y));
}

const different = [];
for (const [code, result] of JSON.parse(await text(process.stdin))) {
  try {
    const found = await new AsyncFunction("Tensor", "nn", `return ${code};`)(pg.Tensor, pg.nn);
    if (!isClose(found, new Function(`return ${result};`)())) different.push([code, result, String(found)]);
  } catch (error) {
    different.push([code, result, String(error)]);
  }
}
console.log(JSON.stringify(different));
pg.close();
process.exit(0);
