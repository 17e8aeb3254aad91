/** The API of a session: its classes and functions, bound to it. */

import { callValue } from "./calls";
import {
  checkFunction,
  compileStep,
  tinyJit,
  type AsTensors,
  type CapturedFunction,
  type CompiledStep,
} from "./capture";
import { NotImplementedError, PythonError } from "./errors";
import * as generated from "./generated/errors";
import {
  LAYERS,
  OPTIMIZERS,
  initialisation,
  optimizerFunctions,
  type Layers,
  type OptimizerGroup,
  type Optimizer,
  type Initialisation,
  type OptimizerFunctions,
  type Optimizers,
} from "./generated/nn";
import { Tensor } from "./generated/tensor";
import { makeTensor, type TensorData, type TensorOptions } from "./make";
import {
  getParameters,
  getStateDict,
  loadStateDict,
  type LoadStateDictOptions,
  type StateDict,
} from "./models";
import { split, wrap } from "./calls";
import type { Constructor, PythonObject } from "./object";
import { loadModel, type LoadOptions, type OnnxModel } from "./onnx";
import { ByteReader, readTensors } from "./safetensors";
import { Session } from "./session";
import { slice } from "./slice";
import { openSource, type ByteProgress, type FileSource, type Host } from "./sources";
import { Variable } from "./variable";

const errors = { ...generated, NotImplementedError, PythonError };

/** The class `Tensor` of a session: `new Tensor([[1, 2], [3, 4]])`, and its statics. */
export type TensorClass = Omit<typeof Tensor, "prototype" | "bound" | "session"> &
  Constructor<[data: TensorData, options?: TensorOptions], Tensor>;

export interface SafeLoadOptions {
  readonly device?: string;
  readonly onProgress?: ByteProgress;
}

/** The state of models and files. */
export interface State {
  /** Every tensor in `model`, in order: see `getStateDict`. */
  getParameters(model: unknown): Tensor[];
  /** Every tensor in `model` by its dotted name: in arrays, Maps, layers, and the properties of objects. */
  getStateDict(model: unknown, prefix?: string): StateDict;
  /** Give the tensors of `model` the values of `state`. Rejects with ArgumentError, ShapeError. */
  loadStateDict(model: unknown, state: StateDict, options?: LoadStateDictOptions): Promise<void>;
  /** The tensors of a safetensors file by name, read as they arrive. Rejects with ArgumentError when damaged. */
  safeLoad(source: FileSource, options?: SafeLoadOptions): Promise<StateDict>;
  /** Tensors as the bytes of a safetensors file. */
  safeSave(tensors: StateDict, metadata?: Readonly<Record<string, string>>): Promise<Uint8Array<ArrayBuffer>>;
}

/** Devices. */
export interface Devices {
  /** The name of the device of a tensor made without naming one. */
  default: string;
  /** The names of the devices that open on this host. */
  available(): Promise<string[]>;
}

/** polygrad, on one Python. */
export interface Polygrad {
  readonly Tensor: TensorClass;
  readonly nn: Layers & {
    readonly init: Initialisation;
    readonly optim: Optimizers & OptimizerFunctions;
    readonly state: State;
  };
  readonly optim: Optimizers & OptimizerFunctions;
  readonly state: State;
  readonly Device: Devices;
  /**
   * The model in an ONNX file: an address (in Node also a path), a File, or bytes.
   *
   *     const model = await load("model.onnx");
   *     const { scores } = model.forward({ image: new Float32Array(3 * 224 * 224) });
   *     console.log(await scores.tolist());
   *
   * Files of external data are fetched from beside it. Rejects with OnnxError for a damaged file and for ops that do not
   * exist here, all of them at once, by the file and the node; with ArgumentError for a file that cannot be read.
   */
  load(source: FileSource, options?: LoadOptions): Promise<OnnxModel>;
  /** A symbolic integer from `min` to `max`, both included. */
  readonly Variable: Constructor<[name: string, min: number, max: number], Variable>;
  /**
   * A training step as one Program: `fn(model, ...inputs)`, backward, and the optimizer's step. Nothing is run yet.
   *
   *     const step = compileStep((model, x, y) => model.forward(x).crossEntropy(y), model, opt, x, y);
   *     for (const [x, y] of batches) step.run(x, y);
   *     console.log(await step.lossValue());
   *
   * `fn` returns the loss, a tensor of one element, or an array that begins with it. It is called once, in training
   * mode. Its inputs' shapes and dtypes stay. Learning rates are tensors: assign to `opt.lr` between steps. Random
   * numbers go on from step to step. In a worker `fn` is recorded: what it makes has no known `shape` yet. Throws
   * CaptureError, GradientError, ArgumentError.
   */
  compileStep<M, const X extends readonly TensorData[], R>(
    fn: (model: M, ...inputs: AsTensors<X>) => R,
    model: M,
    optimizer: Optimizer | OptimizerGroup,
    ...inputs: X
  ): CompiledStep<R>;
  /**
   * A function's work on the device, captured once and replayed: the first call runs `fn`, the second captures it, later
   * ones replay what it did, on the new arguments, without calling `fn`.
   *
   * So the arguments' shapes, dtypes and devices must stay, and all else that is passed must stay equal, but for values
   * of bound Variables. Results are overwritten by the next call (`clone` what must last). Values cannot be read inside,
   * nor, in a worker, the `shape` of what `fn` makes.
   */
  TinyJit<A extends unknown[], R>(fn: (...args: A) => R): CapturedFunction<A, R>;
  /**
   * Run `run`, and free what was made in it, but for what it returns (also in arrays and objects) and what was kept
   * (`tensor.keep()`). It must not be asynchronous: what other code makes meanwhile would be freed too.
   */
  scope<T>(run: () => T): T;
  /** Free tensors, layers, and all that arrays and objects hold. */
  dispose(...values: unknown[]): void;
  /** The elements from `start` up to but not including `stop`, for `at`. */
  readonly slice: typeof slice;
  /** How many threads a large kernel is divided between. */
  getNumThreads(): Promise<number>;
  setNumThreads(n: number): void;
  /**
   * Run Python source, which may use `await`; the value of its last expression.
   *
   * Rejects with polygrad's errors as they are; with a TypeError, SyntaxError or NotImplementedError for Python's of
   * that name; with a RangeError for ValueError, IndexError, KeyError and ZeroDivisionError; with a PythonError, which
   * has the exception's name as its `type`, for all others. The traceback is the error's `cause`.
   */
  python(code: string): Promise<unknown>;
  /** The classes of errors. */
  readonly errors: typeof errors;
  /** End it, and free all it holds. A worker is stopped at once. */
  close(): void;
}

