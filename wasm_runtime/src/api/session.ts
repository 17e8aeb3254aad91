/**
 * A session: what one Python holds for this side. It gives objects their numbers, frees them, and sends calls. It
 * knows of tensors that the bridge makes them of bytes; what can be done with them is in the classes above it.
 */

import { dtypeOfArray, type DType } from "./dtypes";
import { Bytes, encode, encodePlain, type EncodedArguments, type Options } from "./encode";
import { ArgumentError, DeviceError, OutOfMemoryError } from "./generated/errors";
import { Handle, handlesIn, type Owner } from "./handle";
import type { Plain, Question, TableQuestion, Transport } from "./transport";

/** With this many dead objects, they are released without waiting for the end of the task. */
const MAX_DEAD = 256;

/** Engines collect garbage before an allocation of this many bytes. It is not touched: it costs address space only. */
const LARGE_ALLOCATION = 2 ** 29;

/** What Python tells of itself when a session starts. */
export interface SessionInfo {
  /** The default device. */
  readonly device: string;
  /** The names of all devices that this build has. */
  readonly devices: readonly string[];
}

/** A Python that has started, and how operations reach it. */
export interface Connection {
  readonly transport: Transport;
  readonly info: SessionInfo;
}

/** A class of handles. */
type HandleClass = new (session: Session, number: number) => Handle<Session>;

export class Session implements Owner {
  readonly transport: Transport;
  #device: string;
  readonly #devices: readonly string[];
  /** `Tensor.training` as this side set it last. */
  training = false;
  /** The number of functions that are being captured, one inside the other. */
  captureDepth = 0;
  /** The pixels of an image that the host can draw. A page sets it. */
  pixels: (image: object) => { data: Uint8ClampedArray; width: number; height: number } = () => {
    throw new ArgumentError(
      "fromImage: expected pixels ({ data, width, height }), got what only a page can draw",
    );
  };
  /** The class of what operations return. */
  readonly resultClass: HandleClass;
  #nextNumber = 1;
  #dead: number[] = [];
  #released = 0;
  #flushing = false;
  readonly #scopes: Set<Handle>[] = [];
  readonly #finalizers: FinalizationRegistry<number>;

