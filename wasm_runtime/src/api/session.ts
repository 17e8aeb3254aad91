/**
 * A session: what one Python holds for this side. Numbers, lifetimes, and how calls are sent; knows no tensors.
 */

import { dtypeOfArray, type DType, type TypedArray } from "./dtypes";
import { encode, encodePlain, type Options } from "./encode";
import { ArgumentError, DeviceError, OutOfMemoryError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { Handle } from "./handle";
import type { Plain, Question, Transport } from "./transport";

/** How many objects may be dead before they are released without waiting for the end of the task. */
const MOST_DEAD = 256;

/** An allocation that engines collect garbage for. It is not touched, so it costs address space only. */
const COLLECTED_FOR = 2 ** 29;

/** What is true of a session from its start. */
export interface SessionInfo {
  /** The default device. */
  readonly device: string;
  /** The names of all devices that there may be. */
  readonly devices: readonly string[];
}

export class Session {
  readonly transport: Transport;
  #device: string;
  readonly #devices: readonly string[];
  /** `Tensor.training` as this side set it last. */
  training = false;
  /** How many functions are being captured, one inside the other. */
  capturing = 0;
  /** The pixels of what the host can draw, but only a page can. */
  pixels: (image: object) => { data: Uint8ClampedArray; width: number; height: number } = () => {
    throw new ArgumentError(
      "fromImage: expected pixels ({ data, width, height }), got what only a page can draw",
    );
  };
  /** The class of tensors, of which the session knows no more. */
  tensorClass!: new (session: Session, number: number) => Tensor;
  #next = 1;
  #dead: number[] = [];
  #released = 0;
  #flushing = false;
  readonly #scopes: Set<Handle>[] = [];
  readonly #finalizers: FinalizationRegistry<number>;

  constructor(transport: Transport, { device, devices }: SessionInfo) {
    this.transport = transport;
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

  /** A number that is not in use; `count` numbers in a row. */
  allocate(count = 1): number {
    const first = this.#next;
    this.#next += count;
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
    if (this.#dead.length >= MOST_DEAD) this.flush();
    if (this.#flushing) return;
    this.#flushing = true;
    queueMicrotask(() => {
      this.#flushing = false;
      this.flush();
    });
  }

  /** Tell Python at once what has died. */
  flush(): void {
    if (this.#dead.length === 0) return;
    const dead = this.#dead;
    this.#dead = [];
    try {
      this.transport.send(["release", dead]);
    } catch {
      // The session has ended, and all its objects with it.
    }
  }

  /**
   * Run `run`, and free what was made in it, but for what it returns (also in arrays and objects) and what was kept.
   * `run` must not be asynchronous: what other code makes meanwhile would be freed too.
   */
  scope<T>(run: () => T): T {
    const made = new Set<Handle>();
    this.#scopes.push(made);
    let kept: Set<Handle> | undefined;
    try {
      const result = run();
      if (result instanceof Promise) {
        throw new ArgumentError(
          "scope: expected a function that returns at once, got a promise: await outside",
        );
      }
      kept = new Set(handlesIn(result));
      return result;
    } finally {
      this.#scopes.pop();
      for (const handle of made) {
        if (kept?.has(handle)) this.#scopes.at(-1)?.add(handle);
        else handle.dispose();
      }
    }
  }

  /** Free every object in `value`. */
  disposeIn(value: unknown): void {
    for (const handle of handlesIn(value)) handle.dispose();
  }

  // --- calls

  /** Call `name`; the result gets a new number, which is returned. */
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
    const handles = encodePlain(all, plain);
    if (handles >= 0) {
      this.transport.call(name, result, handles, keywords, plain);
      return;
    }
    const given = keywords === "" ? [] : keywords.split(",").map((key, i) => [key, all[args.length + i]]);
    const text = this.encode([args, Object.fromEntries(given)]);
    this.transport.send(["call_packed", name, result, text, []]);
  }

  /** Arguments as JSON for the bridge. */
  encode(args: readonly unknown[]): string {
    return encode(args, (array) => this.arrayHandle(array, dtypeOfArray(array), [array.length]));
  }

  /** A tensor of the bytes of an array; its number. They are copied. */
  make(
    bytes: Uint8Array<ArrayBuffer>,
    dtype: DType,
    shape: readonly number[],
    options: { device?: string; requiresGrad?: boolean; cast?: DType } = {},
  ): number {
    const result = this.allocate();
    const { device = null, requiresGrad = null, cast = null } = options;
    const rest = encode([dtype, shape, device, requiresGrad, cast], () => {
      throw new ArgumentError("data: expected plain arguments");
    });
    const buffer = this.transport.synchronous ? bytes : bytes.slice();
    const text = `[[{"b":0},${rest.slice(1, -1)}],{"d":[]}]`;
    this.transport.send(["call_packed", "$make", result, text, [buffer]]);
    return result;
  }

  private arrayHandle(array: TypedArray, dtype: DType, shape: readonly number[]): Handle {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    return new Handle(this, this.make(bytes, dtype, shape));
  }

  // --- questions

  /** The answer; when `name` is called, and its result is plain data. */
  async value(name: string, args: readonly unknown[], options?: Options): Promise<unknown> {
    const result = this.call(name, args, options);
    try {
      return await this.transport.ask(["value", result]);
    } finally {
      this.#release(result);
    }
  }

  ask(question: Question): Promise<unknown> {
    return this.transport.ask(question);
  }

  /**
   * The bytes of a tensor. The engine does not know how much memory its dead objects hold here: when there is none
   * left, it is made to collect them, and the tensor is computed again, until that frees no more.
   */
  async read(number: number): Promise<ArrayBuffer> {
    for (;;) {
      try {
        return (await this.ask(["read", number])) as ArrayBuffer;
      } catch (error) {
        if (!(error instanceof OutOfMemoryError) || !(await this.#collect())) throw error;
      }
    }
  }

  /** Have the engine collect garbage, by asking it for memory; whether objects of this session were among it. */
  async #collect(): Promise<boolean> {
    const before = this.#released;
    for (let i = 0; i < 10 && this.#released === before; i++) {
      try {
        new ArrayBuffer(COLLECTED_FOR);
      } catch {
        // There is not so much: then it has just tried all it could.
      }
      await new Promise((resolve) => setTimeout(resolve, 10)); // finalizers are tasks of their own
    }
    this.flush();
    return this.#released > before;
  }

  askSync(question: Question): unknown {
    return this.transport.askSync(question);
  }

  close(): void {
    this.transport.close();
  }
}

/** The handles in a value: in arrays, and in the own properties of objects. */
export function handlesIn(value: unknown): Handle[] {
  const found: Handle[] = [];
  const seen = new Set<object>();
  const stack = [value];
  while (stack.length > 0) {
    const x = stack.pop();
    if (x instanceof Handle) found.push(x);
    else if (typeof x === "object" && x !== null && !ArrayBuffer.isView(x) && !seen.has(x)) {
      seen.add(x);
      stack.push(...(Object.values(x) as unknown[]));
    }
  }
  return found;
}
