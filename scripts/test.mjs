/** Runs the unit tests of the TypeScript sources under Node's test runner. */

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const root = fileURLToPath(new URL("../", import.meta.url));
const tests = readdirSync(`${root}wasm_runtime/tests`).filter((name) => name.endsWith(".test.ts"));

await build({
  entryPoints: [...tests, "thread_worker.ts"].map((name) => `${root}wasm_runtime/tests/${name}`),
  outdir: `${root}wasm_runtime/dist/tests`,
  bundle: true,
  format: "esm",
  outExtension: { ".js": ".mjs" },
  platform: "node",
  sourcemap: "inline",
  logLevel: "warning",
});
const built = tests.map((name) => `${root}wasm_runtime/dist/tests/${name.replace(/ts$/, "mjs")}`);
const { status } = spawnSync(
  process.execPath,
  ["--enable-source-maps", "--expose-gc", "--test-reporter=spec", "--test", ...built],
  {
    stdio: "inherit",
  },
);
process.exitCode = status ?? 1;
