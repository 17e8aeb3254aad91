/**
 * The transport to a Python in a worker. Operations are sent in batches, one a microtask, and nobody waits for them.
 * An operation that fails leaves its error in the place of its result; questions about the result reject with it.
 */

import { errorFrom, PythonError } from "./errors";
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
  /** Stops what the worker computes, where it shares memory with this thread. */
  readonly stopSwitch?: StopSwitch | undefined;
}

/** Stops one question that the worker answers. */
export interface StopSwitch {
  /** A question that may be stopped is sent. */
  arm(): void;
  /** The one that was sent last shall end. */
  stop(): void;
}

/** A question, and the number that its answer will have. */
export interface Asked {
  readonly kind: "ask";
  readonly id: number;
  readonly question: Question;
  /** Whether it may be stopped. */
  readonly stoppable?: boolean;
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
  /** Of a question that may be stopped. */
  readonly signal?: AbortSignal | undefined;
  readonly abort: () => void;
}

const isStoppable = (item: Item): item is Asked => item.kind === "ask" && item.stoppable === true;

/** The buffers that go with an item. */
function transferOf(item: Item): ArrayBuffer[] {
  const call = item.kind === "ask" ? item.question : item;
  return "buffers" in call ? call.buffers.map(({ buffer }) => buffer) : [];
}

/** Whether an error says that what was asked for was stopped. */
const saysStopped = (error: Error): boolean => error instanceof PythonError && error.type === "RunStopped";

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
  /** The question that was sent and may be stopped. What comes after it waits here until it is answered. */
  #stoppable: number | undefined;
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
    this.#items.push(operation);
    this.#schedule();
  }

  call(name: string, result: number, handles: number, keywords: string, args: readonly Plain[]): void {
    this.send({ kind: "call", name, result, handles, keywords, args });
  }

  async ask(question: Question, signal?: AbortSignal): Promise<unknown> {
    if (this.#closed) throw this.#closed;
    if (this.#recording !== undefined) throw insideError(question);
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      const abort = (): void => {
        this.#abort(id);
      };
      signal?.addEventListener("abort", abort);
      if (this.#pending.size === 0) this.#port.busy(true);
      this.#pending.set(id, { resolve, reject, signal, abort });
      this.#items.push({ kind: "ask", id, question, ...(signal && { stoppable: true }) });
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
    if (this.#closed !== undefined || this.#stoppable !== undefined || this.#items.length === 0) return;
    const first = this.#items.findIndex(isStoppable);
    const items = this.#items.splice(0, first < 0 ? this.#items.length : first + 1);
    if (first >= 0) {
      this.#stoppable = (items[first] as Asked).id;
      this.#port.stopSwitch?.arm();
    }
    this.#port.send({ kind: "session", items }, items.flatMap(transferOf));
  }

  /** A question's signal has come. */
  #abort(id: number): void {
    if (id === this.#stoppable) {
      this.#port.stopSwitch?.stop(); // its answer says whether it was done
      return;
    }
    this.#items = this.#items.filter((item) => item.kind !== "ask" || item.id !== id);
    const pending = this.#settle(id);
    pending?.reject(pending.signal?.reason);
  }

  /** What waits for the answer `id`, which waits no more. */
  #settle(id: number): Pending | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    pending?.signal?.removeEventListener("abort", pending.abort);
    if (this.#pending.size === 0) this.#port.busy(false);
    return pending;
  }

  #receive({ id, answer }: FromWorker): void {
    if (id === this.#stoppable) {
      this.#stoppable = undefined;
      if (this.#items.length > 0) this.#schedule();
    }
    const pending = this.#settle(id);
    if (!("error" in answer)) {
      pending?.resolve(answer.value);
      return;
    }
    const error = errorFrom(answer.error);
    pending?.reject(pending.signal?.aborted && saysStopped(error) ? pending.signal.reason : error);
  }

  #end(error: Error): void {
    this.#closed ??= error;
    for (const id of this.#pending.keys()) this.#settle(id)?.reject(this.#closed);
  }
}
