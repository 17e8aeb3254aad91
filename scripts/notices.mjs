/**
 * Writes THIRD_PARTY_NOTICES.txt: the licences of what the npm package holds of others. What esbuild has bundled is read
 * from its report, so a new dependency cannot be forgotten; one without a licence is an error.
 */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const RULE = "-".repeat(80);

/** The names of the packages of `node_modules` in the reports of esbuild. */
export function bundledPackages(metafiles) {
  const inputs = metafiles.flatMap(({ outputs }) =>
    Object.values(outputs).flatMap((out) => Object.keys(out.inputs)),
  );
  const names = inputs.map((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  return [...new Set(names.filter((name) => name !== undefined))].sort();
}

/** The notice of a package, with its licence's text. */
async function noticeOf(name) {
  const folder = join(ROOT, "node_modules", name);
  const { version, license, homepage, repository } = JSON.parse(
    await readFile(join(folder, "package.json"), "utf8"),
  );
  const files = await readdir(folder);
  const file = files.find((entry) => /^licen[cs]e/i.test(entry));
  if (file === undefined)
    throw new Error(`notices: expected a licence in ${folder}, got ${files.join(", ")}`);
  const text = await readFile(join(folder, file), "utf8");
  return `${name} ${version}, ${license}\n${homepage ?? repository?.url ?? ""}\n\n${text.trim()}\n`;
}

/** The text, for what esbuild reports, and the version of Pyodide whose files the package depends on. */
export async function notices(metafiles, pyodide) {
  const python = await readFile(join(ROOT, "scripts/licenses/PSF-2.0.txt"), "utf8");
  const parts = [
    `polygrad is under the MIT licence (LICENSE). Its npm package holds software of others, under these licences.\n`,
    `Pyodide ${pyodide}, MPL-2.0 (Mozilla Public License, version 2.0)
https://github.com/pyodide/pyodide

The files python/stdlib-*.zip hold Python packages of Pyodide's as bytecode. The npm package pyodide, which polygrad
depends on, holds Pyodide itself; polygrad-assets copies files of it into the folder pyodide/. The source code of this
version is https://github.com/pyodide/pyodide/tree/${pyodide}. The licence is https://mozilla.org/MPL/2.0/.
`,
    `Python's standard library, PSF-2.0
https://www.python.org

The files python/stdlib-*.zip hold a part of it as bytecode, compiled and not changed otherwise.

${python.trim()}
`,
    ...(await Promise.all(bundledPackages(metafiles).map(noticeOf))),
  ];
  return parts.join(`\n${RULE}\n\n`);
}
