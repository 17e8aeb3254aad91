/** Python in a worker: the same calls as on this thread, each of which returns a promise. */

import type { Python } from "../../loader/src/polygrad";
import type { Connection } from "../../wasm_runtime/src/api/index";
import { connectWorker } from "./connect";
import type { LoadOptions } from "./load";

/** A Python with polygrad in a worker. Results are copies: Python's containers become JavaScript's. */
export class RemotePolygrad implements Python {
  readonly #transport: Connection["transport"];

  private constructor({ transport }: Connection) {
    this.#transport = transport;
  }

  /** Start a worker with the script in the folder `base`. */
  static async load(options: LoadOptions, base: URL): Promise<RemotePolygrad> {
    return new RemotePolygrad(await connectWorker(options, base));
  }

  runPython(code: string): Promise<unknown> {
    return this.#call("runPython", [code]);
  }

  runPythonAsync(code: string): Promise<unknown> {
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
    this.#transport.close("the worker was terminated");
  }

  #call(method: keyof Python, args: readonly unknown[]): Promise<unknown> {
    return this.#transport.ask({ kind: "host", method, args });
  }
}
