/**
 * Puts polygrad into a Pyodide: its wheel into site-packages, and the WebAssembly host beside it.
 *
 * Parsing the package's sources takes Pyodide far longer than anything else here, so they are compiled once
 * and kept, as bytecode in a zip, in whatever store the host has. The sources stay, for tracebacks.
 */

import { unzipSync, zipSync } from "fflate";
import type { PyodideAPI } from "pyodide";

import { WasmHost } from "../../wasm_runtime/src/host";
import type { ThreadPool } from "../../wasm_runtime/src/thread_pool";
import { fileSystem, type PyFunction, type PyProxy } from "./pyodide_types";
import { digest, recall, remember, type ByteStore } from "./store";

type Files = Record<string, Uint8Array>;

/** The name under which Python imports the host. */
const HOST_MODULE = "polygrad_host";

/** Compiles every source below a folder; with unchecked hashes, so that no import asks for a source's date. */
const COMPILE = `
def compile_tree(root, names):
    import importlib.util, py_compile
    made = []
    for name in names:
        path = f"{root}/{name}"
        cached = importlib.util.cache_from_source(path)
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile(path, cached, doraise=True, invalidation_mode=mode)
        made.append(cached[len(root) + 1:])
    return made
compile_tree
`;

function writeFiles(pyodide: PyodideAPI, root: string, files: Files): void {
  const fs = fileSystem(pyodide);
  const made = new Set<string>();
  for (const [name, bytes] of Object.entries(files)) {
    if (name.endsWith("/")) continue;
    const folder = `${root}/${name}`.replace(/\/[^/]*$/, "");
    if (!made.has(folder)) fs.mkdirTree(folder);
    made.add(folder);
    fs.writeFile(`${root}/${name}`, bytes);
  }
}

/** The bytecode of the sources called `names`, which lie below `root`. */
function compileFiles(pyodide: PyodideAPI, root: string, names: string[]): Files {
  const fs = fileSystem(pyodide);
  const globals = pyodide.toPy({}) as PyProxy;
  const compile = pyodide.runPython(COMPILE, { globals }) as PyFunction;
  const made = compile(root, names) as PyProxy;
  try {
    const paths = made.toJs() as string[];
    return Object.fromEntries(paths.map((path) => [path, fs.readFile(`${root}/${path}`)]));
  } finally {
    for (const proxy of [made, compile, globals]) proxy.destroy();
  }
}

/**
 * Install the wheel `wheel` (a zip of pure Python), and make the WASM device available.
 *
 * With a `store`, bytecode is compiled at the first start only. With a `pool`, kernels run on its threads.
 */
export async function installPolygrad(
  pyodide: PyodideAPI,
  wheel: Uint8Array<ArrayBuffer>,
  store?: ByteStore,
  pool?: ThreadPool,
): Promise<void> {
  pyodide.registerJsModule(HOST_MODULE, { openHost: () => new WasmHost(pool && { pool }) });
  const root = pyodide.runPython(
    "import sys; f'/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages'",
  ) as string;
  const sources = unzipSync(wheel);
  writeFiles(pyodide, root, sources);
  if (store !== undefined) {
    const key = `bytecode-${pyodide.version}-${await digest(wheel)}`;
    const kept = await recall(store, key);
    if (kept === undefined) {
      const names = Object.keys(sources).filter((name) => name.endsWith(".py"));
      await remember(store, key, zipSync(compileFiles(pyodide, root, names), { level: 0 }));
    } else {
      writeFiles(pyodide, root, unzipSync(kept));
    }
  }
  pyodide.runPython("import importlib; importlib.invalidate_caches()");
}
