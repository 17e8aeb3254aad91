/** The transport to a Python on this thread: every operation is carried out when it is sent. */

import { errorFrom } from "./errors";
import { PolygradError } from "./generated/errors";
import type {
  Answer,
  Body,
  Bridge,
  ErrorText,
  Operation,
  Plain,
  Question,
  TableQuestion,
  Transport,
} from "./transport";

export class DirectTransport implements Transport {
  readonly synchronous = true;
  #open: Bridge | undefined;
  #thrown: unknown;

  constructor(bridge: Bridge) {
    this.#open = bridge;
  }

  /** Throws PolygradError after `close`. */
  get #bridge(): Bridge {
    if (this.#open === undefined) throw new PolygradError("polygrad: the session was closed");
    return this.#open;
  }

  send(operation: Operation): void {
    const error = this.#bridge.run(operation);
    if (error !== undefined) throw this.#errorFrom(error);
  }

  call(name: string, result: number, handles: number, keywords: string, args: readonly Plain[]): void {
    const error = this.#bridge.call(name, result, handles, keywords, args);
    if (error !== undefined) throw this.#errorFrom(error);
  }

  async ask(question: Question, signal?: AbortSignal): Promise<unknown> {
    signal?.throwIfAborted(); // it cannot come while Python has this thread
    if (question.kind === "python") return this.#bridge.python(question.code);
    if (question.kind === "host") return this.#bridge.host(question.method, question.args);
    return this.#valueOf(await this.#bridge.wait(question));
  }

  askSync(question: TableQuestion): unknown {
    return this.#valueOf(this.#bridge.ask(question));
  }

  #valueOf(answer: Answer): unknown {
    if ("error" in answer) throw this.#errorFrom(answer.error);
    return answer.value;
  }

  body(run: () => string): Body {
    return () => {
      try {
        return run();
      } catch (error) {
        this.#thrown = error;
        throw error;
      }
    };
  }

  close(): void {
    this.#open?.close();
    this.#open = undefined;
  }

  /** The error of an operation. If the operation called a body that threw, it is what the body threw. */
  #errorFrom(text: ErrorText): unknown {
    const thrown = this.#thrown;
    this.#thrown = undefined;
    return thrown ?? errorFrom(text);
  }
}
