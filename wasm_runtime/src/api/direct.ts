/** The transport to a Python on this thread: every operation is carried out when it is sent. */

import { errorFrom } from "./errors";
import type { Answer, Body, Bridge, Operation, Plain, Question, Transport } from "./transport";

export class DirectTransport implements Transport {
  readonly synchronous = true;
  readonly #bridge: Bridge;
  #thrown: unknown;

  constructor(bridge: Bridge) {
    this.#bridge = bridge;
  }

  send(operation: Operation): void {
    const error = this.#bridge.run(operation);
    if (error !== undefined) throw this.#error(error);
  }

  call(name: string, result: number, handles: number, keywords: string, args: readonly Plain[]): void {
    const error = this.#bridge.call(name, result, handles, keywords, args);
    if (error !== undefined) throw this.#error(error);
  }

  ask(question: Question): Promise<unknown> {
    if (question[0] === "python") return this.#bridge.python(question[1]);
    if (question[0] === "host") return this.#bridge.host(question[1], question[2]);
    return this.#bridge.wait(question).then((found) => this.#value(found));
  }

  askSync(question: Question): unknown {
    return this.#value(this.#bridge.ask(question));
  }

  #value(found: Answer): unknown {
    if ("error" in found) throw this.#error(found.error);
    return found.value;
  }

  body(run: () => number[]): Body {
    return () => {
      try {
        return JSON.stringify(run());
      } catch (error) {
        this.#thrown = error;
        throw error;
      }
    };
  }

  close(): void {
    // Python stays: others on this thread may use it.
  }

  /** The error of an operation; of one that called a body which threw, what it threw. */
  #error(text: string): unknown {
    const thrown = this.#thrown;
    this.#thrown = undefined;
    return thrown ?? errorFrom(text);
  }
}
