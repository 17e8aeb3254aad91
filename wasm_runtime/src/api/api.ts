/** The API of a session: its classes and functions, bound to it. */

import type { FileCache } from "../cache/file_cache";
import { callValue, split } from "./calls";
import {
  capturedObject,
  compileStep,
  tinyJit,
  type AsTensors,
  type CapturedFunction,
  type CompiledStep,
} from "./capture";
import type { DTypeName } from "./dtypes";
import { NotImplementedError, PythonError } from "./errors";
import { datasetsOf, type Datasets } from "./datasets/datasets";
import { fit, type FitOptions, type FitResult } from "./fit";
import type { FitData } from "./fit_batches";
import type { FitModel } from "./fit_steps";
import { functionTransforms, type FunctionTransforms } from "./functional";
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
import { owner, type Handle } from "./handle";
import type { Constructor, PythonObject } from "./object";
import { loadModel, type LoadOptions, type OnnxModel } from "./onnx";
import { READS, type Reads } from "./reading";
import type { MadeDType } from "./result_dtypes";
import { makePipeline } from "./pipelines";
import type { MakePipeline } from "./pipeline_types";
import { picturesOf, type Pictures } from "./plots";
import { Session, type Connection } from "./session";
import { slice } from "./slice";
import { checkFunction } from "./traced";
import type { FileSource, Host } from "./sources";
import { stateOf, type State } from "./state";
import { Variable } from "./variable";

/** The classes of the errors that polygrad throws. */
type Errors = typeof generated & {
  readonly NotImplementedError: typeof NotImplementedError;
  readonly PythonError: typeof PythonError;
};

const errors: Errors = { ...generated, NotImplementedError, PythonError };

/** The class `Tensor` of a session: `new Tensor([[1, 2], [3, 4]])`, and its statics. */
export type TensorClass = Omit<typeof Tensor, "prototype" | "bound" | "session"> & {
  new <X extends TensorData = TensorData, N extends DTypeName = never>(
    data: X,
    options?: TensorOptions<N>,
  ): Tensor<MadeDType<X, N>>;
  readonly prototype: Tensor;
};

/** What a captured function may return. Because of the empty array, TypeScript takes an array for a tuple. */
export type Captured =
  [] | readonly unknown[] | object | string | number | bigint | boolean | null | undefined;

/** Devices. */
export interface Devices {
  /** The name of the device of a tensor made without naming one. */
  default: string;
  /** The names of the devices that this host has. */
  available(): Promise<string[]>;
  /** The name of a device as `device` of a tensor has it. Rejects with DeviceError for one that does not exist. */
  canonical(name: string): Promise<string>;
}

