/** Pyodide as it comes, with lists: what polygrad would be at best without preparing its files. */

import { loadPyodide } from "/dist/pyodide/pyodide.mjs";

export function multiplyLists(python, a, b) {
  const sum = "sum(a[4 * i + k] * b[4 * k + j] for k in range(4))";
  const code = `a, b = ${JSON.stringify(a)}, ${JSON.stringify(b)}; [${sum} for i in range(4) for j in range(4)]`;
  return { product: python.runPython(code).toJs() };
}

export async function multiply(a, b) {
  return multiplyLists(await loadPyodide({ indexURL: "/dist/pyodide/" }), a, b);
}
