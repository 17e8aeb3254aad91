/** Types for the parts of Pyodide that its own declarations leave open. */

import type { PyodideAPI } from "pyodide";

/** A Python object. (`pyodide` and `pyodide/ffi` declare this class twice; the API takes the first.) */
export type PyProxy = PyodideAPI["globals"];

/** A Python function. */
export type PyFunction = PyProxy & ((...args: unknown[]) => unknown);

/** What polygrad uses of Emscripten's `FS`. */
export interface FileSystem {
  mkdirTree(path: string): void;
  writeFile(path: string, data: Uint8Array): void;
  readFile(path: string): Uint8Array;
  chdir(path: string): void;
}

export function fileSystem(pyodide: PyodideAPI): FileSystem {
  return pyodide.FS as FileSystem;
}
