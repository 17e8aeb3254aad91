/** The page's side of the worker that runs programs. */

import type { DeviceName } from "./devices";
import type { Request, RunnerEvent, StartEvent } from "./messages";
import { showFailed, showStarted, showStarting } from "./status";

/** The worker that runs programs, on one device. The page's header says how it starts. */
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
    worker.addEventListener("message", ({ data }: MessageEvent<StartEvent | RunnerEvent>) => {
      if (data.kind === "progress") {
        showStarting(data.stage, data.fraction);
      } else if (data.kind === "ready") {
        isReady = true;
        showStarted(data.device, data.threads);
      } else {
        this.#tell(data);
      }
    });
    worker.addEventListener("error", ({ message }) => {
      // Later errors are those of programs, which throw in timers, for instance.
      if (isReady) this.#tell({ kind: "output", text: `${message}\n`, error: true });
      else this.#tell({ kind: "unusable", message: message || "runner.mjs could not be loaded" });
    });
    return worker;
  }

  #tell(event: RunnerEvent): void {
    if (event.kind === "unusable") showFailed("not started");
    this.#receive(event);
  }

  /** Send a request; the answer is an event. */
  send(request: Request): void {
    this.#worker.postMessage(request);
  }

  /** Stop the program that runs, and start a fresh worker. */
  restart(device: DeviceName): void {
    this.#worker.terminate();
    showStarting();
    this.#worker = this.#start(device);
  }
}
