/** Types for the parts of Pyodide that its own declarations leave open. */

import type { PyodideAPI } from "pyodide";

/** A Python object. (`pyodide` and `pyodide/ffi` declare this class twice; the API takes the first.) */
export type PyProxy = PyodideAPI["globals"];

/** A Python function. */
export type PyFunction = PyProxy &
  ((...args: unknown[]) => unknown) & {
    /** Call it so that it may wait for promises; throws where the engine cannot suspend Python. */
    callPromising(...args: unknown[]): Promise<unknown>;
  };

/** Call a Python function; where the engine can suspend Python (JSPI), it may wait for promises, as of a GPU. */
export async function callSuspending(call: PyFunction, ...args: unknown[]): Promise<unknown> {
  const suspends = "Suspending" in WebAssembly || "Suspender" in WebAssembly;
  return await (suspends ? call.callPromising(...args) : call(...args));
}

/** What polygrad uses of Emscripten's `FS`. */
export interface FileSystem {
  mkdirTree(path: string): void;
  writeFile(path: string, data: Uint8Array): void;
  chdir(path: string): void;
}

export function fileSystem(pyodide: PyodideAPI): FileSystem {
  return pyodide.FS as FileSystem;
}

/** What polygrad uses of Pyodide's Emscripten module. */
export interface EmscriptenModule {
  readonly HEAPU8: Uint8Array;
  /** Make the memory at least `nbytes` long; undefined when it cannot. */
  growMemory(nbytes: number): 1 | undefined;
}

/** The factory of that module, which `pyodide.asm.mjs` exports. */
export type CreateModule = (settings: object) => Promise<EmscriptenModule>;

/** Run the Python source `code` in a namespace of its own, and give its functions called `names` to `use`. */
export function withFunctions<const Names extends readonly string[], T>(
  pyodide: PyodideAPI,
  code: string,
  names: Names,
  use: (...functions: { [Name in keyof Names]: PyFunction }) => T,
): T {
  const globals = pyodide.toPy({}) as PyProxy;
  pyodide.runPython(code, { globals });
  const found = globals as { get(name: string): PyFunction } & PyProxy;
  const functions = names.map((name) => found.get(name));
  try {
    return use(...(functions as { [Name in keyof Names]: PyFunction }));
  } finally {
    for (const proxy of [...functions, globals]) proxy.destroy();
  }
}
