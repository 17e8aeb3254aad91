#!/usr/bin/env node
/** `polygrad-assets FOLDER` copies what a page loads, polygrad's files and Pyodide's, into a folder that is served. */

import { cp, mkdir } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { PYODIDE_FILES } from "./pyodide_files.mjs";

const [folder] = process.argv.slice(2);
if (folder === undefined || folder.startsWith("-")) {
  console.error("usage: polygrad-assets FOLDER\n\nThen: create({ baseURL: the folder's address })");
  process.exitCode = 2;
} else {
  const pyodide = dirname(createRequire(import.meta.url).resolve("pyodide/package.json"));
  await mkdir(join(folder, "pyodide"), { recursive: true });
  await cp(fileURLToPath(new URL("../dist/browser", import.meta.url)), folder, { recursive: true });
  for (const name of PYODIDE_FILES) await cp(join(pyodide, name), join(folder, "pyodide", name));
}
