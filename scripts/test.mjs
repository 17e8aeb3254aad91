/**
 * Runs the unit tests of the TypeScript sources under Node's test runner: all, or the files that are named.
 *
 *     npm test -- wasm_runtime/tests/source.test.ts
 */

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const root = fileURLToPath(new URL("../", import.meta.url));
const folders = ["wasm_runtime/tests", "loader/tests", "web/tests"];
const named = process.argv.slice(2);
const tests =
  named.length > 0
    ? named
    : folders.flatMap((folder) =>
        readdirSync(root + folder)
          .filter((name) => name.endsWith(".test.ts"))
          .map((name) => `${folder}/${name}`),
      );
const programs = ["thread_worker", "print_features", "print_dots"].map(
  (name) => `wasm_runtime/tests/${name}.ts`,
);

await build({
  entryPoints: [...tests, ...programs].map((name) => root + name),
  outbase: root,
  outdir: `${root}build/tests`,
  bundle: true,
  format: "esm",
  outExtension: { ".js": ".mjs" },
  platform: "node",
  external: ["pyodide", "esbuild"],
  loader: { ".py": "text" },
  define: {
    POLYGRAD_ASSETS: JSON.stringify({ pyodide: "1.2.3" }),
    POLYGRAD_RELEASE: JSON.stringify("0.1.0"),
  },
  sourcemap: "inline",
  logLevel: "warning",
});
const built = tests.map((name) => `${root}build/tests/${name.replace(/ts$/, "mjs")}`);
const { status } = spawnSync(
  process.execPath,
  ["--enable-source-maps", "--expose-gc", "--test-reporter=spec", "--test", ...built],
  { cwd: root, stdio: "inherit" },
);
process.exitCode = status ?? 1;
