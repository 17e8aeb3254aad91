/**
 * How operations reach Python: on this thread (`DirectTransport`) or in a worker (`WorkerTransport`).
 *
 * An operation gives nothing back: its result goes into Python's table of objects, under a number that this side
 * chose. A question has an answer, for which a worker has to be waited. What is asked is carried out in order.
 */

/** What can be passed without being written as JSON. A handle is its number, and marked in a bit mask. */
export type Plain = number | string | boolean | bigint | undefined;

/** A method of polygrad/bridge.py's Session, and its arguments. */
export type Operation =
  | readonly ["call", name: string, result: number, handles: number, keywords: string, ...args: Plain[]]
  | readonly ["call_packed", name: string, result: number, text: string, buffers: Uint8Array[]]
  | readonly ["unpack", source: number, first: number, count: number]
  | readonly ["release", handles: number[]]
  | readonly [
      "compile_step",
      result: number,
      model: string,
      optimizer: number,
      inputs: number,
      body: unknown,
      first: number,
    ]
  | readonly ["jit_call", jit: number, result: number, text: string, body: unknown];

export type Question =
  | readonly ["value", handle: number]
  | readonly ["length", handle: number]
  | readonly ["is_none", handle: number]
  | readonly ["meta", handle: number, names: readonly string[]]
  | readonly ["read", handle: number]
  /** The operation `call_packed`, where it may have to wait for a GPU. */
  | readonly ["call_waiting", name: string, result: number, text: string]
  | readonly ["python", code: string]
  | readonly ["host", method: string, args: readonly unknown[]];

/** What a captured function does: a function that does it, or the operations; and then its results' numbers. */
export type Body = (() => string) | readonly [operations: Operation[], results: number[]];

export interface Transport {
  /** Whether answers are there at once: whether `askSync` works. */
  readonly synchronous: boolean;
  /** Carry out an operation, now or in due order. Throws its error if it is known at once. */
  send(operation: Operation): void;
  /** `send` of the operation "call", which is most of them. */
  call(name: string, result: number, handles: number, keywords: string, args: readonly Plain[]): void;
  /** The answer, once all operations before it are done. Rejects with its error, or with an earlier operation's. */
  ask(question: Question): Promise<unknown>;
  /** The answer at once. Throws where that is not possible. */
  askSync(question: Question): unknown;
  /**
   * The body of a captured function, which `run` carries out through this session; it returns the numbers of the
   * results. Called back while Python captures, or recorded now, to be sent.
   */
  body(run: () => number[]): Body;
  /** End the Python behind it. What is still asked is rejected with `reason`. */
  close(reason?: string): void;
}

/** What a Python has to offer to be driven: the methods of polygrad/bridge.py's Session, and running source, and what else the host offers. */
export interface Bridge {
  run(operation: Operation): string | undefined;
  call(
    name: string,
    result: number,
    handles: number,
    keywords: string,
    args: readonly Plain[],
  ): string | undefined;
  fail(handle: number, text: string): void;
  ask(question: Question): Answer;
  /** The same, where the answer may have to be waited for: it may come from a GPU. */
  wait(question: Question): Promise<Answer>;
  python(code: string): Promise<unknown>;
  /** Call a method of the host's own Python object; what it gives, as plain data. */
  host(method: string, args: readonly unknown[]): Promise<unknown>;
}

/** `error` is text, see `errorFrom`. */
export type Answer = { readonly value: unknown } | { readonly error: string };

/** The number under which an operation's result is kept; 0 when there is none. */
export function resultOf(operation: Operation): number {
  switch (operation[0]) {
    case "call":
    case "call_packed":
    case "jit_call":
    case "unpack":
      return operation[2];
    case "compile_step":
      return operation[1];
    default:
      return 0;
  }
}
