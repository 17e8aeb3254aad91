/** Builds and runs `wasm_runtime/tests/fuzz`, which says what its options are. */

import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

const root = fileURLToPath(new URL("../", import.meta.url));
const main = "wasm_runtime/tests/fuzz/main";

await build({
  entryPoints: [`${root}${main}.ts`],
  outbase: root,
  outdir: `${root}build/tests`,
  bundle: true,
  format: "esm",
  outExtension: { ".js": ".mjs" },
  platform: "node",
  sourcemap: "inline",
  logLevel: "warning",
});
const program = `${root}build/tests/${main}.mjs`;
const { status } = spawnSync(
  process.execPath,
  ["--enable-source-maps", "--max-old-space-size=512", program, ...process.argv.slice(2)],
  { cwd: root, stdio: "inherit" },
);
process.exitCode = status ?? 1;