/** polygrad, on one Python. */
export interface Polygrad extends FunctionTransforms {
  readonly Tensor: TensorClass;
  readonly nn: Layers & {
    readonly data: Datasets;
    readonly init: Initialisation;
    readonly optim: Optimizers & OptimizerFunctions;
    readonly state: State;
  };
  readonly optim: Optimizers & OptimizerFunctions;
  readonly state: State;
  readonly Device: Devices;
  /** Curves, histograms, heat maps and pixels as SVG text. */
  readonly pictures: Pictures;
  /** The files at addresses that were kept: models, weights. */
  readonly cache: FileCache;
  /**
   * The model in an ONNX file: an address (in Node also a path), a File, or bytes.
   *
   *     const model = await load("model.onnx");
   *     const { scores } = model.forward({ image: new Float32Array(3 * 224 * 224) });
   *     console.log(await scores.tolist());
   *
   * Files of external data are fetched from beside it. Rejects with OnnxError for a damaged file and for ops that do not
   * exist here, all of them at once, by the file and the node; with FetchError or ArgumentError for a file that cannot be
   * read.
   */
  load(source: FileSource, options?: LoadOptions): Promise<OnnxModel>;
  /**
   * A model for a task: "text-generation", "feature-extraction", "text-classification", "fill-mask", "image-classification",
   * "zero-shot-image-classification", "automatic-speech-recognition" or "object-detection".
   *
   *     const generator = await pipeline("text-generation", "https://example.org/models/SmolLM2-135M-Instruct");
   *     for await (const text of generator.stream([{ role: "user", content: "Hi!" }])) console.log(text);
   *
   * `model`: the address of a folder as those of HuggingFace's hub are, or of a GGUF or ONNX file; in Node also a path; files
   * by name, Files, or bytes. Weights go to the device while they arrive. Rejects with FetchError and ArgumentError for files
   * that are not there, ModelError and OnnxError for damaged ones and models that cannot do the task, OutOfMemoryError, before
   * the weights are read, for a model that does not fit.
   */
  readonly pipeline: MakePipeline;
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
   * mode. The inputs of every step have the shapes and dtypes of these. Assign to `opt.lr` between steps to
   * change the learning rate. Each step draws new random numbers. In a worker `fn` is recorded, and cannot
   * ask Python for a `shape` that is not known at once. Throws CaptureError, GradientError, ArgumentError.
   */
  compileStep<M, const X extends readonly TensorData[], R extends Captured>(
    fn: (model: M, ...inputs: AsTensors<X>) => R,
    model: M,
    optimizer: Optimizer | OptimizerGroup,
    ...inputs: X
  ): CompiledStep<R>;
  /**
   * A function whose work on the device is captured once and replayed. The first call runs `fn`, the second captures it,
   * and later calls replay what it did on the new arguments, without calling `fn`.
   *
   * So every call has tensors of the same shapes, dtypes and devices, and equal other arguments, except for values of
   * bound Variables. The next call overwrites the results: `clone` those that must last. `fn` returns tensors, or arrays
   * and plain objects of them. It cannot read values.
   */
  TinyJit<A extends unknown[], R extends Captured>(fn: (...args: A) => R): CapturedFunction<A, R>;
  /**
   * Train a model: batches, captured steps, validation, early stopping, progress, checkpoints.
   * `data`: [inputs, targets], examples of `nn.data`, or an iterable of batches.
   *
   *     const { history } = await fit(model, [images, labels], { loss: "crossEntropy", metrics: ["accuracy"], epochs: 5 });
   *     console.log(history.accuracy);
   *
   * `model` has a method `forward`; its loss is a function of (prediction, ...targets) or has a name. A
   * run depends on its seed alone, and goes on from a checkpoint to the last bit (`resume`). Rejects with ArgumentError,
   * ShapeError, what `compileStep` throws, and the reason of `signal`.
   */
  fit(model: FitModel, data: FitData, options: FitOptions): Promise<FitResult>;
  /**
   * Run `run`, and free what was made in it, except for what it returns (also inside of arrays, Maps, Sets and the
   * properties of objects) and what was kept (`tensor.keep()`).
   *
   * `run` may be asynchronous: `await scope(async () => ...)` frees what was made until its promise settled. Tensors that
   * other code makes meanwhile are freed too, so it has to `keep` them.
   */
  scope<T>(run: () => T): T;
  /** Free tensors and layers, also those inside of arrays, Maps, Sets and the properties of objects. */
  dispose(...values: unknown[]): void;
  /** The elements from `start` up to but not including `stop`, for `at`. */
  readonly slice: typeof slice;
  /** How many threads a large kernel is divided between. */
  getNumThreads(): Promise<number>;
  setNumThreads(n: number): void;
  /**
   * Run Python source, which may use `await`; the value of its last expression.
   *
   * Rejects with polygrad's errors as they are. Python's TypeError, SyntaxError and NotImplementedError keep their
   * names; its ValueError, IndexError, KeyError and ZeroDivisionError become a RangeError; every other exception becomes
   * a PythonError, whose `type` is the exception's name. The traceback is the error's `cause`.
   *
   *     await python("print(x.code())", { x: new Tensor([1, 2]).exp() });
   *
   * `values` become global variables of the source, by their names: tensors, layers, optimizers, captured steps and functions,
   * and plain data. They stay until others take their names.
   */
  python(code: string, values?: Readonly<Record<string, unknown>>): Promise<unknown>;
  /** The classes of the errors that polygrad throws. */
  readonly errors: Errors;
  /** End this session, and free all that it holds: nothing of it can be used afterwards. A worker is stopped at once. */
  close(): void;
}

