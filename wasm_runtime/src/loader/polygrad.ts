/** What every loader returns, and the options they share. */

import type { PyodideAPI } from "pyodide";

import { installPolygrad } from "./install";
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
}

/** A Pyodide with polygrad in it: `import polygrad` works. */
export class Polygrad {
  constructor(readonly pyodide: PyodideAPI) {}

  /** Run Python source; the value of its last expression. */
  runPython(code: string): unknown {
    return this.pyodide.runPython(code) as unknown;
  }

  /** Run Python source that may use `await` at its top level. */
  async runPythonAsync(code: string): Promise<unknown> {
    return (await this.pyodide.runPythonAsync(code)) as unknown;
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
): Promise<Polygrad> {
  if (stdout !== undefined) pyodide.setStdout({ write: writer(stdout), isatty });
  if (stderr !== undefined) pyodide.setStderr({ write: writer(stderr), isatty });
  await installPolygrad(pyodide, wheel, store);
  return new Polygrad(pyodide);
}
