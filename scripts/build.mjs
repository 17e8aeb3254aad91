/**
 * Builds the Node package into `node/dist` and the browser package into `web/dist`, both with the files that Python
 * starts from. `web/dist` has all that a page needs, compressed beside each file; it is a static folder to serve.
 * The playground is built of it.
 */

import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

import { PYODIDE_FILES } from "../node/bin/pyodide_files.mjs";
import { makeAssets } from "./assets.mjs";
import { compressFolder } from "./compress.mjs";
import { notices } from "./notices.mjs";
import { buildPlayground } from "./playground.mjs";

const path = (relative) => fileURLToPath(new URL(`../${relative}`, import.meta.url));

const { assets, files } = await makeAssets();
const { version } = JSON.parse(await readFile(path("node/package.json"), "utf8"));
await Promise.all(
  ["node/dist", "web/dist"].map((folder) => rm(path(folder), { recursive: true, force: true })),
);

/** What CommonJS has in the place of `import.meta`. */
const COMMONJS = `
const { pathToFileURL: __toUrl } = require("node:url");
const __url = __toUrl(require("node:path").join(__dirname, "../main.js")).href;
const __resolve = (name) => __toUrl(require.resolve(name)).href;`.trim();

/** esbuild removes comments in calls of `import` when it minifies, and bundlers need those; a banner stays as it is. */
const SERVED = {
  name: "import-served",
  setup({ onLoad }) {
    onLoad({ filter: /web\/src\/import_served\.ts$/ }, () => ({
      contents: "export const importServed = __import;",
    }));
  },
};
/** What keeps files of models is a file beside those that import it, so that most pages load it late or never. */
const CACHE = {
  name: "file-cache",
  setup({ onResolve }) {
    onResolve({ filter: /^\.\/file_store$/ }, ({ kind }) =>
      kind === "dynamic-import" ? { path: "./polygrad-cache.mjs", external: true } : undefined,
    );
  },
};
/** Classes of pages keep their names, which errors say. Functions do not: their names are a twentieth of the files. */
const CLASS_NAMES = {
  name: "class-names",
  setup({ onLoad }) {
    onLoad({ filter: /\/(wasm_runtime|loader|web)\/src\/.*\.ts$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      return {
        contents: text.replace(CLASS, (head, name) => `${head} static name = "${name}";`),
        loader: "ts",
      };
    });
  },
};
/** Python's text without documentation, comments and wide indentation. */
const PYTHON = {
  name: "python-text",
  setup({ onLoad }) {
    onLoad({ filter: /\.py$/ }, async ({ path }) => {
      const text = await readFile(path, "utf8");
      const code = text.replace(/^ *"""[^]*?"""\n/gm, "").replace(/ {2}# .*$|^\n/gm, "");
      return { contents: code.replace(/^( {4})+/gm, (s) => " ".repeat(s.length / 4)), loader: "text" };
    });
  },
};
const CLASS = /^(?:export )?(?:abstract )?class (\w+)\b[^;]*?\{(?=\}?$)/gm; // to the brace that opens its body
const IMPORT =
  "const __import=(u)=>import(/* webpackIgnore: true */ /* turbopackIgnore: true */ /* @vite-ignore */ u);";

const common = {
  bundle: true,
  minify: true,
  keepNames: true, // errors name classes
  sourcemap: true,
  metafile: true,
  target: "es2022",
  logLevel: "warning",
  loader: { ".py": "text" },
  define: { POLYGRAD_ASSETS: JSON.stringify(assets), POLYGRAD_RELEASE: JSON.stringify(version) },
};

const page = { ...common, keepNames: false, plugins: [CLASS_NAMES, PYTHON] };

const built = await Promise.all([
  build({
    ...common,
    entryPoints: {
      ...Object.fromEntries(
        ["main", "index", "cli", "thread", "session_worker", "gpu_worker", "runtime"].map((name) => [
          name,
          path(`node/src/${name}.ts`),
        ]),
      ),
      tokenizers: path("loader/src/tokenizers.ts"),
    },
    outdir: path("node/dist"),
    platform: "node",
    format: "esm",
    splitting: true,
    external: ["pyodide", "webgpu", "@huggingface/*", "papaparse"],
  }),
  build({
    ...common,
    entryPoints: ["main", "runtime"].map((name) => path(`node/src/${name}.ts`)),
    outdir: path("node/dist/cjs"),
    platform: "node",
    format: "cjs",
    external: ["pyodide", "webgpu", "papaparse"],
    // Files are found from where the modules lie, which are one folder up.
    define: { ...common.define, "import.meta.url": "__url", "import.meta.resolve": "__resolve" },
    banner: { js: COMMONJS },
  }),
  // The libraries are ordinary dependencies in Node, and in this file for pages.
  build({
    ...common,
    entryPoints: { hub: path("loader/src/hub.ts"), tokenizers: path("loader/src/tokenizers.ts") },
    outdir: path("node/dist/cjs"),
    platform: "node",
    format: "cjs",
    external: ["@huggingface/*"],
  }),
  build({
    ...common,
    entryPoints: {
      "polygrad-cache": path("web/src/file_store.ts"),
      "polygrad-csv": path("loader/src/csv.ts"),
      "polygrad-hub": path("loader/src/hub.ts"),
      "polygrad-tokenizers": path("loader/src/tokenizers.ts"),
    },
    outdir: path("web/dist"),
    format: "esm",
    keepNames: false, // they name no classes
    outExtension: { ".js": ".mjs" },
  }),
  build({
    ...page,
    entryPoints: {
      "polygrad-worker": path("web/src/worker.ts"),
      "polygrad-thread": path("web/src/thread.ts"),
    },
    outdir: path("web/dist"),
    format: "esm",
    outExtension: { ".js": ".mjs" },
  }),
  // What both have in common is one file, so that an app has it once.
  build({
    ...page,
    entryPoints: {
      polygrad: path("web/src/index.ts"),
      "polygrad-runtime": path("web/src/runtime.ts"),
    },
    outdir: path("web/dist"),
    format: "esm",
    splitting: true,
    chunkNames: "polygrad-shared",
    plugins: [SERVED, CACHE, ...page.plugins],
    banner: { js: IMPORT },
    outExtension: { ".js": ".mjs" },
  }),
  build({
    ...page,
    entryPoints: { polygrad: path("web/src/script.ts") },
    outdir: path("web/dist"),
    format: "iife",
    plugins: [CACHE, ...page.plugins],
    globalName: "polygrad",
  }),
  build({
    ...common,
    entryPoints: { "polygrad-service-worker": path("web/src/service_worker/index.ts") },
    outdir: path("web/dist"),
    format: "iife",
    keepNames: false,
  }),
]);
// In the folder of a package of ES modules, these are none.
await writeFile(path("node/dist/cjs/package.json"), '{ "type": "commonjs" }\n');

for (const folder of ["node/dist", "web/dist"]) {
  await mkdir(path(`${folder}/python`));
  for (const [name, bytes] of Object.entries(files)) await writeFile(path(`${folder}/python/${name}`), bytes);
}
await mkdir(path("web/dist/pyodide"));
const resolve = createRequire(import.meta.url)
  .resolve("pyodide/package.json")
  .replace(/package\.json$/, "");
for (const name of PYODIDE_FILES) await copyFile(resolve + name, path(`web/dist/pyodide/${name}`));
const metafiles = built.map(({ metafile }) => metafile);
await writeFile(path("web/dist/THIRD_PARTY_NOTICES.txt"), await notices(metafiles, assets.pyodide));
await compressFolder(path("web/dist"));
await buildPlayground();
process.exit(); // Pyodide keeps Node alive
