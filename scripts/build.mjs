/** Bundles the Node package into `node/dist` and the browser package into `web/dist`. */

import { rm } from "node:fs/promises";
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
