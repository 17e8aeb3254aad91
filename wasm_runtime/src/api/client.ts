/**
 * The transport to a Python in a worker. Operations are sent in batches, one a microtask, and nobody waits for them:
 * an operation that fails leaves its error in the place of its result, and what is asked of that rejects with it.
 */

import { errorFrom } from "./errors";
import { CaptureError, PolygradError } from "./generated/errors";
import type { Answer, Body, Operation, Plain, Question, Transport } from "./transport";

/** A worker, or the like: what a page's Worker and Node's have in common. */
export interface Port {
  send(message: ToWorker, transfer: ArrayBuffer[]): void;
  receive(listener: (message: FromWorker) => void): void;
  /** Tells when the worker is no more, and why. */
  failed(listener: (reason: string) => void): void;
  /** Tells whether an answer is being waited for. */
  busy(waiting: boolean): void;
  close(): void;
}

/** In order: operations, and questions with the number of their answer. */
export type Item = Operation | readonly ["ask", id: number, question: Question];

export interface ToWorker {
  readonly kind: "session";
  readonly items: Item[];
}

export interface FromWorker {
  readonly kind: "answer";
  readonly id: number;
  readonly answer: Answer;
}

interface Pending {
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

function insideError([question]: Question): CaptureError {
  return new CaptureError(
    `captured function: expected only operations on tensors, got a question (${question}): read values outside`,
  );
}

export class WorkerTransport implements Transport {
  readonly synchronous = false;
  readonly #port: Port;
  readonly #pending = new Map<number, Pending>();
  #items: Item[] = [];
  #transfer: ArrayBuffer[] = [];
  #recording: Operation[] | undefined;
  #scheduled = false;
  #next = 1;
  #closed: Error | undefined;

  constructor(port: Port) {
    this.#port = port;
    port.receive((message) => {
      this.#receive(message);
    });
    port.failed((reason) => {
      this.#end(new PolygradError(`polygrad: the worker failed: ${reason}`));
    });
  }

  send(operation: Operation): void {
    if (this.#closed) throw this.#closed;
    if (this.#recording !== undefined) {
      this.#recording.push(operation);
      return;
    }
    if (operation[0] === "call_packed") {
      for (const buffer of operation[4]) this.#transfer.push(buffer.buffer as ArrayBuffer);
    }
    this.#items.push(operation);
    this.#schedule();
  }

  call(name: string, result: number, handles: number, keywords: string, args: readonly Plain[]): void {
    this.send(["call", name, result, handles, keywords, ...args]);
  }

  async ask(question: Question): Promise<unknown> {
    if (this.#closed) throw this.#closed;
    if (this.#recording !== undefined) throw insideError(question);
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      if (this.#pending.size === 0) this.#port.busy(true);
      this.#pending.set(id, { resolve, reject });
      this.#items.push(["ask", id, question]);
      this.#schedule();
    });
  }

  askSync(question: Question): never {
    if (this.#recording !== undefined) throw insideError(question);
    throw new PolygradError(
      `${question[0]}: expected a session on this thread, got one in a worker, which has to be awaited`,
    );
  }

  body(run: () => number[]): Body {
    const outer = this.#recording;
    const operations: Operation[] = [];
    this.#recording = operations;
    try {
      return [operations, run()];
    } finally {
      this.#recording = outer;
    }
  }

  close(reason = "the session was closed"): void {
    this.#port.close();
    this.#end(new PolygradError(`polygrad: ${reason}`));
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    queueMicrotask(() => {
      this.#flush();
    });
  }

  #flush(): void {
    this.#scheduled = false;
    const [items, transfer] = [this.#items, this.#transfer];
    this.#items = [];
    this.#transfer = [];
    if (!this.#closed) this.#port.send({ kind: "session", items }, transfer);
  }

  #receive({ id, answer }: FromWorker): void {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    if (this.#pending.size === 0) this.#port.busy(false);
    if ("error" in answer) pending?.reject(errorFrom(answer.error));
    else pending?.resolve(answer.value);
  }

  #end(error: Error): void {
    this.#closed ??= error;
    for (const pending of this.#pending.values()) pending.reject(this.#closed);
    this.#pending.clear();
  }
}