/** polygrad on a Python of this thread, which can also be read at once. */
export interface DirectPolygrad extends Polygrad, Reads {}

/**
 * The class of this session that stands for `base`. `make` makes an object on the Python side of the arguments that users
 * give, and returns what `base`'s constructor takes after the session: first the object's number.
 *
 * It is a subclass of `base`, so users may extend it. All objects of `base` in this session are its instances, such as
 * the tensors that operations return.
 */
function bind<A extends readonly unknown[], T extends Handle>(
  session: Session,
  base: abstract new (session: Session, number: number, ...more: never) => T,
  make: (...args: A) => readonly [number: number, ...more: unknown[]],
): Constructor<A, T> {
  const Base = base as unknown as new (...args: readonly unknown[]) => Handle;
  class Bound extends Base {
    constructor(...args: readonly unknown[]) {
      super(session, ...make(...(args as unknown as A)));
    }

    static override [Symbol.hasInstance](x: unknown): boolean {
      if (this !== Bound) return Function.prototype[Symbol.hasInstance].call(this, x);
      return x instanceof Base && x[owner] === session;
    }
  }
  Object.defineProperty(Bound, "name", { value: base.name });
  return Bound as unknown as Constructor<A, T>;
}

/** A class of layers or optimizers in this session. */
function bindPython(session: Session, base: typeof PythonObject): Constructor<unknown[], PythonObject> {
  const { shape } = base;
  return bind(session, base, (...args: unknown[]) => {
    return [session.call(shape.id, ...split(args)), args, shape];
  });
}

/** The classes of `bases` in this session. */
function bindAll(session: Session, bases: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const entries = Object.entries(bases) as [string, typeof PythonObject][];
  return Object.fromEntries(entries.map(([name, base]) => [name, bindPython(session, base)]));
}

function bindTensor(session: Session): TensorClass {
  const bound = bind(session, Tensor, (data: TensorData, options?: TensorOptions) => {
    const { number, properties } = makeTensor(session, data, options);
    return [number, properties];
  });
  return Object.assign(bound, { session }) as unknown as TensorClass;
}

/** The API on a Python. */
export function createApi({ transport, info }: Connection, host: Host): Polygrad {
  const session = new Session(transport, info, Tensor);
  if (host.pixels !== undefined) session.pixels = host.pixels;
  const layers = bindAll(session, LAYERS) as unknown as Layers;
  const optim = {
    ...(bindAll(session, OPTIMIZERS) as unknown as Optimizers),
    ...optimizerFunctions(session),
  };
  const state = stateOf(session, host);
  return {
    Tensor: bindTensor(session),
    nn: { ...layers, data: datasetsOf(session, host), init: initialisation(session), optim, state },
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
      canonical: (name) => callValue(session, "Device.canonical", [name]),
    },
    pictures: picturesOf(session),
    cache: host.cache,
    load: (source, options) => loadModel(session, host, source, options),
    pipeline: (task, model, options) => makePipeline(session, host, task, model, options),
    Variable: bind(session, Variable, (name: string, min: number, max: number) => [
      session.call("Variable", [name, min, max]),
    ]),
    compileStep<M, const X extends readonly TensorData[], R extends Captured>(
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
    ...functionTransforms(session),
    fit: (model, data, options) => fit(session, host, model, data, options),
    scope: (run) => session.scope(run),
    dispose(...values) {
      session.disposeIn(values);
    },
    slice,
    getNumThreads: () => callValue(session, "get_num_threads", []),
    setNumThreads(n) {
      session.run("set_num_threads", [n]);
    },
    async python(code, values = {}) {
      const given = Object.entries(values).map(([name, value]) => [name, capturedObject(value)]);
      if (given.length > 0) session.run("$globals", [Object.fromEntries(given)]);
      return session.ask({ kind: "python", code });
    },
    errors,
    close() {
      session.close();
    },
  };
}

/** The API on a Python of this thread. */
export function createDirectApi(connection: Connection, host: Host): DirectPolygrad {
  return { ...createApi(connection, host), ...READS };
}
