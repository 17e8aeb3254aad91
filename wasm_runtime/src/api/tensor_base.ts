/**
 * The members of `Tensor` that are written by hand: shape and dtype, reading, indexing, training mode.
 *
 * This file, `make.ts`, `calls.ts` and the generated `Tensor` name each other's types by `import type`. When they run,
 * each imports only those below it: Tensor, this file, `make.ts`, `calls.ts`.
 */

import { itemSize } from "../arrays";
import { afterwards, callTensor, unpack, wrap } from "./calls";
import type { NestedData } from "./data";
import {
  asArray,
  nest,
  type ArrayOf,
  type DType,
  type ElementOf,
  type NestedOf,
  type Scalar,
  type TypedArray,
} from "./dtypes";
import { describeTensor, formatElements, inspect } from "./format";
import { PolygradError, ShapeError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { Handle, number, owner } from "./handle";
import { known, UNKNOWN, type Known } from "./known";
import { tensorOf, tensorOfPixels, type Pixels, type TensorData, type TensorOptions } from "./make";
import { PythonObject } from "./object";
import { onlyElement, READS } from "./reading";
import type { Session } from "./session";
import { ELLIPSIS, parseSlice, type Slice, type SliceText } from "./slice";
import { checkFunction, TracedFunction } from "./traced";
import type { Variable } from "./variable";

/** A size: an integer, or a symbolic one. */
export type Size = number | Variable;

/** The other operand of an operation: a tensor, a number, or numbers in arrays. */
export type Operand = Tensor | NestedData | TypedArray;

/** An image: ImageData, or another that a page can draw. */
export interface ImageSource {
  readonly width: number;
  readonly height: number;
}

/** A layer: a function of one tensor, or an object with `forward`. */
export type Layer = ((x: Tensor) => Tensor) | { forward(x: Tensor): Tensor };

/** One index of `at`: an element, a slice ("1:3", slice(1, 3)), a new axis (null), "...", or elements by number. */
export type Index = Size | null | "..." | SliceText | Slice | readonly number[] | Tensor;

/** `"1:3"` as the slice it means, `"..."` as Python's ellipsis. */
function indexOf(index: Index): unknown {
  if (typeof index !== "string") return index;
  if (index === "...") return ELLIPSIS;
  const slice = parseSlice(index);
  if (slice === undefined) {
    throw new ShapeError(`index: expected a slice such as "1:3" or "...", got ${JSON.stringify(index)}`);
  }
  return slice;
}

/** A hook of a tensor: `registerHook`. In a worker `ready()` rejects where there could be none. */
export class HookHandle extends PythonObject {
  /** Stop calling the hook. */
  remove(): void {
    this[owner].run("$functions.remove_hook", [this]);
  }
}

export class TensorBase<D extends DType = DType> extends Handle<Session> {
  /** @internal */
  [known]: Known;

  /** @internal */
  constructor(session: Session, objectNumber: number, properties: Known = UNKNOWN) {
    super(session, objectNumber);
    this[known] = properties;
  }

  // --- shape, dtype and device

  #ask(): void {
    this[known] = this[owner].askSync({ kind: "meta", handle: this[number], names: [] }) as Known;
  }

  /** The property `name` as `what` asks for it. */
  #property<K extends keyof Known>(name: K, what: string): Exclude<Known[K], undefined> {
    if (this[known][name] === undefined) {
      if (!this[owner].transport.synchronous) {
        throw new PolygradError(
          `${what}: expected a tensor whose ${what} has arrived from the worker: await tensor.ready() first`,
        );
      }
      this.#ask();
    }
    return this[known][name] as Exclude<Known[K], undefined>;
  }

  /**
   * Resolves when Python has received all operations that this tensor depends on, and `shape`, `dtype` and `device` are
   * known; rejects with the error of an operation that failed. It computes nothing: see `realize`.
   */
  async ready(): Promise<this> {
    this[known] = (await this[owner].ask({ kind: "meta", handle: this[number], names: [] })) as Known;
    return this;
  }

  /**
   * The sizes of the axes. In a worker's session it is known at once for tensors made of data and for what most
   * operations make of them; else it is known after `ready()`, and this throws PolygradError before.
   * Throws ShapeError where a size is symbolic.
   */
  get shape(): readonly number[] {
    const shape = this.#property("shape", "shape");
    const symbolic = shape.find((size) => typeof size === "string");
    if (symbolic !== undefined) {
      throw new ShapeError(`shape: expected integers, got the symbolic size ${symbolic}: shrink that axis`);
    }
    return shape as readonly number[];
  }

  /** The element type, known as `shape` is. */
  get dtype(): D {
    return this.#property("dtype", "dtype") as D;
  }

  /** The name of the device of the elements, computed or not; known as `shape` is. */
  get device(): string {
    if (this[owner].transport.synchronous) this[known] = UNKNOWN;
    return this.#property("device", "device");
  }

  /** The number of axes. */
  get ndim(): number {
    return this.#property("shape", "ndim").length;
  }

  /** Whether `requiresGrad` is true. */
  get isParam(): boolean {
    return this.requiresGrad === true;
  }

  /**
   * Axes split, permuted and merged by an einops formula: `x.rearrange("b (h w) c -> b c h w", { h: 8 })`.
   *
   * Names stand for axes, parentheses for axes that are split or merged, `...` for any number of axes, `1` and `()` for
   * an axis of size 1. `sizes`: the sizes of axes that are split; one in each parentheses may be left out.
   * Throws ArgumentError, ShapeError.
   */
  rearrange(formula: string, sizes: Readonly<Record<string, number>> = {}): Tensor<D> {
    return callTensor(this[owner], "Tensor.rearrange", [this, formula, sizes]);
  }

  /** The number of elements. */
  numel(): number {
    return this.shape.reduce((a, b) => a * b, 1);
  }

  /** The number of elements: `numel`. */
  nelement(): number {
    return this.numel();
  }

  /** How many axes there are: `ndim`. */
  dim(): number {
    return this.shape.length;
  }

  /** The shape, or the size of axis `dim`. Throws AxisError. */
  size(): readonly number[];
  size(dim: number): number;
  size(dim?: number): number | readonly number[] {
    if (dim === undefined) return this.shape;
    const size = this.shape.at(dim);
    if (size === undefined || !Number.isInteger(dim)) {
      throw new ShapeError(`size: expected an axis of shape [${this.shape.join(", ")}], got ${dim}`);
    }
    return size;
  }

  /** Bytes per element. */
  elementSize(): number {
    return itemSize(this.dtype);
  }

  /** Bytes of all elements. */
  nbytes(): number {
    return this.numel() * this.elementSize();
  }

  /** Whether the dtype is a float. */
  isFloatingPoint(): boolean {
    return this.dtype.includes("float");
  }

  // --- reading

  /** The elements in row-major order, a copy. float16 without engine support, and bfloat16, come as their bits. */
  async data(): Promise<ArrayOf<D>> {
    const read = this[owner].read(this[number]);
    const meta = this[owner].ask({ kind: "meta", handle: this[number], names: [] });
    const [bytes, answer] = await Promise.all([read, meta]);
    this[known] = answer as Known;
    return asArray(bytes, this.dtype) as ArrayOf<D>;
  }

  /** The elements as nested arrays of numbers (booleans, bigints); one element for shape []. */
  async tolist(): Promise<NestedOf<ElementOf<D>>> {
    return nest(await this.data(), this.dtype, this.shape) as NestedOf<ElementOf<D>>;
  }

  /** The only element. Rejects with ShapeError when there is not exactly one. */
  async item(): Promise<ElementOf<D>> {
    return onlyElement(await this.data(), this.dtype, this.shape) as ElementOf<D>;
  }

  // --- showing

  /** Its class, shape, dtype and device, as far as they are known without waiting. */
  override toString(): string {
    if (this.disposed) return super[inspect]();
    if (this[owner].transport.synchronous) this.#ask();
    return describeTensor(this.constructor.name, this[known]);
  }

  /**
   * @internal What consoles show: the elements, too, where they can be read at once. That computes them.
   */
  override [inspect](): string {
    const text = this.toString();
    if (this.disposed || this[owner].captureDepth > 0) return text;
    if (!this[owner].transport.synchronous) return `${text}: print() shows its elements`;
    try {
      return `${text}\n${formatElements(READS.dataSync(this as unknown as Tensor), this.dtype, this.shape)}`;
    } catch (error) {
      return `${text}: ${String(error)}`;
    }
  }

  /** Write shape, dtype, device and elements to the console. Many elements are shortened. */
  async print(): Promise<void> {
    const array = await this.data();
    console.log(`${this.toString()}\n${formatElements(array, this.dtype, this.shape)}`);
  }

  // --- indexing

  /**
   * Elements by index, as `t[...]` in Python: `t.at(0)`, `t.at("1:3", null)`, `t.at("...", -1)`, `t.at(rows)`.
   * Slices share memory with this tensor. Throws AxisError.
   */
  at(...indices: Index[]): Tensor<D> {
    return callTensor(this[owner], "$index", [this, indices.map(indexOf)]);
  }

  /** Write `value` to the elements that `at(...indices)` reads; this tensor. */
  setAt(indices: readonly Index[], value: Operand): this {
    this[owner].run("$set_index", [this, indices.map(indexOf), value]);
    return this;
  }

  /** The tensors along the first axis. */
  *[Symbol.iterator](): Generator<Tensor<D>> {
    if (this.ndim === 0) throw new ShapeError("iteration: expected a tensor with axes, got shape []");
    for (let i = 0; i < this.size(0); i++) yield this.at(i);
  }

  // --- gradients

  /**
   * The gradient from `backward`, or null. A worker cannot say at once whether there is one: there this is a tensor, whose
   * reading fails if there is no gradient.
   */
  get grad(): Tensor<D> | null {
    const gradientNumber = this[owner].call("$get", [this, "grad"]);
    const { shape, dtype } = this[known];
    const gradient = wrap<D>(this[owner], gradientNumber, {
      ...(shape && { shape }),
      ...(dtype && { dtype }),
    });
    if (
      !this[owner].transport.synchronous ||
      this[owner].askSync({ kind: "is_none", handle: gradientNumber }) !== true
    )
      return gradient;
    gradient.dispose();
    return null;
  }

  set grad(value: Tensor | null) {
    this[owner].run("$set", [this, "grad", value]);
  }

  /** Whether gradients flow to this tensor; null: an optimizer decides. In a worker known after `ready()`. */
  get requiresGrad(): boolean | null {
    if (this[owner].transport.synchronous) this[known] = UNKNOWN;
    return this.#property("requires_grad", "requiresGrad");
  }

  set requiresGrad(value: boolean | null) {
    this[owner].run("$set", [this, "requires_grad", value]);
    this[known] = { ...this[known], requires_grad: value };
  }

  /**
   * Call `hook` with the gradient of this tensor whenever `backward` has accumulated all of it. What the hook returns,
   * unless nothing, replaces the gradient. Of a tensor that was computed from others, only uses after this call count.
   * In a worker the hook is recorded, so it cannot read values. Throws GradientError when no gradient flows here.
   *
   *     const handle = weight.registerHook((gradient) => gradient.clamp(-1, 1));
   */
  registerHook(hook: (gradient: Tensor) => Tensor | null | undefined): HookHandle {
    checkFunction(hook, "registerHook");
    const session = this[owner];
    const inputs = (): [Known] => [this[known]];
    const traced = new TracedFunction(
      session,
      "registerHook",
      inputs,
      hook,
      (_, results) => results[0] ?? null,
    );
    return new HookHandle(session, session.callPacked("$functions.register_hook", [this, traced.callback]));
  }

  // --- distinct elements

  /**
   * The distinct elements in ascending order, of one axis; NaNs are not distinct. With `returnInverse` also the position
   * (int32) of each element among them, in the shape of this tensor; with `returnCounts` how often each occurs (int32).
   * Waits for their number.
   */
  async unique(): Promise<Tensor<D>>;
  async unique(
    options:
      { returnInverse: true; returnCounts?: boolean } | { returnInverse?: boolean; returnCounts: true },
  ): Promise<Tensor[]>;
  async unique({ returnInverse = false, returnCounts = false } = {}): Promise<Tensor | Tensor[]> {
    const session = this[owner];
    const number = await session.callWaiting("Tensor.unique", [this, returnInverse, returnCounts]);
    const more = Number(returnInverse) + Number(returnCounts);
    return more === 0 ? wrap(session, number) : unpack(session, number, 1 + more);
  }

  // --- layers

  /** Apply the layers one after the other. */
  sequential(layers: readonly Layer[]): Tensor {
    return layers.reduce<Tensor>(
      (x, layer) => (typeof layer === "function" ? layer(x) : layer.forward(x)),
      this as unknown as Tensor,
    );
  }

  // --- training mode

  /** @internal The session of a class that `create` made. */
  static session: Session | undefined;

  /** @internal */
  static get bound(): Session {
    if (this.session === undefined) {
      throw new PolygradError("Tensor: expected the class that create() gives, got the one that is its type");
    }
    return this.session;
  }

  /** Training mode: dropout drops, batch normalisation measures, optimizers step. */
  static get training(): boolean {
    return this.bound.training;
  }

  static set training(mode: boolean) {
    this.bound.run("$training", [mode]);
    this.bound.training = mode;
  }

  /** Run `run` in training mode, or in evaluation mode if `mode` is false; its result. It may be asynchronous. */
  static train<T>(run: () => T, mode = true): T {
    const old = this.training;
    const end = (): void => {
      this.training = old;
    };
    this.training = mode;
    let result: T;
    try {
      result = run();
    } catch (error) {
      end();
      throw error;
    }
    return afterwards(result, end);
  }

  /** Run `run` in evaluation mode; its result. */
  static test<T>(run: () => T): T {
    return this.train(run, false);
  }

  /**
   * The pixels of an image as uint8 of shape [height, width, channels]. `image`: ImageData; in a page also a canvas, a
   * video, an image element or an ImageBitmap. `channels`: 4, or 3 without alpha.
   */
  static fromImage(image: ImageSource, { channels = 4 }: { channels?: 3 | 4 } = {}): Tensor {
    const pixels = "data" in image ? (image as Pixels) : this.bound.pixels(image);
    return tensorOfPixels(this.bound, pixels, channels);
  }

  /** A tensor of this data, as `new Tensor`. */
  static fromArray(data: TensorData, options?: TensorOptions): Tensor {
    return tensorOf(this.bound, data, options);
  }

  /** A tensor filled with `value`. Its dtype is float32 for a number and bool for a boolean, unless `dtype` is given. */
  static full(
    shape: readonly Size[],
    value: Scalar,
    { dtype, device, requiresGrad }: { dtype?: DType; device?: string; requiresGrad?: boolean } = {},
  ): Tensor {
    const natural = typeof value === "number" ? "float32" : typeof value === "bigint" ? "int64" : "bool";
    return callTensor(this.bound, "Tensor.full", [
      shape,
      value,
      { dtype: dtype ?? natural, device, requires_grad: requiresGrad },
    ]);
  }
}
