/** Builds and runs `wasm_runtime/tests/fuzz`, which says what its options are. */

import { spawnSync } from "node:child_process";

import { buildTests, root } from "./build_tests.mjs";

const built = await buildTests(["wasm_runtime/tests/fuzz/main.ts"]);
const { status } = spawnSync(
  process.execPath,
  ["--enable-source-maps", "--max-old-space-size=512", ...built, ...process.argv.slice(2)],
  { cwd: root, stdio: "inherit" },
);
process.exitCode = status ?? 1;
