/** What every loader returns, and the options they share. */

import type { PyodideAPI } from "pyodide";

import type { ThreadPool } from "../../wasm_runtime/src/thread_pool";
import { installPolygrad } from "./install";
import { fileSystem } from "./pyodide_types";
import { runScript } from "./script";
import type { ByteStore } from "./store";

/** Receives output as text, in pieces: progress bars arrive as they are drawn. */
export type Output = (text: string) => void;

export interface CommonOptions {
  /** Environment variables for Python, such as `DEVICE`. */
  env?: Record<string, string>;
  stdout?: Output;
  stderr?: Output;
  /** Whether Python is told that its output is a terminal; progress bars then redraw their line. */
  isatty?: boolean;
  /**
   * The most threads that run a kernel; 1 for none but Python's own. As many as there are processors, 2 to 8,
   * unless given. In a page they need cross-origin isolation, and without it there is one.
   */
  threads?: number;
}

/** A value, or a promise of it: the same calls serve a Python on this thread and one in a worker. */
export type Awaitable<T> = T | Promise<T>;

/** A Python with polygrad in it, wherever it runs: `import polygrad` works. */
export interface Python {
  /** Run Python source; the value of its last expression. */
  runPython(code: string): Awaitable<unknown>;
  /** Run Python source that may use `await` at its top level. */
  runPythonAsync(code: string): Promise<unknown>;
  /** Run the file at the absolute `path` as `python path args…` would; the exit status. */
  runScript(path: string, args?: readonly string[]): Awaitable<number>;
  /** Make a file, and the folders above it, in Python's file system. */
  writeFile(path: string, data: Uint8Array): Awaitable<void>;
}

/** A Python on this thread. */
export class Polygrad implements Python {
  constructor(readonly pyodide: PyodideAPI) {}

  runPython(code: string): unknown {
    return this.pyodide.runPython(code) as unknown;
  }

  async runPythonAsync(code: string): Promise<unknown> {
    return (await this.pyodide.runPythonAsync(code)) as unknown;
  }

  runScript(path: string, args: readonly string[] = []): number {
    return runScript(this.pyodide, path, args);
  }

  writeFile(path: string, data: Uint8Array): void {
    const fs = fileSystem(this.pyodide);
    fs.mkdirTree(path.replace(/\/[^/]*$/, ""));
    fs.writeFile(path, data);
  }
}

function writer(output: Output): (bytes: Uint8Array) => number {
  const decoder = new TextDecoder();
  return (bytes) => {
    output(decoder.decode(bytes, { stream: true }));
    return bytes.length;
  };
}

/** Route output, install the wheel, and wrap. */
export async function furnish(
  pyodide: PyodideAPI,
  wheel: Uint8Array<ArrayBuffer>,
  store: ByteStore | undefined,
  { stdout, stderr, isatty = false }: CommonOptions,
  pool?: ThreadPool,
): Promise<Polygrad> {
  if (stdout !== undefined) pyodide.setStdout({ write: writer(stdout), isatty });
  if (stderr !== undefined) pyodide.setStderr({ write: writer(stderr), isatty });
  await installPolygrad(pyodide, wheel, store, pool);
  return new Polygrad(pyodide);
}
