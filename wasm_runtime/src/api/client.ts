/**
 * The transport to a Python in a worker. Operations are sent in batches, one a microtask, and nobody waits for them.
 * An operation that fails leaves its error in the place of its result; questions about the result reject with it.
 */

import { errorFrom } from "./errors";
import { CaptureError, PolygradError } from "./generated/errors";
import type { Answer, Body, Operation, Plain, Question, TableQuestion, Transport } from "./transport";

/** A worker: what a page's Worker and Node's have in common. */
export interface Port {
  send(message: ToWorker, transfer: ArrayBuffer[]): void;
  receive(listener: (message: FromWorker) => void): void;
  /** Calls `listener` with the reason when the worker has ended. */
  failed(listener: (reason: string) => void): void;
  /** Is told whether an answer is awaited. */
  busy(waiting: boolean): void;
  close(): void;
}

/** A question, and the number that its answer will have. */
export interface Asked {
  readonly kind: "ask";
  readonly id: number;
  readonly question: Question;
}

export type Item = Operation | Asked;

export interface ToWorker {
  readonly kind: "session";
  /** In the order in which they are carried out. */
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

function insideError({ kind }: Question): CaptureError {
  return new CaptureError(
    `captured function: expected only operations on tensors, got a question (${kind}): read values outside`,
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
  #nextId = 1;
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
    if (operation.kind === "call_packed") {
      for (const { buffer } of operation.buffers) this.#transfer.push(buffer);
    }
    this.#items.push(operation);
    this.#schedule();
  }

  call(name: string, result: number, handles: number, keywords: string, args: readonly Plain[]): void {
    this.send({ kind: "call", name, result, handles, keywords, args });
  }

  async ask(question: Question): Promise<unknown> {
    if (this.#closed) throw this.#closed;
    if (this.#recording !== undefined) throw insideError(question);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      if (this.#pending.size === 0) this.#port.busy(true);
      this.#pending.set(id, { resolve, reject });
      this.#items.push({ kind: "ask", id, question });
      this.#schedule();
    });
  }

  askSync(question: TableQuestion): never {
    if (this.#recording !== undefined) throw insideError(question);
    throw new PolygradError(
      `${question.kind}: expected a session on this thread, got one in a worker, which has to be awaited`,
    );
  }

  body(run: () => string): Body {
    const outer = this.#recording;
    const operations: Operation[] = [];
    this.#recording = operations;
    try {
      return { operations, result: run() };
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
