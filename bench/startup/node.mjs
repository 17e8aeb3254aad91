#!/usr/bin/env node
/** One process: `node.mjs polygrad|pyodide CACHE` prints `{seconds, product}`, from its start to the product. */

import { A, B } from "./matrices.mjs";
import { source } from "./python.mjs";

const [library, cacheDir] = process.argv.slice(2);

const LIBRARIES = {
  async polygrad() {
    const { loadPolygrad } = await import("../../node/dist/index.js");
    const python = await loadPolygrad({ cacheDir, threads: 1 });
    return [python.runPython(source(A, B)).toJs(), python.kept];
  },
  async pyodide() {
    const { loadPyodide } = await import("pyodide");
    const python = await loadPyodide();
    const sum = "sum(a[4 * i + k] * b[4 * k + j] for k in range(4))";
    const code = `a, b = ${JSON.stringify(A)}, ${JSON.stringify(B)}; [${sum} for i in range(4) for j in range(4)]`;
    return [python.runPython(code).toJs(), undefined];
  },
};

const [product, after] = await LIBRARIES[library]();
const seconds = performance.now() / 1000;
await after;
console.log(JSON.stringify({ seconds, product }));
process.exit();
