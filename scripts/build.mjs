/** Bundles the Node package into `node/dist` and the browser package into `web/dist`. */

import { rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const path = (relative) => fileURLToPath(new URL(`../${relative}`, import.meta.url));

const common = { bundle: true, sourcemap: true, target: "es2022", logLevel: "warning" };

await Promise.all(
  ["node/dist", "web/dist"].map((folder) => rm(path(folder), { recursive: true, force: true })),
);
await Promise.all([
  build({
    ...common,
    entryPoints: ["main", "index", "cli", "thread", "session_worker"].map((name) =>
      path(`node/src/${name}.ts`),
    ),
    outdir: path("node/dist"),
    platform: "node",
    format: "esm",
    splitting: true,
    external: ["pyodide"],
  }),
  build({
    ...common,
    entryPoints: [path("node/src/main.ts")],
    outdir: path("node/dist/cjs"),
    platform: "node",
    format: "cjs",
    external: ["pyodide"],
    // Files are found from where the modules lie, which are one folder up.
    define: { "import.meta.url": "__module" },
    banner: {
      js: 'const __module = require("node:url").pathToFileURL(require("node:path").join(__dirname, "../main.js")).href;',
    },
  }),
  build({
    ...common,
    entryPoints: {
      polygrad: path("web/src/index.ts"),
      "polygrad-worker": path("web/src/worker.ts"),
      "polygrad-session": path("web/src/session_worker.ts"),
      "polygrad-thread": path("web/src/thread.ts"),
    },
    outdir: path("web/dist"),
    format: "esm",
    outExtension: { ".js": ".mjs" },
  }),
  build({
    ...common,
    entryPoints: { polygrad: path("web/src/script.ts") },
    outdir: path("web/dist"),
    format: "iife",
    globalName: "polygrad",
  }),
]);
// In the folder of a package of ES modules, these are none.
await writeFile(path("node/dist/cjs/package.json"), '{ "type": "commonjs" }\n');
