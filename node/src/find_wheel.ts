/** The wheel to install when none is named. */

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** This package's own copy, then the repository's `dist/`, seen from `node/dist/`. */
const FOLDERS = ["./", "../../dist/"];

/** The path of the newest polygrad wheel in those folders. */
export async function findWheel(): Promise<string> {
  for (const folder of FOLDERS.map((relative) => fileURLToPath(new URL(relative, import.meta.url)))) {
    const names = await readdir(folder).catch(() => []);
    const wheel = names.filter((name) => /^polygrad-.*-py3-none-any\.whl$/.test(name)).sort();
    const last = wheel.at(-1);
    if (last !== undefined) return join(folder, last);
  }
  throw new Error(
    "polygrad: expected a wheel beside this package, got none: name one with the option `wheel`",
  );
}
