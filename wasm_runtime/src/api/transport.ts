/**
 * How operations reach Python: on this thread (`DirectTransport`) or in a worker (`WorkerTransport`).
 *
 * An operation gives nothing back: its result goes into Python's table of objects, under a number that this side
 * chose. A question has an answer, which a worker sends later. Both are carried out in the order in which they are
 * sent.
 */

/** What can be passed without being written as JSON. A handle is its number, and marked in a bit mask. */
export type Plain = number | string | boolean | bigint | undefined;

/** Call a function with arguments that need no JSON: `call` of polygrad/bridge.py. */
export interface Call {
  readonly kind: "call";
  readonly name: string;
  /** The number that the result gets; 0: the result is dropped. */
  readonly result: number;
  /** The bit mask of `encodePlain`. */
  readonly handles: number;
  /** The names of the last arguments, joined by commas. */
  readonly keywords: string;
  readonly args: readonly Plain[];
}

/** Call a function with arguments of any kind, as `encode` writes them, functions among them. */
export interface PackedCall {
  readonly kind: "call_packed";
  readonly name: string;
  readonly result: number;
  readonly text: string;
  readonly buffers: readonly Uint8Array<ArrayBuffer>[];
  readonly bodies: readonly Body[];
}

/** Give the elements of the sequence `source` the numbers from `first` on. The sequence is dropped. */
export interface Unpack {
  readonly kind: "unpack";
  readonly source: number;
  readonly first: number;
  readonly count: number;
}

/** Drop objects. */
export interface Release {
  readonly kind: "release";
  readonly handles: readonly number[];
}

/** What is done for its effect. Each kind is a method of polygrad/bridge.py's Session. */
export type Operation = Call | PackedCall | Unpack | Release;

/** What is asked about the object `handle`: its plain data, its length, whether it is `null`, its elements. */
export interface ObjectQuestion {
  readonly kind: "value" | "length" | "is_none" | "read";
  readonly handle: number;
}

/** What is known of an object without computing; `names` are attributes of an object that is no tensor. */
export interface MetaQuestion {
  readonly kind: "meta";
  readonly handle: number;
  readonly names: readonly string[];
}

/**
 * `PackedCall`, where it may have to wait for a GPU. With 0 as `result` the answer is the function's result, which is plain
 * data.
 */
export interface WaitingCall {
  readonly kind: "call_waiting";
  readonly name: string;
  readonly result: number;
  readonly text: string;
  readonly buffers: readonly Uint8Array<ArrayBuffer>[];
  readonly bodies: readonly Body[];
}

/** The value of Python source. */
export interface SourceQuestion {
  readonly kind: "python";
  readonly code: string;
}

/** The result of a method of the host's own Python object. */
export interface HostQuestion {
  readonly kind: "host";
  readonly method: string;
  readonly args: readonly unknown[];
}

export type TableQuestion = ObjectQuestion | MetaQuestion | WaitingCall;
export type Question = TableQuestion | SourceQuestion | HostQuestion;

/** A body that was recorded: its operations, and its result as `encode` writes it. */
export interface RecordedBody {
  readonly operations: readonly Operation[];
  readonly result: string;
}

/** What a function does: a function that does it and returns its result as `encode` writes it, or a record. */
export type Body = (() => string) | RecordedBody;

export interface Transport {
  /** Whether answers are there at once: whether `askSync` works. */
  readonly synchronous: boolean;
  /** Carry out an operation, now or in its turn. Throws the operation's error if it is known at once. */
  send(operation: Operation): void;
  /** `send` of a `Call`, without an object for it: most operations are calls. */
  call(name: string, result: number, handles: number, keywords: string, args: readonly Plain[]): void;
  /**
   * The answer, once all earlier operations are done. Rejects with its error, or with an earlier operation's; with the reason
   * of `signal` if that has come before what is asked for was done, and then it is not done. A signal stops a `WaitingCall`
   * at the beginning of a Program; where a worker shares memory with this thread, also in the middle of one.
   */
  ask(question: Question, signal?: AbortSignal): Promise<unknown>;
  /** The answer at once. Throws where that is not possible. */
  askSync(question: TableQuestion): unknown;
  /**
   * The body of a function, which `run` carries out through this session; it returns the result as `encode` writes it.
   * `run` is called whenever Python calls the function, or it is called now and its operations are recorded.
   */
  body(run: () => string): Body;
  /** Free all objects. Later operations throw, and questions are rejected; a worker is stopped, and what is pending rejects with `reason`. */
  close(reason?: string): void;
}

/** A Python that carries out operations: the Session of polygrad/bridge.py, Python source, and the host's methods. */
export interface Bridge {
  /** Carry out an operation; its error. */
  run(operation: Operation): ErrorText | undefined;
  /** `run` of a `Call`, without an object for it. */
  call(
    name: string,
    result: number,
    handles: number,
    keywords: string,
    args: readonly Plain[],
  ): ErrorText | undefined;
  /** Keep an error in the place of the object `handle`. */
  fail(handle: number, error: ErrorText): void;
  ask(question: TableQuestion): Answer;
  /** `ask`, where the answer may take time, as a GPU's does. `stoppable`: another thread may stop it. */
  wait(question: TableQuestion, stoppable?: boolean): Promise<Answer>;
  python(code: string): Promise<unknown>;
  /** Call a method of the host's own Python object; its result, as plain data. */
  host(method: string, args: readonly unknown[]): Promise<unknown>;
  /** Free all objects. Nothing can be asked for afterwards. */
  close(): void;
}

/** An error as JSON: see `errorFrom`. */
export type ErrorText = string;

export type Answer = { readonly value: unknown } | { readonly error: ErrorText };

/** The number under which an operation's result is kept; 0 when it has none. */
export function resultOf(operation: Operation): number {
  switch (operation.kind) {
    case "unpack":
      return operation.first;
    case "release":
      return 0;
    default:
      return operation.result;
  }
}
