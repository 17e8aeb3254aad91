/**
 * Functions of this side that become one Program: `compileStep` and `TinyJit`. What such a function makes is freed when
 * it returns (see `traced.ts`), so the Program takes it for scratch. The results of each call get new numbers.
 */

import { unpack } from "./calls";
import { packArray, packNumbers, type NestedData } from "./data";
import { isTypedArray } from "./dtypes";
import { isOptions, Tuple } from "./encode";
import { CaptureError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { handlesIn, owner } from "./handle";
import { isTensor, tensorsIn } from "./models";
import { knownOf } from "./known";
import { tensorOf, type TensorData } from "./make";
import { PythonObject, type Shape } from "./object";
import { checkOptions } from "./options";
import type { Session } from "./session";
import { TracedFunction, type Inputs, type Run } from "./traced";
import { fillWith } from "./trees";

const WHAT = "captured function";

/** A function that is captured: Python gets a tuple of the tensors in its result. */
function captureOf(session: Session, inputs: Inputs, run: Run): TracedFunction {
  return new TracedFunction(session, WHAT, inputs, run, (_, results) => new Tuple(results));
}

/** The results of a call of `captured`, whose tensors are the sequence `source`. */
function resultsOf(session: Session, captured: TracedFunction | undefined, source: number): unknown {
  if (captured === undefined) return undefined;
  const { template, properties } = captured;
  return fillWith(template, unpack(session, source, properties.length, properties));
}

/** Call `name`, which runs `captured`; a promise of its results where there are options. */
function runCaptured(
  session: Session,
  captured: TracedFunction | undefined,
  name: string,
  args: readonly unknown[],
  options: RunOptions | undefined,
): unknown {
  if (options === undefined) return resultsOf(session, captured, session.callPacked(name, args));
  const called = session.callWaiting(name, args, options.signal);
  return called.then((result) => resultsOf(session, captured, result));
}

// --- compileStep

/**
 * An input of `CompiledStep.run` as an argument: a tensor, or bytes, their dtype and shape, for `_elements` of
 * polygrad/bridge.py. Raw bytes have no dtype (""), and a flat array has no shape.
 */
function inputArgument(session: Session, input: TensorData): Tensor | Tuple {
  if (isTensor(input)) return input;
  if (isTypedArray(input)) {
    const { bytes, dtype } = packArray(input);
    return new Tuple([session.bytes(bytes), dtype, null]);
  }
  if (input instanceof ArrayBuffer || input instanceof DataView) {
    return new Tuple([session.bytes(packArray(input).bytes), "", null]);
  }
  if (handlesIn(input).length > 0) return tensorOf(session, input);
  const { bytes, dtype, shape } = packNumbers(input as NestedData);
  return new Tuple([session.bytes(bytes), dtype, shape]);
}

/** How a captured function is run, and awaited. */
export interface RunOptions {
  /**
   * Stops the run: the promise rejects with its reason, and nothing was done, or else resolves. In a worker that shares memory
   * with this thread a long Program stops in its middle, until it begins to write parameters and state; elsewhere a run that
   * has begun goes on to its end.
   */
  readonly signal: AbortSignal;
}

/** The options at the end of the arguments, if there are any. */
function optionsIn(args: readonly unknown[]): RunOptions | undefined {
  const last = args.at(-1);
  if (!isOptions(last)) return undefined;
  checkOptions<RunOptions>("run", last, { signal: true });
  return last as unknown as RunOptions;
}

/** The times of a step's kernels. */
export interface StepProfile {
  /** The launches of one step, in order; `seconds` are means over all rounds. */
  readonly launches: readonly { readonly name: string; readonly device: string; readonly seconds: number }[];
  /** How many steps were timed. */
  readonly rounds: number;
  /** The mean time of a step outside of a profile. */
  readonly seconds: number;
  /** A table of the kernels, the slowest first. */
  readonly text: string;
}

/** A training step made by `compileStep`. */
export class CompiledStep<R = unknown> extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = {
    id: "CompiledStep",
    tensors: [],
    values: ["n_kernels", "n_intermediates", "arena_bytes", "arena_lower_bound"],
  };
  readonly #captured: TracedFunction;

  /** @internal */
  constructor(session: Session, number: number, captured: TracedFunction) {
    super(session, number);
    this.#captured = captured;
  }

  /**
   * Take one step; what the function returned, in tensors of this call: the next one overwrites them.
   *
   * `inputs` have the shapes and dtypes of those it was compiled with; without any, the last ones are used again. They
   * are tensors; typed arrays or bytes, whose elements are in row-major order; or nested arrays, whose numbers become
   * the input's dtype. Throws ShapeError, DTypeError, DeviceError, OverflowError, ArgumentError.
   *
   * With `{ signal }` at the end it gives a promise, which settles when the step is taken, or rejects with the signal's reason:
   * then nothing was done. See `RunOptions`.
   */
  run(...inputs: TensorData[]): R;
  run(...inputs: readonly [...TensorData[], RunOptions]): Promise<R>;
  run(...given: readonly unknown[]): R | Promise<R> {
    const { [owner]: session } = this;
    const options = optionsIn(given);
    const inputs = (options === undefined ? given : given.slice(0, -1)) as TensorData[];
    const args = inputs.map((input) => inputArgument(session, input));
    return runCaptured(session, this.#captured, "$run_step", [this, ...args], options) as R | Promise<R>;
  }

  /**
   * The step as the bytes of a `.pgrd` file, with the present values of parameters and of the optimizer's state: `load` of
   * `polygrad/runtime` runs it without Python. `inputs`: the names of its inputs, "input0" and so on unless given.
   * Parameters have those of `getStateDict(model)`, the optimizer's state begins with "optimizer.", and the first output
   * is "loss". Rejects with ArgumentError for results that are views of memory, or state.
   */
  save(inputs?: readonly string[]): Promise<Uint8Array<ArrayBuffer>> {
    return this[owner].fileOf("$save_step", [this, inputs ?? null]);
  }

  /** Take steps for at least `seconds`, and time each kernel. Rejects with CaptureError before the first `run`. */
  async profile(seconds = 0.1): Promise<StepProfile> {
    const handle = await this[owner].callWaiting("$profile_step", [this, seconds]);
    return (await this[owner].take(handle)) as StepProfile;
  }

  /** The loss of the last run. Rejects with CaptureError before the first. */
  async lossValue(): Promise<number> {
    return (await this[owner].value("CompiledStep.loss_value", [this])) as number;
  }

  /** How many kernels one step launches. */
  get nKernels(): number {
    return PythonObject.value(this, "n_kernels") as number;
  }

  /** How many buffers of the arena it uses. */
  get nIntermediates(): number {
    return PythonObject.value(this, "n_intermediates") as number;
  }

  /** The size of the arena: the memory of all intermediates. */
  get arenaBytes(): number {
    return PythonObject.value(this, "arena_bytes") as number;
  }

  /** The most bytes of intermediates alive at one time: no arena can be smaller. */
  get arenaLowerBound(): number {
    return PythonObject.value(this, "arena_lower_bound") as number;
  }
}

/** An input of a step, as the step's function sees it: a tensor. */
export type AsTensors<X extends readonly unknown[]> = { [K in keyof X]: Tensor };

/** `Polygrad.compileStep`. */
export function compileStep<M, const X extends readonly TensorData[], R>(
  session: Session,
  fn: (model: M, ...inputs: AsTensors<X>) => R,
  model: M,
  optimizer: PythonObject,
  ...inputs: X
): CompiledStep<R> {
  return session.scope(() => {
    const examples = inputs.map((x) => (isTensor(x) ? x : tensorOf(session, x)));
    const captured = captureOf(
      session,
      () => examples.map(knownOf),
      (...tensors) => {
        const training = session.training;
        session.training = true; // as Python sets it
        try {
          return fn(model, ...(tensors as unknown as AsTensors<X>));
        } finally {
          session.training = training;
        }
      },
    );
    const parameters = Object.fromEntries(tensorsIn(model));
    const args = [captured.callback, parameters, optimizer, ...examples];
    return new CompiledStep<R>(session, session.callPacked("$compile_step", args), captured);
  });
}

// --- TinyJit

/** A function made by `TinyJit`. */
export interface CapturedFunction<A extends unknown[], R> {
  (...args: A): R;
  /**
   * A call that can be stopped: a promise of its results, which rejects when nothing was done. See `RunOptions`. The first call,
   * which runs the function, goes on to its end when it has begun.
   */
  run(args: A, options: RunOptions): Promise<R>;
  /** Forget what was captured: the next call runs the function, the one after it captures anew. */
  reset(): void;
  /** Whether the next call is a replay. */
  readonly captured: boolean;
}

/** `Polygrad.TinyJit`. */
export function tinyJit<A extends unknown[], R>(
  session: Session,
  fn: (...args: A) => R,
): CapturedFunction<A, R> {
  const handle = new PythonObject(session, session.call("$jit", []));
  let captured: TracedFunction | undefined;
  let calls = 0;
  const start = (args: A, options: RunOptions | undefined): unknown => {
    if (session.captureDepth > 0) return fn(...args); // part of the function being captured
    if (args.some(isTypedArray)) {
      throw new CaptureError(
        "captured function: expected tensors, got a typed array, whose values would not be seen to change: " +
          "pass new Tensor(array)",
      );
    }
    const callIndex = calls++;
    const takeBack = (): void => {
      calls = Math.min(calls, callIndex);
    };
    try {
      const runs = callIndex < 2;
      if (runs)
        captured = captureOf(
          session,
          () => [],
          () => fn(...args),
        );
      const given = [handle, runs ? captured?.callback : null, ...args];
      if (options !== undefined) {
        const called = runCaptured(session, captured, "$jit_call", given, options) as Promise<unknown>;
        called.catch(takeBack);
        return called;
      }
      const result = session.callPacked("$jit_call", given);
      if (!session.transport.synchronous && runs) {
        session.ask({ kind: "length", handle: result }).catch(takeBack);
      }
      return resultsOf(session, captured, result);
    } catch (error) {
      takeBack();
      throw error;
    }
  };
  const call = (...args: A): R => start(args, undefined) as R;
  const run = async (args: A, options: RunOptions): Promise<R> => {
    checkOptions<RunOptions>("run", options, { signal: true });
    return (await start(args, options)) as R;
  };
  const reset = (): void => {
    calls = 0;
    session.run("$reset", [handle]);
  };
  return Object.defineProperty(Object.assign(call, { run, reset, [jit]: handle }), "captured", {
    get: () => calls >= 2,
  }) as unknown as CapturedFunction<A, R>;
}

const jit: unique symbol = Symbol("jit");

/** The Python object of a captured function; any other value as it is. */
export function capturedObject(value: unknown): unknown {
  return typeof value === "function" && jit in value ? jitOf(value) : value;
}

/** The Python object behind a captured function. */
export function jitOf(captured: object): PythonObject {
  return (captured as { [jit]: PythonObject })[jit];
}
