/**
 * Makes `node/` what the npm package holds, from what `scripts/build.mjs` built: the browser's files, but for Pyodide's,
 * which come with the package of that name; declarations, once for ES modules and once for CommonJS; licences.
 * `npm pack` runs it.
 */

import { execFileSync } from "node:child_process";
import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const DIST = join(ROOT, "node/dist");
const WEB = join(ROOT, "web/dist");
const TYPES = join(DIST, "types");
const NOTICES = "THIRD_PARTY_NOTICES.txt";

/** Whether a file of `web/dist` is in the package: servers make compressed forms themselves, but CDNs not of archives. */
function packed(path) {
  if (/\/python\/\w+-\w+\.zip\.gz$/.test(path)) return true;
  return !/\.(br|gz)$/.test(path) && !["pyodide", "types"].includes(relative(WEB, path));
}

/** Declarations of a project and all it imports, below `TYPES`. */
function declare(project) {
  const options = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--stripInternal"];
  const where = ["--rootDir", ROOT, "--outDir", TYPES];
  const tsc = join(ROOT, "node_modules/typescript/bin/tsc");
  execFileSync(process.execPath, [tsc, "-p", join(ROOT, project), ...options, ...where], {
    stdio: "inherit",
  });
}

/** Relative imports with their extension, which Node's resolution wants and the sources leave out. */
async function addExtensions(folder) {
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.name.endsWith(".d.ts")) continue;
    const path = join(entry.parentPath, entry.name);
    const text = await readFile(path, "utf8");
    await writeFile(path, text.replace(/(from |import\()"(\.{1,2}\/[^"]*)"/g, '$1"$2.js"'));
  }
}

await rm(TYPES, { recursive: true, force: true });
await rm(join(DIST, "browser"), { recursive: true, force: true });
await cp(WEB, join(DIST, "browser"), { recursive: true, filter: packed });
for (const project of ["node", "web"]) declare(project);
await addExtensions(TYPES);
// The same declarations, as those of a CommonJS package.
const cjs = join(DIST, "cjs");
for (const part of ["node", "loader", "wasm_runtime"]) {
  await mkdir(dirname(join(cjs, "types", part)), { recursive: true });
  await cp(join(TYPES, part), join(cjs, "types", part), { recursive: true });
}
await copyFile(join(ROOT, "LICENSE"), join(ROOT, "node/LICENSE"));
await copyFile(join(WEB, NOTICES), join(ROOT, "node", NOTICES));
