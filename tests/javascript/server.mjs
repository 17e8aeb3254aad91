/** Serves the packed browser files as /package, these tests as /tests, and the examples' data as /data. */

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { startServer } from "../../web/serve.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));

/** Where Pyodide's files are. */
export const PYODIDE = dirname(createRequire(import.meta.url).resolve("pyodide/package.json"));

/** A page without these shares no memory with its workers. */
export const NOT_ISOLATED = {
  "Cross-Origin-Opener-Policy": "unsafe-none",
  "Cross-Origin-Embedder-Policy": "unsafe-none",
};

/** `folder`: where the package is, in node_modules. */
export function servePackage(folder, { headers = {}, mounts = {} } = {}) {
  return startServer({
    headers,
    mounts: {
      "/package/": join(folder, "node_modules/polygrad/dist/browser"),
      "/package/pyodide/": PYODIDE,
      "/tests/": HERE,
      "/data/": join(HERE, "../../examples/data"),
      ...mounts,
    },
  });
}
