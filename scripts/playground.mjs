/**
 * Builds the playground into `web/build/playground`: a static folder for any host, with all that it loads inside.
 */

import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

import { javascriptScopes, pythonScopes } from "./api/completions.mjs";
import { compressFolder } from "./compress.mjs";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const SOURCE = join(ROOT, "web/playground");
const DIST = join(ROOT, "web/dist");
const OUT = join(ROOT, "web/build/playground");

/** The programs of `examples/` that the editor lists, with `examples/data`. */
const EXAMPLES = ["convolutional.py", "characters.py", "autoencoder.py", "uncertainty.py"];

/** The package as it is served: the playground loads what everyone loads, by the name everyone uses. */
const SERVED = {
  name: "polygrad",
  setup({ onResolve }) {
    const served = (file) => () => ({ path: `./polygrad/${file}`, external: true });
    onResolve({ filter: /^polygrad$/ }, served("polygrad.mjs"));
    onResolve({ filter: /^polygrad\/runtime$/ }, served("polygrad-runtime.mjs"));
  },
};

const MANIFEST = "import json\nfrom polygrad.manifest.inspection import manifest\njson.dumps(manifest())";

/** What the editor knows of the API, a file for each language. */
async function writeCompletions() {
  const { create } = await import("../node/dist/main.js");
  const manifest = JSON.parse(await (await create()).python(MANIFEST));
  const scopes = {
    python: pythonScopes(manifest),
    javascript: javascriptScopes(
      join(ROOT, "wasm_runtime/src/api/index.ts"),
      join(ROOT, "wasm_runtime/tsconfig.json"),
    ),
  };
  await mkdir(join(OUT, "completions"), { recursive: true });
  for (const [language, known] of Object.entries(scopes)) {
    await writeFile(join(OUT, `completions/${language}.json`), JSON.stringify(known));
  }
}

/** Build it. The packages have to be in `node/dist` and `web/dist` by now. */
export async function buildPlayground() {
  await rm(OUT, { recursive: true, force: true });
  const common = {
    entryNames: "[name]",
    outdir: OUT,
    bundle: true,
    minify: true,
    sourcemap: true,
    format: "esm",
    target: "es2022",
    outExtension: { ".js": ".mjs" },
    loader: { ".py": "text", ".txt": "text" },
    plugins: [SERVED],
    logLevel: "warning",
  };
  const sources = (...names) => names.map((name) => join(SOURCE, name));
  await build({
    ...common,
    entryPoints: sources("src/main.ts", "style.css"),
    splitting: true, // what a tab needs arrives when it is opened
    chunkNames: "[name]-[hash]", // beside the entry, from where the package is found
  });
  // Workers are files of their own: a host may send each with a policy of its own.
  await build({ ...common, entryPoints: sources("src/runner.ts", "src/layout.ts") });
  await writeCompletions();
  // Compressed forms as well, where there are some.
  const served = (path) => !relative(DIST, path).startsWith("types");
  for (const name of ["index.html", "icon.svg"]) await cp(join(SOURCE, name), join(OUT, name));
  await cp(join(SOURCE, "programs"), join(OUT, "programs"), { recursive: true });
  const examples = join(ROOT, "examples");
  for (const name of EXAMPLES) await cp(join(examples, name), join(OUT, "programs", name));
  await cp(join(examples, "data"), join(OUT, "programs/data"), { recursive: true });
  await cp(join(examples, "data/digits.safetensors"), join(OUT, "digits.safetensors"));
  await compressFolder(OUT);
  await cp(DIST, join(OUT, "polygrad"), { recursive: true, filter: served, preserveTimestamps: true });
}
