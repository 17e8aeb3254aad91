/** polygrad/bridge.py in a Pyodide on this thread. */

import type { PyodideAPI } from "pyodide";

import { errorFrom } from "../../wasm_runtime/src/api/errors";
import type { SessionInfo } from "../../wasm_runtime/src/api/session";
import type {
  Answer,
  Body,
  Bridge,
  ErrorText,
  Operation,
  Plain,
  TableQuestion,
} from "../../wasm_runtime/src/api/transport";
import type { Polygrad } from "./polygrad";
import { callSuspending, type PyFunction, type PyProxy } from "./pyodide_types";

interface PyBytes extends PyProxy {
  getBuffer(type: "u8"): { readonly data: Uint8Array<ArrayBuffer>; release(): void };
}

/** The character before an error, and before JSON, in what polygrad/bridge.py returns. */
const [ERROR, JSON_VALUE] = ["!", "="];

/** The error that a method returned, if it returned one. */
function errorOf(returned: unknown): ErrorText | undefined {
  return typeof returned === "string" ? returned.slice(ERROR.length) : undefined;
}

/** The answer that a method returned: a number, a buffer, or text that is JSON or an error. */
function answerOf(returned: unknown, pyodide: PyodideAPI): Answer {
  if (typeof returned === "string") {
    const text = returned.slice(1);
    return returned.startsWith(JSON_VALUE) ? { value: JSON.parse(text) as unknown } : { error: text };
  }
  if (!(returned instanceof pyodide.ffi.PyProxy)) return { value: returned ?? null };
  const buffer = (returned as PyBytes).getBuffer("u8");
  try {
    return { value: buffer.data.slice().buffer };
  } finally {
    buffer.release();
    returned.destroy();
  }
}

/** A body as `_Function` of polygrad/bridge.py takes it. */
function bodyArgument(body: Body): unknown {
  if (typeof body === "function") return body;
  return [body.operations.map((operation) => [operation.kind, ...argumentsOf(operation)]), body.result];
}

/** The arguments of the method of polygrad/bridge.py's Session that carries an operation out. */
function argumentsOf(operation: Operation): readonly unknown[] {
  switch (operation.kind) {
    case "call":
      return [operation.name, operation.result, operation.handles, operation.keywords, ...operation.args];
    case "call_packed":
      return [
        operation.name,
        operation.result,
        operation.text,
        operation.buffers,
        operation.bodies.map(bodyArgument),
      ];
    case "unpack":
      return [operation.source, operation.first, operation.count];
    case "release":
      return [operation.handles];
  }
}

/** The arguments of the method that answers a question. */
function questionArguments(question: TableQuestion): readonly unknown[] {
  if (question.kind === "meta") return [question.handle, question.names];
  if (question.kind === "call_waiting") {
    const { name, result, text, buffers, bodies } = question;
    return [name, result, text, buffers, bodies.map(bodyArgument)];
  }
  return [question.handle];
}

/** A Python that has started. */
export interface Started {
  readonly bridge: Bridge;
  readonly info: SessionInfo;
  /** Settles when all is stored that this start leaves for later ones. */
  readonly kept: Promise<void>;
}

/** Open a session in this Python. */
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
    let cached = methods.get(name);
    if (cached === undefined) methods.set(name, (cached = session[name] as PyFunction));
    return cached;
  };
  const call = method("call");
  return {
    run: (operation) => errorOf(method(operation.kind)(...argumentsOf(operation))),
    call: (name: string, result: number, handles: number, keywords: string, args: readonly Plain[]) =>
      errorOf(call(name, result, handles, keywords, ...args)),
    fail: (handle, error) => void method("fail")(handle, ERROR + error),
    ask: (question) => answerOf(method(question.kind)(...questionArguments(question)), pyodide),
    async wait(question, stoppable) {
      const isWatched =
        stoppable === true && python.stopper !== undefined && question.kind === "call_waiting";
      const ask = method(isWatched ? "call_watched" : question.kind);
      const args = [...(isWatched ? [python.stopper] : []), ...questionArguments(question)];
      const suspends = python.gpu.opened && (question.kind === "read" || question.kind === "call_waiting");
      return answerOf(suspends ? await callSuspending(ask, ...args) : ask(...args), pyodide);
    },
    async python(code) {
      let value: unknown;
      try {
        value = await pyodide.runPythonAsync(code);
      } catch (error) {
        if (!(error instanceof pyodide.ffi.PythonError)) throw error;
        throw errorFrom(errorOf(method("last_error")()) ?? "");
      }
      return plain(value, pyodide);
    },
    async host(name, args) {
      const methodsOfHost = python as unknown as Record<string, (...args: readonly unknown[]) => unknown>;
      return plain(await methodsOfHost[name]?.(...args), pyodide);
    },
    close() {
      method("close")();
      for (const bound of methods.values()) bound.destroy();
      session.destroy();
    },
  };
}
