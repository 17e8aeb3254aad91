/** polygrad/bridge.py in a Pyodide on this thread. */

import type { PyodideAPI } from "pyodide";

import { errorFrom } from "../../wasm_runtime/src/api/errors";
import type { SessionInfo } from "../../wasm_runtime/src/api/session";
import type { Answer, Bridge, Operation, Plain, Question } from "../../wasm_runtime/src/api/transport";
import type { PyFunction, PyProxy } from "./pyodide_types";

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

/** A session of its own in this Python, and what is to be known of it. */
export function startBridge(pyodide: PyodideAPI): { bridge: Bridge; info: SessionInfo } {
  const info = pyodide.runPython("from polygrad import bridge; bridge.describe()") as string;
  return { bridge: openBridge(pyodide), info: JSON.parse(info) as SessionInfo };
}

/** A session of its own in this Python. */
export function openBridge(pyodide: PyodideAPI): Bridge {
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
    async python(code) {
      let found: unknown;
      try {
        found = await pyodide.runPythonAsync(code);
      } catch (error) {
        if (!(error instanceof pyodide.ffi.PythonError)) throw error;
        throw errorFrom(method("last_error")() as string);
      }
      if (!(found instanceof pyodide.ffi.PyProxy)) return found;
      try {
        return found.toJs({ create_pyproxies: false }) as unknown;
      } finally {
        found.destroy();
      }
    },
  };
}
