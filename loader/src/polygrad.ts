/** What every loader returns, and the options they share. */

import type { PyodideAPI } from "pyodide";

import type { OnProgress } from "../../wasm_runtime/src/progress";
import { fileSystem } from "./pyodide_types";
import { runScript } from "./script";
import type { Stopper } from "./stops";

/** Receives output as text. It comes in pieces, so progress bars are seen while they are drawn. */
export type Output = (text: string) => void;

export interface CommonOptions {
  /** Environment variables for Python, such as `DEVICE`. */
  env?: Record<string, string>;
  stdout?: Output;
  stderr?: Output;
  /** Is called when a stage of the start begins. */
  onProgress?: OnProgress;
  /** Stops the start: then the promise rejects with the signal's reason. */
  signal?: AbortSignal;
  /** Whether Python takes its output for a terminal; progress bars then redraw their line. */
  isatty?: boolean;
  /**
   * The most threads that run a kernel, including Python's own. The default is the number of processors, but at least 2
   * and at most 8. In a page threads need cross-origin isolation; without it there is one.
   */
  threads?: number;
  /** @internal What another thread stops runs by. */
  stopper?: Stopper | undefined;
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
  runScript(path: string, args?: readonly string[]): Promise<number>;
  /** Make a file, and the folders above it, in Python's file system. */
  writeFile(path: string, data: Uint8Array): Awaitable<void>;
}

/** How a Python was started. */
export type Origin = "snapshot" | "bytecode";

/** A Python on this thread. */
export class Polygrad implements Python {
  /**
   * `origin` says how it was started. `kept` settles when everything is stored that later starts need. If the process
   * ends before, the next start is like the first.
   */
  constructor(
    readonly pyodide: PyodideAPI,
    readonly origin: Origin = "bytecode",
    readonly kept: Promise<void> = Promise.resolve(),
    /** Whether Python has opened a GPU: then reads take time. */
    readonly gpu: { readonly opened: boolean } = { opened: false },
    readonly stopper?: Stopper,
  ) {}

  runPython(code: string): unknown {
    return this.pyodide.runPython(code) as unknown;
  }

  async runPythonAsync(code: string): Promise<unknown> {
    return (await this.pyodide.runPythonAsync(code)) as unknown;
  }

  runScript(path: string, args: readonly string[] = []): Promise<number> {
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

/** Send Python's output to the functions in the options. */
export function routeOutput(
  pyodide: PyodideAPI,
  { stdout, stderr, isatty = false }: Pick<CommonOptions, "stdout" | "stderr" | "isatty">,
): void {
  if (stdout !== undefined) pyodide.setStdout({ write: writer(stdout), isatty });
  if (stderr !== undefined) pyodide.setStderr({ write: writer(stderr), isatty });
}
