/** The worker's end of a `WorkerTransport`: carries out what arrives, in order, and answers questions. */

import type { FromWorker, ToWorker } from "./client";
import { describe } from "./errors";
import { resultOf, type Answer, type Bridge, type Operation, type Question } from "./transport";

type Reply = (message: FromWorker, transfer: ArrayBuffer[]) => void;

export class SessionServer {
  readonly #bridge: Bridge;
  readonly #reply: Reply;
  /** The error of an operation without a result: nobody can ask for it, so the next answer is it. */
  #failure: string | undefined;
  #before: Promise<void> = Promise.resolve();

  constructor(bridge: Bridge, reply: Reply) {
    this.#bridge = bridge;
    this.#reply = reply;
  }

  receive({ items }: ToWorker): void {
    this.#before = this.#before.then(async () => {
      for (const item of items) {
        if (item[0] !== "ask") this.#run(item);
        else if (item[2][0] === "host") void this.#answerFromHost(item[1], item[2][1], item[2][2]);
        else await this.#answer(item[1], item[2]);
      }
    });
  }

  #run(operation: Operation): void {
    const error =
      operation[0] === "call"
        ? this.#bridge.call(operation[1], operation[2], operation[3], operation[4], operation.slice(5))
        : this.#bridge.run(operation);
    if (error === undefined) return;
    const result = resultOf(operation);
    if (result) this.#bridge.fail(result, error);
    else this.#failure ??= error;
  }

  /** Python that waits for something lets other calls go on, as on its own thread. */
  async #answerFromHost(id: number, method: string, args: readonly unknown[]): Promise<void> {
    let answer: Answer;
    try {
      answer = { value: await this.#bridge.host(method, args) };
    } catch (error) {
      answer = { error: describe(error) };
    }
    this.#reply({ kind: "answer", id, answer }, []);
  }

  async #answer(id: number, question: Question): Promise<void> {
    let answer: Answer;
    try {
      answer =
        question[0] === "python"
          ? { value: await this.#bridge.python(question[1]) }
          : await this.#bridge.wait(question);
    } catch (error) {
      answer = { error: describe(error) };
    }
    if (this.#failure !== undefined) answer = { error: this.#failure };
    this.#failure = undefined;
    const transfer = "value" in answer && answer.value instanceof ArrayBuffer ? [answer.value] : [];
    this.#reply({ kind: "answer", id, answer }, transfer);
  }
}
