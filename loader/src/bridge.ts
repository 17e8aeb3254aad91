/** polygrad/bridge.py in a Pyodide on this thread. */

import type { PyodideAPI } from "pyodide";

import { errorFrom } from "../../wasm_runtime/src/api/errors";
import type { SessionInfo } from "../../wasm_runtime/src/api/session";
import type { Answer, Bridge, Operation, Plain, Question } from "../../wasm_runtime/src/api/transport";
import type { Polygrad } from "./polygrad";
import { callSuspending, type PyFunction, type PyProxy } from "./pyodide_types";

interface PyBytes extends PyProxy {
  getBuffer(type: "u8"): { readonly data: Uint8Array<ArrayBuffer>; release(): void };
}

/** What answers are: numbers as they are, text with `=` (JSON) or `!` (an error) before it, or a buffer. */
function answer(found: unknown, pyodide: PyodideAPI): Answer {
  if (typeof found === "string") {
    return found.startsWith("=") ? { value: JSON.parse(found.slice(1)) as unknown } : { error: found };
  }
  if (!(found instanceof pyodide.ffi.PyProxy)) return { value: found ?? null };
  const buffer = (found as PyBytes).getBuffer("u8");
  try {
    return { value: buffer.data.slice().buffer };
  } finally {
    buffer.release();
    found.destroy();
  }
}

/** What a session's start tells. */
export interface Started {
  readonly bridge: Bridge;
  readonly info: SessionInfo;
  /** Settles when all is stored that this start leaves for later ones. */
  readonly kept: Promise<void>;
}

/** A session of its own in this Python, and what is to be known of it. */
export function startBridge(python: Polygrad): Started {
  const info = python.pyodide.runPython("from polygrad import bridge; bridge.describe()") as string;
  return { bridge: openBridge(python), info: JSON.parse(info) as SessionInfo, kept: python.kept };
}

/** A value as it can be sent: Python's containers become JavaScript's. */
function plain(value: unknown, pyodide: PyodideAPI): unknown {
  if (!(value instanceof pyodide.ffi.PyProxy)) return value;
  try {
    return value.toJs({ create_pyproxies: false }) as unknown;
  } finally {
    value.destroy();
  }
}

function openBridge(python: Polygrad): Bridge {
  const { pyodide } = python;
  const session = pyodide.runPython("from polygrad.bridge import Session; Session()") as PyProxy &
    Readonly<Record<string, PyFunction>>;
  const methods = new Map<string, PyFunction>();
  const method = (name: string): PyFunction => {
    let found = methods.get(name);
    if (found === undefined) methods.set(name, (found = session[name] as PyFunction));
    return found;
  };
  const call = method("call");
  return {
    run: ([name, ...args]: Operation) => method(name)(...args) as string | undefined,
    call: (name: string, result: number, handles: number, keywords: string, args: readonly Plain[]) =>
      call(name, result, handles, keywords, ...args) as string | undefined,
    fail: (handle, text) => void method("fail")(handle, text),
    ask: ([name, ...args]: Question) => answer(method(name)(...args), pyodide),
    async wait([name, ...args]: Question) {
      const waits = python.gpu.opened && (name === "read" || name === "call_waiting");
      const found = waits ? await callSuspending(method(name), ...args) : method(name)(...args);
      return answer(found, pyodide);
    },
    async python(code) {
      let found: unknown;
      try {
        found = await pyodide.runPythonAsync(code);
      } catch (error) {
        if (!(error instanceof pyodide.ffi.PythonError)) throw error;
        throw errorFrom(method("last_error")() as string);
      }
      return plain(found, pyodide);
    },
    async host(name, args) {
      const own = python as unknown as Record<string, (...args: readonly unknown[]) => unknown>;
      return plain(await own[name]?.(...args), pyodide);
    },
  };
}
