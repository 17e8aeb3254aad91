/**
 * Makes `node/dist` what the npm package holds, from what `scripts/build.mjs` built: the browser's files, the wheel,
 * and declarations, once for ES modules and once for CommonJS. `npm pack` runs it.
 */

import { execFileSync } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const DIST = join(ROOT, "node/dist");
const TYPES = join(DIST, "types");

async function wheel() {
  const names = (await readdir(join(ROOT, "dist"))).filter((name) => /^polygrad-.*\.whl$/.test(name));
  if (names.length !== 1) throw new Error(`expected one wheel in dist/, got ${names.length}: make wheel`);
  return names[0];
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
await cp(join(ROOT, "web/dist"), join(DIST, "browser"), {
  recursive: true,
  filter: (path) => !path.endsWith(".map") && !path.endsWith(".whl") && !path.includes("types"),
});
const name = await wheel();
await cp(join(ROOT, "dist", name), join(DIST, "browser/polygrad.whl"));
await cp(join(ROOT, "dist", name), join(DIST, name));
for (const project of ["node", "web"]) declare(project);
await addExtensions(TYPES);
// The same declarations, as those of a CommonJS package.
const cjs = join(DIST, "cjs");
for (const part of ["node", "wasm_runtime"]) {
  await mkdir(dirname(join(cjs, "types", part)), { recursive: true });
  await cp(join(TYPES, part), join(cjs, "types", part), { recursive: true });
}
