/** The page's end of the worker: the same calls as on this thread, each of which gives a promise. */

import type { Python } from "../../loader/src/polygrad";
import { absolute, type LoadOptions } from "./load";
import type { Reply, Request } from "./messages";
import { startWorker } from "./start_worker";

interface Pending {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** What the page hears from the worker unasked. */
type Listeners = Pick<LoadOptions, "stdout" | "stderr" | "onProgress">;

/** A Python with polygrad in a worker. Results are copies: Python's containers arrive as JavaScript's. */
export class RemotePolygrad implements Python {
  readonly #worker: Worker;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners: Listeners;
  #next = 0;

  private constructor(url: URL, listeners: Listeners) {
    this.#listeners = listeners;
    this.#worker = startWorker(url);
    this.#worker.addEventListener("message", (event: MessageEvent<Reply>) => {
      this.#receive(event.data);
    });
    this.#worker.addEventListener("error", (event) => {
      this.#fail(
        new Error(`polygrad: the worker ${url.href} failed: ${event.message || "it could not be loaded"}`),
      );
    });
  }

  /** Start a worker with the script `polygrad-worker.mjs` of the folder `base`. */
  static async load(options: LoadOptions, base: string | URL): Promise<RemotePolygrad> {
    const { stdout, stderr, onProgress, ...sent } = absolute(options, base);
    const remote = new RemotePolygrad(new URL("polygrad-worker.mjs", base), {
      ...(stdout && { stdout }),
      ...(stderr && { stderr }),
      ...(onProgress && { onProgress }),
    });
    await remote.#call("load", [sent]);
    return remote;
  }

  async runPython(code: string): Promise<unknown> {
    return this.#call("runPython", [code]);
  }

  async runPythonAsync(code: string): Promise<unknown> {
    return this.#call("runPythonAsync", [code]);
  }

  async runScript(path: string, args: readonly string[] = []): Promise<number> {
    return (await this.#call("runScript", [path, args])) as number;
  }

  async writeFile(path: string, data: Uint8Array): Promise<void> {
    await this.#call("writeFile", [path, data]);
  }

  /** Stop the worker at once, also in the middle of a call, whose promise is then rejected. */
  terminate(): void {
    this.#worker.terminate();
    this.#fail(new Error("polygrad: the worker was terminated"));
  }

  #call(method: Request["method"], args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      this.#pending.set(id, { resolve, reject });
      this.#worker.postMessage({ id, method, args });
    });
  }

  #receive(reply: Reply): void {
    if (reply.kind === "output") {
      this.#listeners[reply.stream]?.(reply.text);
      return;
    }
    if (reply.kind === "progress") {
      this.#listeners.onProgress?.(reply.progress);
      return;
    }
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if (reply.kind === "result") pending?.resolve(reply.value);
    else pending?.reject(Object.assign(new Error(reply.message), { name: reply.name }));
  }

  #fail(error: Error): void {
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
  }
}
