/**
 * Runs the unit tests of the TypeScript sources under Node's test runner: all, or the files that are named.
 *
 *     npm test -- wasm_runtime/tests/source.test.ts
 */

import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";

import { buildTests, root } from "./build_tests.mjs";

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

const built = await buildTests([...tests, ...programs]);
const { status } = spawnSync(
  process.execPath,
  ["--enable-source-maps", "--expose-gc", "--test-reporter=spec", "--test", ...built.slice(0, tests.length)],
  { cwd: root, stdio: "inherit" },
);
process.exitCode = status ?? 1;
