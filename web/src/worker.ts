/** The module worker: a Python with polygrad off the page's thread, driven by messages. */

import type { Polygrad, Progress } from "../../loader/src/polygrad";
import { load } from "./load";
import type { Method, Reply, Request, WorkerOptions } from "./messages";

let python: Polygrad | undefined;

function reply(message: Reply): void {
  postMessage(message);
}

async function start(options: WorkerOptions): Promise<void> {
  const output = (stream: "stdout" | "stderr") => (text: string) => {
    reply({ kind: "output", stream, text });
  };
  const onProgress = (progress: Progress): void => {
    reply({ kind: "progress", progress });
  };
  python = await load(
    { ...options, stdout: output("stdout"), stderr: output("stderr"), onProgress },
    import.meta.url,
  );
}

/** The value as it can be sent: Python's containers become JavaScript's. */
function sendable(value: unknown): unknown {
  if (python === undefined || !(value instanceof python.pyodide.ffi.PyProxy)) return value;
  try {
    return value.toJs({ create_pyproxies: false });
  } finally {
    value.destroy();
  }
}

async function perform(request: Request): Promise<unknown> {
  if (request.method === "load") {
    await start(request.args[0]);
    return undefined;
  }
  if (python === undefined) throw new Error("internal: the worker was asked to run before it was loaded");
  const target = python as unknown as Record<Method, (...args: readonly unknown[]) => unknown>;
  return sendable(await target[request.method](...request.args));
}

async function answer(request: Request): Promise<void> {
  const { id } = request;
  try {
    reply({ kind: "result", id, value: await perform(request) });
  } catch (error) {
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    reply({ kind: "error", id, name, message });
  }
}

addEventListener("message", (event: MessageEvent<Request>) => {
  void answer(event.data);
});