/** A class whose constructor makes its objects in this session. */
function bind<A extends readonly unknown[], T extends PythonObject>(
  session: Session,
  base: new (session: Session, number: number, args: readonly unknown[]) => T,
): Constructor<A, T> {
  const { id } = (base as unknown as typeof PythonObject).shape;
  const bound = function (...args: A): T {
    return new base(session, session.call(id, ...split(args)), args);
  };
  return classLike(bound, base, session) as unknown as Constructor<A, T>;
}

/** Give a function that makes objects the name and statics of their class, and `instanceof`. */
function classLike(
  make: object,
  base: { readonly name: string; readonly prototype: object },
  session: Session,
): object {
  Object.setPrototypeOf(make, base);
  return Object.defineProperties(make, {
    name: { value: base.name },
    prototype: { value: base.prototype },
    [Symbol.hasInstance]: {
      value: (x: unknown) =>
        Object.prototype.isPrototypeOf.call(base.prototype, Object(x)) && (x as Tensor).session === session,
    },
  });
}

function tensorClass(session: Session): TensorClass {
  const make = function (data: TensorData, options?: TensorOptions): Tensor {
    return wrap(session, makeTensor(session, data, options));
  };
  return Object.assign(classLike(make, Tensor, session), { session }) as unknown as TensorClass;
}

function stateOf(session: Session, host: Host): State {
  return {
    getParameters,
    getStateDict,
    loadStateDict: (model, state, options) => loadStateDict(session, model, state, options),
    async safeLoad(source, { device, onProgress } = {}) {
      const opened = await openSource(host, source, "safeLoad");
      const reader = new ByteReader(opened.pieces, (loaded) => onProgress?.(loaded, opened.length));
      const found: StateDict = {};
      for await (const [{ name, dtype, shape }, bytes] of readTensors(reader)) {
        const options = device === undefined ? {} : { device };
        found[name] = wrap(session, session.make(bytes, dtype, shape, options));
      }
      return found;
    },
    async safeSave(tensors, metadata) {
      const options = metadata === undefined ? {} : { metadata };
      const result = session.call("nn.state.safe_save", [tensors], options);
      const bytes = await session.ask(["read", result]);
      session.transport.send(["release", [result]]);
      return new Uint8Array(bytes as ArrayBuffer);
    },
  };
}

/** The API on this session. */
export function createApi(session: Session, host: Host): Polygrad {
  session.tensorClass = Tensor;
  const layers = Object.fromEntries(
    Object.entries(LAYERS).map(([name, base]) => [name, bind(session, base as never)]),
  ) as unknown as Layers;
  const optim = {
    ...(Object.fromEntries(
      Object.entries(OPTIMIZERS).map(([name, base]) => [name, bind(session, base as never)]),
    ) as unknown as Optimizers),
    ...optimizerFunctions(session),
  };
  const state = stateOf(session, host);
  const variable = function (name: string, min: number, max: number): Variable {
    return new Variable(session, session.call("Variable", [name, min, max]));
  };
  return {
    Tensor: tensorClass(session),
    nn: { ...layers, init: initialisation(session), optim, state },
    optim,
    state,
    Device: {
      get default() {
        return session.device;
      },
      set default(name: string) {
        session.device = name;
      },
      available: () => callValue(session, "Device.available", []),
    },
    load: (source, options) => loadModel(session, host, source, options),
    Variable: classLike(variable, Variable, session) as unknown as Polygrad["Variable"],
    compileStep<M, const X extends readonly TensorData[], R>(
      fn: (model: M, ...inputs: AsTensors<X>) => R,
      model: M,
      optimizer: Optimizer | OptimizerGroup,
      ...inputs: X
    ) {
      checkFunction(fn, "compileStep");
      return compileStep<M, X, R>(session, fn, model, optimizer, ...inputs);
    },
    TinyJit(fn) {
      checkFunction(fn, "TinyJit");
      return tinyJit(session, fn);
    },
    scope: (run) => session.scope(run),
    dispose(...values) {
      session.disposeIn(values);
    },
    slice,
    getNumThreads: () => callValue(session, "get_num_threads", []),
    setNumThreads(n) {
      session.run("set_num_threads", [n]);
    },
    python: (code) => session.ask(["python", code]),
    errors,
    close() {
      session.close();
    },
  };
}
