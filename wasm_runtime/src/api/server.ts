/** The worker's end of a `WorkerTransport`: carries out what arrives, in order, and answers questions. */

import type { FromWorker, ToWorker } from "./client";
import { describe } from "./errors";
import {
  resultOf,
  type Answer,
  type Bridge,
  type HostQuestion,
  type Operation,
  type SourceQuestion,
  type TableQuestion,
} from "./transport";

type Reply = (message: FromWorker, transfer: ArrayBuffer[]) => void;

export class SessionServer {
  readonly #bridge: Bridge;
  readonly #reply: Reply;
  /** The error of an operation without a result. Nobody can ask for it, so the next question is answered with it. */
  #failure: string | undefined;
  #before: Promise<void> = Promise.resolve();

  constructor(bridge: Bridge, reply: Reply) {
    this.#bridge = bridge;
    this.#reply = reply;
  }

  receive({ items }: ToWorker): void {
    this.#before = this.#before.then(async () => {
      for (const item of items) {
        if (item.kind !== "ask") this.#run(item);
        else if (item.question.kind === "host") void this.#answerFromHost(item.id, item.question);
        else await this.#answer(item.id, item.question, item.stoppable);
      }
    });
  }

  #run(operation: Operation): void {
    const error = this.#bridge.run(operation);
    if (error === undefined) return;
    const result = resultOf(operation);
    if (result) this.#bridge.fail(result, error);
    else this.#failure ??= error;
  }

  /** While Python waits for something, other calls go on, as on its own thread. */
  async #answerFromHost(id: number, { method, args }: HostQuestion): Promise<void> {
    let answer: Answer;
    try {
      answer = { value: await this.#bridge.host(method, args) };
    } catch (error) {
      answer = { error: describe(error) };
    }
    this.#reply({ kind: "answer", id, answer }, []);
  }

  async #answer(
    id: number,
    question: TableQuestion | SourceQuestion,
    stoppable: boolean | undefined,
  ): Promise<void> {
    let answer: Answer;
    try {
      answer =
        question.kind === "python"
          ? { value: await this.#bridge.python(question.code) }
          : await this.#bridge.wait(question, stoppable);
    } catch (error) {
      answer = { error: describe(error) };
    }
    if (this.#failure !== undefined) answer = { error: this.#failure };
    this.#failure = undefined;
    const transfer = "value" in answer && answer.value instanceof ArrayBuffer ? [answer.value] : [];
    this.#reply({ kind: "answer", id, answer }, transfer);
  }
}
