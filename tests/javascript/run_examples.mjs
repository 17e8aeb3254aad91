/** Runs examples in one session: `node run_examples.mjs PACKAGE direct|worker < [code, ...]` prints what differs. */

import { createRequire } from "node:module";
import { text } from "node:stream/consumers";

const [folder, mode] = process.argv.slice(2);
const { create } = createRequire(`${folder}/`)("polygrad");
const pg = await create({ worker: mode === "worker" });
const AsyncFunction = (async () => undefined).constructor;

/** A line whose value is checked: `code; // value`, or `code; // ≈ value`, whose digits are rounded. */
const CHECKED = /^( *)(.*); \/\/ (≈ )?(.*)$/gm;

/** Whether numbers are within `tolerance`, and everything else is equal. */
function isClose(a, b, tolerance) {
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((x, i) => isClose(x, b[i], tolerance));
  if (typeof a !== "number" && typeof a !== "bigint") return a === b;
  const [x, y] = [Number(a), Number(b)];
  return Object.is(x, y) || x === y || Math.abs(x - y) <= tolerance * Math.max(1, Math.abs(y));
}

/** The values of the checked lines of a program, beside those that it says. */
async function valuesOf(code) {
  const program = code.replace(CHECKED, (_, indent, line, about, value) => {
    return `${indent}checked.push([${line}, ${value}, ${about === undefined ? 1e-4 : 1e-3}]);`;
  });
  const checked = [];
  await new AsyncFunction("Tensor", "nn", "checked", program)(pg.Tensor, pg.nn, checked);
  return checked;
}

const different = [];
for (const code of JSON.parse(await text(process.stdin))) {
  try {
    const checked = await valuesOf(code);
    const wrong = checked.filter(([found, told, tolerance]) => !isClose(found, told, tolerance));
    if (checked.length === 0 || wrong.length > 0) different.push([code, String(wrong)]);
  } catch (error) {
    different.push([code, String(error)]);
  }
}
console.log(JSON.stringify(different));
pg.close();
process.exit(0);
