/** The page's side of the worker that runs programs. */

import type { DeviceName } from "./devices";
import type { Request, RunnerEvent } from "./messages";

/** The worker that runs programs, on one device. */
export class ProgramRunner {
  readonly #receive: (event: RunnerEvent) => void;
  #worker: Worker;

  constructor(device: DeviceName, receive: (event: RunnerEvent) => void) {
    this.#receive = receive;
    this.#worker = this.#start(device);
  }

  #start(device: DeviceName): Worker {
    // its name says the device: a GPU is opened before Python starts
    const worker = new Worker(new URL("runner.mjs", document.baseURI), { type: "module", name: device });
    let isReady = false;
    worker.addEventListener("message", ({ data }: MessageEvent<RunnerEvent>) => {
      isReady ||= data.kind === "ready";
      this.#receive(data);
    });
    worker.addEventListener("error", ({ message }) => {
      // Later errors are those of programs, which throw in timers, for instance.
      if (isReady) this.#receive({ kind: "output", text: `${message}\n`, error: true });
      else this.#receive({ kind: "unusable", message: message || "runner.mjs could not be loaded" });
    });
    return worker;
  }

  /** Send a request; the answer is an event. */
  send(request: Request): void {
    this.#worker.postMessage(request);
  }

  /** Stop the program that runs, and start a fresh worker. */
  restart(device: DeviceName): void {
    this.#worker.terminate();
    this.#worker = this.#start(device);
  }
}