  constructor(transport: Transport, { device, devices }: SessionInfo, resultClass: HandleClass) {
    this.transport = transport;
    this.resultClass = resultClass;
    this.#device = device;
    this.#devices = devices;
    this.#finalizers = new FinalizationRegistry((number) => {
      this.#release(number);
    });
  }

  /** The name of the default device. */
  get device(): string {
    return this.#device;
  }

  set device(name: string) {
    const upper = name.toUpperCase();
    if (!this.#devices.includes(upper)) {
      throw new DeviceError(
        `device: expected one of ${this.#devices.join(", ")}, got ${JSON.stringify(name)}`,
      );
    }
    this.run("$default_device", [upper]);
    this.#device = upper;
  }

  // --- numbers and lifetimes

  /** The first of `count` consecutive numbers that are not in use. */
  allocate(count = 1): number {
    const first = this.#nextNumber;
    this.#nextNumber += count;
    return first;
  }

  adopt(handle: Handle, number: number): void {
    this.#finalizers.register(handle, number, handle);
    this.#scopes.at(-1)?.add(handle);
  }

  drop(handle: Handle, number: number): void {
    this.#finalizers.unregister(handle);
    this.forgetInScope(handle);
    this.#release(number);
  }

  forgetInScope(handle: Handle): void {
    for (const scope of this.#scopes) scope.delete(handle);
  }

  throwDisposed(handle: Handle): never {
    throw new ArgumentError(
      `${handle.constructor.name}: expected an object in use, got one that was disposed of: keep() what has to last`,
    );
  }

  #release(number: number): void {
    this.#released++;
    this.#dead.push(number);
    if (this.#dead.length >= MAX_DEAD) this.flush();
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      this.flush();
    });
  }

  /** Release dead objects now. */
  flush(): void {
    if (this.#dead.length === 0) return;
    const dead = this.#dead;
    this.#dead = [];
    try {
      this.transport.send({ kind: "release", handles: dead });
    } catch {
      // The session has ended, and all its objects with it.
    }
  }

  /**
   * Run `run`, and free what was made in it, but for what it returns (also inside of arrays, Maps, Sets and objects)
   * and what was kept. Where `run` is asynchronous, that is what was made until its promise settled.
   */
  scope<T>(run: () => T): T {
    const made = new Set<Handle>();
    this.#scopes.push(made);
    let result: T;
    try {
      result = run();
    } catch (error) {
      this.#endScope(made, undefined);
      throw error;
    }
    if (!(result instanceof Promise)) {
      this.#endScope(made, result);
      return result;
    }
    return (result as Promise<unknown>).then(
      (value) => {
        this.#endScope(made, value);
        return value;
      },
      (error: unknown) => {
        this.#endScope(made, undefined);
        throw error;
      },
    ) as T;
  }

  /**
   * End the scope `made`; what is in `result` goes to the scope around it. Another scope may have begun since, and then
   * what was made last belongs to that one.
   */
  #endScope(made: Set<Handle>, result: unknown): void {
    const index = this.#scopes.indexOf(made);
    this.#scopes.splice(index, 1);
    const [outer, kept] = [this.#scopes[index - 1], new Set(handlesIn(result))];
    for (const handle of kept) {
      const isOfOther = this.#scopes.slice(index).some((later) => later.delete(handle));
      if (made.delete(handle) || isOfOther) outer?.add(handle);
    }
    for (const handle of made) handle.dispose();
  }

  /** Free every object in `value`. */
  disposeIn(value: unknown): void {
    for (const handle of handlesIn(value)) handle.dispose();
  }

  // --- calls

  /** Call `name`; the number of the result. */
  call(name: string, args: readonly unknown[], options?: Options): number {
    const result = this.allocate();
    this.send(name, result, args, options);
    return result;
  }

  /** Call `name` for what it does. */
  run(name: string, args: readonly unknown[], options?: Options): void {
    this.send(name, 0, args, options);
  }

  send(name: string, result: number, args: readonly unknown[], options?: Options): void {
    let all = args;
    let keywords = "";
    for (const key in options) {
      if (options[key] === undefined) continue;
      if (keywords === "") all = [...args];
      keywords += keywords === "" ? key : `,${key}`;
      (all as unknown[]).push(options[key]);
    }
    const plain: Plain[] = [];
    const handles = encodePlain(this, all, plain);
    if (handles >= 0) {
      this.transport.call(name, result, handles, keywords, plain);
      return;
    }
    const named = keywords === "" ? [] : keywords.split(",").map((key, i) => [key, all[args.length + i]]);
    this.#sendPacked(name, result, args, Object.fromEntries(named) as Options);
  }

  /** Call `name` with arguments that may hold `Bytes` and functions; the number of the result. */
  callPacked(name: string, args: readonly unknown[]): number {
    const result = this.allocate();
    this.#sendPacked(name, result, args, {});
    return result;
  }

  /** `callPacked` of a function that may wait for a GPU. Rejects with its error, and with the reason of `signal`. */
  async callWaiting(name: string, args: readonly unknown[], signal?: AbortSignal): Promise<number> {
    const result = this.allocate();
    await this.ask({ kind: "call_waiting", name, result, ...this.encode([args, {}]) }, signal);
    return result;
  }

  /** The plain data that `name` returns, which may wait for a GPU, in one message; `signal` as of `callWaiting`. */
  async valueWaiting(name: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown> {
    return this.ask({ kind: "call_waiting", name, result: 0, ...this.encode([args, {}]) }, signal);
  }

  /** The plain data under a number, which is free then. */
  async take(handle: number): Promise<unknown> {
    try {
      return await this.ask({ kind: "value", handle });
    } finally {
      this.#release(handle);
    }
  }

  /** The bytes that `name` returns, which may wait for a GPU. */
  async fileOf(name: string, args: readonly unknown[]): Promise<Uint8Array<ArrayBuffer>> {
    const handle = await this.callWaiting(name, args);
    try {
      return new Uint8Array((await this.ask({ kind: "read", handle })) as ArrayBuffer);
    } finally {
      this.#release(handle);
    }
  }

  #sendPacked(name: string, result: number, args: readonly unknown[], options: Options): void {
    this.transport.send({ kind: "call_packed", name, result, ...this.encode([args, options]) });
  }

  /** Arguments, or one value, for the bridge. Typed arrays among them become tensors. */
  encode(args: unknown): EncodedArguments {
    return encode(this, args, (array) => {
      const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
      return new Handle(this, this.make(bytes, dtypeOfArray(array), [array.length]));
    });
  }

  /** Bytes as an argument. The user may write to them as soon as the call is sent, so a worker gets a copy. */
  bytes(array: Uint8Array<ArrayBuffer>): Bytes {
    return new Bytes(this.transport.synchronous ? array : array.slice());
  }

  /** A tensor of the bytes of an array; its number. They are copied. */
  make(
    bytes: Uint8Array<ArrayBuffer>,
    dtype: DType,
    shape: readonly number[],
    options: { device?: string; requiresGrad?: boolean; cast?: DType } = {},
  ): number {
    const { device, requiresGrad, cast } = options;
    return this.callPacked("$make", [this.bytes(bytes), dtype, shape, device, requiresGrad, cast]);
  }

  // --- questions

  /** The result of `name`, which is plain data. */
  async value(name: string, args: readonly unknown[], options?: Options): Promise<unknown> {
    return this.take(this.call(name, args, options));
  }

  ask(question: Question, signal?: AbortSignal): Promise<unknown> {
    return this.transport.ask(question, signal);
  }

  /**
   * The bytes of a tensor. The engine does not know how much of Python's memory its dead objects hold. So when that
   * memory is full, the engine is made to collect garbage and the tensor is computed again, until nothing more is freed.
   */
  async read(number: number): Promise<ArrayBuffer> {
    for (;;) {
      try {
        return (await this.ask({ kind: "read", handle: number })) as ArrayBuffer;
      } catch (error) {
        if (!(error instanceof OutOfMemoryError) || !(await this.#collect())) throw error;
      }
    }
  }

  /** Make the engine collect garbage by asking it for memory; whether objects of this session were among it. */
  async #collect(): Promise<boolean> {
    const before = this.#released;
    for (let i = 0; i < 10 && this.#released === before; i++) {
      try {
        new ArrayBuffer(LARGE_ALLOCATION);
      } catch {
        // An engine that refuses has collected garbage before.
      }
      // Finalizers are tasks of their own, which come late where the machine is busy.
      await new Promise((resolve) => setTimeout(resolve, 10 * (i + 1)));
    }
    this.flush();
    return this.#released > before;
  }

  askSync(question: TableQuestion): unknown {
    return this.transport.askSync(question);
  }

  close(): void {
    this.#dead = [];
    this.transport.close();
  }
}
