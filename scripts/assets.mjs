/**
 * Makes the files that Python starts from: polygrad and what it takes of the standard library, as bytecode.
 *
 * Pyodide itself compiles them, here in Node, since bytecode fits one Python only.
 */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { build } from "esbuild";
import { loadPyodide, version } from "pyodide";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
const LOADER = join(ROOT, "loader/src");

/** Modules that scripts commonly import first, beside those that starting and a first tensor take. */
const COMMON = [
  ...["argparse", "csv", "dataclasses", "datetime", "json", "pkgutil", "queue", "runpy", "string"],
  ...["ascii", "cp437", "latin_1", "utf_16", "utf_8_sig"].map((name) => `encodings.${name}`),
];

/** What only native hosts use: their devices, the command line, files for installers and type checkers. None is sent to pages. */
const NATIVE = new RegExp(
  [
    String.raw`^polygrad/engine/backends/(cc|cpu|cuda|metal|native)\w*\.py$`,
    String.raw`^polygrad/renderer/(host|cstyle/(c|c_compile|c_driver|cuda|cuda_compile|gpu|msl|portable)|llvm/\w+)\.py$`,
    String.raw`^polygrad/capture/c_file/\w+\.py$`,
    String.raw`^polygrad/(distributed/(mpi|torch)|training/ray)\.py$`,
    String.raw`^polygrad/hf/native_\w+\.py$`,
    String.raw`^polygrad/runtime/host\.js$`,
    String.raw`^polygrad/runtime/((cpu|cuda|metal)/\w+|webgpu/native|wasm/wasmtime)\.py$`,
    String.raw`^polygrad/(__main__|(cli|serve)/.*)\.py$`,
    String.raw`\.dist-info/RECORD$|\.pyi$|/py\.typed$`,
  ].join("|"),
);

/** What is below the calls of users' programs, and tables: tracebacks need not quote it. */
const UNQUOTED = new RegExp(
  [
    "(capture|codegen|engine|manifest|pictures|renderer|runtime|schedule|uop|wasm)/",
    "(bridge|bridge_functions|dtype|environment|gradient|helpers|missing_names|shared_words|tensor/origins)\\.py$",
    "nn/(archives|gguf|integer_products|packed|panels|pickles|quantization|quantize|safetensors)\\.py$",
    "nn/(sealed_files|torch_file|wire|wire_stream)\\.py$",
    "tensor/core/",
    "tensor/(batching|decompositions|fourier|hashing|linear_systems|sorting|special|spectra|trigonometric)\\.py$",
  ]
    .map((pattern) => `^polygrad/${pattern}`)
    .join("|"),
);

/** Packages that a page fetches when one of them is imported. */
const APPLICATIONS = [
  "distributed",
  "export",
  "generation",
  "hf",
  "models",
  "onnx",
  "pipelines",
  "training",
  "tuning",
];
const APPLICATION = new RegExp(`^polygrad/(${APPLICATIONS.join("|")})/`);

/** The newest polygrad wheel of `dist/`. */
export function findWheel() {
  const folder = join(ROOT, "dist");
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => /^polygrad-.*-py3-none-any\.whl$/.test(entry.name))
    .map((entry) => join(folder, entry.name));
  const [newest] = names.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  if (newest === undefined) throw new Error(`expected a wheel in ${folder}, got none: make wheel`);
  return newest;
}

/** The loader's own `bundle`, which also serves at run time. */
async function loaderBundle() {
  const outfile = join(ROOT, "build/loader/bundle.mjs");
  await build({
    entryPoints: [join(LOADER, "bundle.ts")],
    outfile,
    bundle: true,
    format: "esm",
    platform: "node",
    loader: { ".py": "text" },
    logLevel: "warning",
  });
  return (await import(pathToFileURL(outfile).href)).bundle;
}

/** Names of the archive's modules: [file, dotted name] of each. */
const LIST_MODULES = `
import importlib, sys, zipfile
sys.path.append("/tmp/polygrad.whl")
importlib.import_module("polygrad.preload")
for name in common:
    importlib.import_module(name)
prefix = place + "/"
loaded = [getattr(m, "__file__", None) or "" for m in sys.modules.values()]
loaded = sorted({f.removeprefix(prefix) for f in loaded if f.startswith(prefix)})
modules = [f for f in zipfile.ZipFile(place).namelist() if f.endswith(".py")]
loaded, modules, zipfile.ZipFile("/tmp/polygrad.whl").namelist()
`;

const moduleName = (file) => file.replace(/(\/__init__)?\.py$/, "").replaceAll("/", ".");

/** A Python file of the loader's. */
const source = (name) => Uint8Array.from(readFileSync(join(LOADER, `python/${name}.py`)));

const named = (stem, bytes) => `${stem}-${createHash("sha256").update(bytes).digest("hex").slice(0, 12)}.zip`;

/** `{assets, files}`: what `loader/src/assets.ts` declares, and the contents of the files it names. */
export async function makeAssets() {
  const bundle = await loaderBundle();
  const wheel = readFileSync(findWheel());
  const stdlib = readFileSync(createRequire(import.meta.url).resolve("pyodide/python_stdlib.zip"));
  // Without the columns of every instruction, bytecode is a quarter smaller.
  const pyodide = await loadPyodide({ env: { PYTHONNODEBUGRANGES: "1" } });
  const place = `/lib/python${pyodide.runPython("import sys; f'{sys.version_info[0]}{sys.version_info[1]}'")}.zip`;
  pyodide.FS.writeFile("/tmp/polygrad.whl", wheel);
  const globals = pyodide.toPy({ common: COMMON, place });
  const [loaded, modules, packaged] = pyodide.runPython(LIST_MODULES, { globals }).toJs();
  const kept = new Set(loaded);
  const rest = modules.filter((file) => !kept.has(file)).map(moduleName);
  const finder = readFileSync(join(LOADER, "python/stdlib_rest.py"), "utf8").replace(
    /^(REST: .*= )frozenset\(\)/m,
    (_, start) => `${start}frozenset(${JSON.stringify(rest.join(" "))}.split())`,
  );
  const packages = APPLICATIONS.map((name) => `polygrad.${name}`).join(" ");
  const applications = readFileSync(join(LOADER, "python/applications.py"), "utf8").replace(
    /^(APPLICATIONS: .*= )frozenset\(\)/m,
    (_, start) => `${start}frozenset(${JSON.stringify(packages)}.split())`,
  );
  const first = bundle(pyodide, stdlib, place, {
    keep: loaded,
    withoutText: loaded,
    extra: {
      "_polygrad_imports.py": source("archive_imports"),
      "_polygrad_start.py": source("start"),
      "sitecustomize.py": source("sitecustomize"),
      "_polygrad_stdlib.py": new TextEncoder().encode(finder),
      "_polygrad_applications.py": new TextEncoder().encode(applications),
    },
  });
  const own = bundle(pyodide, wheel, "/lib/polygrad.zip", {
    keep: packaged.filter((file) => !NATIVE.test(file) && !APPLICATION.test(file)),
    withoutText: packaged.filter((file) => UNQUOTED.test(file)),
  });
  const later = bundle(pyodide, wheel, "/lib/polygrad-applications.zip", {
    keep: packaged.filter((file) => !NATIVE.test(file) && APPLICATION.test(file)),
  });
  const assets = {
    pyodide: version,
    stdlib: named("stdlib", first),
    package: named("polygrad", own),
    applications: named("applications", later),
    wheel: createHash("sha256").update(wheel).digest("hex"),
  };
  const files = { [assets.stdlib]: first, [assets.package]: own, [assets.applications]: later };
  return { assets, files };
}
