/** The worker that finds kernels, as functions that answer. It runs one request at a time. */

import type { DeviceName } from "./devices";
import type { Explained, Launched, Variant } from "./inspected";
import type { Failure, Language, Request, RunnerEvent } from "./messages";
import { ProgramRunner } from "./program_runner";
import { lastExpression } from "./kernel_programs";

/** A program failed, or another error of the worker. */
export class ProgramError extends Error {
  constructor(readonly failure: Failure) {
    super(failure.message);
    this.name = failure.name;
  }
}

/** The worker was stopped before it answered. */
export class Stopped extends Error {}

interface Waiting {
  resolve(value: unknown): void;
  reject(reason: Error): void;
}

export class KernelWorker {
  readonly #runner: ProgramRunner;
  #waiting: Waiting | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #unusable: Failure | undefined;
  #starts = 0;

  constructor(device: DeviceName) {
    this.#runner = new ProgramRunner(device, (event) => {
      this.#receive(event);
    });
  }

  /** What a program launches. */
  async inspect(language: Language, source: string): Promise<Launched> {
    const result = language === "javascript" ? await lastExpression(source) : ([0, 0] as const);
    return (await this.#ask({ kind: "inspect", language, source, result })) as Launched;
  }

  /** A kernel that was found last, pass by pass. */
  async explained(kernel: number): Promise<Explained> {
    return (await this.#ask({ kind: "ask", function: "explained", args: [kernel] })) as Explained;
  }

  /** A kernel as `opts` make it for a device; null: the Opts of the heuristics. */
  async variant(kernel: number, device: string, opts: string | null): Promise<Variant> {
    return (await this.#ask({ kind: "ask", function: "variant", args: [kernel, device, opts] })) as Variant;
  }

  /** Stop what runs, and start a fresh worker. */
  restart(device: DeviceName): void {
    this.#starts++;
    this.#unusable = undefined;
    this.#settle()?.reject(new Stopped("stopped"));
    this.#runner.restart(device);
  }

  #ask(request: Request): Promise<unknown> {
    const start = this.#starts;
    const answer = this.#last.then(
      () =>
        new Promise((resolve, reject: (reason: Error) => void) => {
          if (start !== this.#starts) reject(new Stopped("stopped"));
          else if (this.#unusable) reject(new ProgramError(this.#unusable));
          else {
            this.#waiting = { resolve, reject };
            this.#runner.send(request);
          }
        }),
    );
    this.#last = answer.catch(() => undefined);
    return answer;
  }

  #settle(): Waiting | undefined {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    return waiting;
  }

  #receive(event: RunnerEvent): void {
    switch (event.kind) {
      case "unusable":
        this.#unusable = { name: "polygrad did not start", message: event.message };
        this.#settle()?.reject(new ProgramError(this.#unusable));
        break;
      case "answer":
        this.#settle()?.resolve(event.value);
        break;
      case "refused":
        this.#settle()?.reject(new ProgramError(event.failure));
        break;
      default: // what the program prints and plots is not shown here
    }
  }
}
