/** Types for parts of Pyodide that its declarations leave out. */

import type { PyodideAPI } from "pyodide";

/** A Python object. (`pyodide` and `pyodide/ffi` declare this class twice; the API takes the first.) */
export type PyProxy = PyodideAPI["globals"];

/** A Python function. */
export type PyFunction = PyProxy &
  ((...args: unknown[]) => unknown) & {
    /** Call the function so that it may wait for promises. Throws where the engine cannot suspend Python. */
    callPromising(...args: unknown[]): Promise<unknown>;
  };

/** Call a Python function. It may wait for promises, such as a GPU's, where the engine can suspend Python (JSPI). */
export async function callSuspending(call: PyFunction, ...args: unknown[]): Promise<unknown> {
  const suspends = "Suspending" in WebAssembly || "Suspender" in WebAssembly;
  return await (suspends ? call.callPromising(...args) : call(...args));
}

/** What polygrad uses of Emscripten's `FS`. */
export interface FileSystem {
  mkdirTree(path: string): void;
  readFile(path: string): Uint8Array<ArrayBuffer>;
  writeFile(path: string, data: Uint8Array): void;
  chdir(path: string): void;
}

export function fileSystem(pyodide: PyodideAPI): FileSystem {
  return pyodide.FS as FileSystem;
}

/** What polygrad uses of Pyodide's Emscripten module. */
export interface EmscriptenModule {
  readonly HEAPU8: Uint8Array;
  /** Grow the memory to at least `nbytes`; undefined when it cannot grow. */
  growMemory(nbytes: number): 1 | undefined;
  readonly FS: FileSystem;
  readonly API: { readonly pyVersionTuple: readonly number[] };
  /** Until it is removed, Python does not start. */
  addRunDependency(name: string): void;
  removeRunDependency(name: string): void;
}

/** Settings of that module, which Pyodide makes. */
export interface EmscriptenSettings {
  /** Prepare the module before Python starts. */
  preRun: ((module: EmscriptenModule) => unknown)[];
}

/** The factory of that module, which `pyodide.asm.mjs` exports. */
export type CreateModule = (settings: EmscriptenSettings) => Promise<EmscriptenModule>;

/** Run the Python source `code` in a namespace of its own, and give its functions called `names` to `use`. */
export function withFunctions<const Names extends readonly string[], T>(
  pyodide: PyodideAPI,
  code: string,
  names: Names,
  use: (...functions: { [Name in keyof Names]: PyFunction }) => T,
): T {
  const globals = pyodide.toPy({}) as PyProxy;
  pyodide.runPython(code, { globals });
  const namespace = globals as { get(name: string): PyFunction } & PyProxy;
  const functions = names.map((name) => namespace.get(name));
  try {
    return use(...(functions as { [Name in keyof Names]: PyFunction }));
  } finally {
    for (const proxy of [...functions, globals]) proxy.destroy();
  }
}
