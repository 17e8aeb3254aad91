/**
 * Functions of this side that become one Program: `compileStep` and `TinyJit`.
 *
 * The function's body is a list of operations. On this thread Python calls the function back while it captures; for a
 * worker the operations are recorded here, and sent. What the function makes is freed when it returns, so the Program
 * takes it for scratch. The results of each call get new numbers.
 */

import { unpack, wrap } from "./calls";
import { packArray, packNumbers, type NestedData } from "./data";
import { isTypedArray } from "./dtypes";
import { isOptions, Tuple } from "./encode";
import { ArgumentError, CaptureError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { handlesIn, number, owner } from "./handle";
import { isTensor, tensorsIn } from "./models";
import { knownOf, type Known } from "./known";
import { tensorOf, type TensorData } from "./make";
import { PythonObject, type Shape } from "./object";
import type { Session } from "./session";
import type { Body } from "./transport";

/** What a captured function may return: a tensor, or arrays and plain objects of them. Other values stay as captured. */
type Template =
  | { readonly tensor: number }
  | { readonly parts: [string, Template][]; readonly array: boolean }
  | { readonly value: unknown };

/** A result, with its tensors replaced by their places in `tensors`. Throws ArgumentError for tensors elsewhere. */
function templateOf(value: unknown, tensors: Tensor[]): Template {
  if (isTensor(value)) return { tensor: tensors.push(value) - 1 };
  if (!Array.isArray(value) && !isOptions(value)) {
    if (handlesIn(value).length > 0) {
      throw new ArgumentError(
        "captured function: expected it to return tensors, or arrays and plain objects of them, got a " +
          (value as object).constructor.name,
      );
    }
    return { value };
  }
  const parts = Object.entries(value).map(([key, x]): [string, Template] => [key, templateOf(x, tensors)]);
  return { parts, array: Array.isArray(value) };
}

function fill(template: Template, tensors: readonly Tensor[]): unknown {
  if ("tensor" in template) return tensors[template.tensor];
  if ("value" in template) return template.value;
  const parts = template.parts.map(([key, part]) => [key, fill(part, tensors)] as const);
  return template.array ? parts.map(([, x]) => x) : Object.fromEntries(parts);
}

/** A captured function's results: their structure is known once it has run. */
class Results {
  #template: Template = { value: undefined };
  #tensors: Tensor[] = [];
  #properties: readonly (Known | undefined)[] = [];

  /** The body of a function, for Python. */
  body(session: Session, run: () => unknown): Body {
    return session.transport.body(() => {
      session.captureDepth++;
      try {
        const result = session.scope(() => {
          const returned = run();
          if (!(returned instanceof Promise)) return returned;
          throw new ArgumentError("captured function: expected it to return at once, got a promise");
        });
        session.flush();
        this.#tensors = [];
        this.#template = templateOf(result, this.#tensors);
        // On this thread Python is asked, as sizes that are Variables differ from call to call.
        const { synchronous } = session.transport;
        this.#properties = this.#tensors.map((tensor) => (synchronous ? undefined : knownOf(tensor)));
        return this.#tensors.map((tensor) => tensor[number]);
      } finally {
        session.captureDepth--;
      }
    });
  }

  /** The results of a call, whose tensors are the sequence `source`. */
  take(session: Session, source: number): unknown {
    for (const tensor of this.#tensors) tensor.dispose(); // those of the body
    this.#tensors = [];
    const properties = this.#properties;
    return fill(this.#template, unpack(session, source, properties.length, properties));
  }
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
  readonly #results: Results;

  /** @internal */
  constructor(session: Session, number: number, results: Results) {
    super(session, number);
    this.#results = results;
  }

  /**
   * Take one step; what the function returned, in tensors of this call: the next one overwrites them.
   *
   * `inputs` have the shapes and dtypes of those it was compiled with; without any, the last ones are used again. They
   * are tensors; typed arrays or bytes, whose elements are in row-major order; or nested arrays, whose numbers become
   * the input's dtype. Throws ShapeError, DTypeError, DeviceError, OverflowError, ArgumentError.
   */
  run(...inputs: TensorData[]): R {
    const { [owner]: session } = this;
    const args = inputs.map((input) => inputArgument(session, input));
    return this.#results.take(session, session.callPacked("$run_step", [this, ...args])) as R;
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
  const made = session.scope(() => {
    const examples = inputs.map((x) => (isTensor(x) ? x : tensorOf(session, x)));
    const named = [...tensorsIn(model)].map(([name, tensor]) => [name, tensor[number]] as const);
    const list = session.call("$list", examples);
    const first = session.allocate(inputs.length);
    const results = new Results();
    const body = results.body(session, () => {
      const tensors = examples.map((example, i) => wrap(session, first + i, knownOf(example)));
      const training = session.training;
      session.training = true; // as Python sets it
      try {
        return fn(model, ...(tensors as unknown as AsTensors<X>));
      } finally {
        session.training = training;
      }
    });
    const result = session.allocate();
    try {
      session.transport.send({
        kind: "compile_step",
        result,
        parameters: Object.fromEntries(named),
        optimizer: optimizer[number],
        inputs: list,
        body,
        first,
      });
    } finally {
      session.transport.send({ kind: "release", handles: [list] });
    }
    return new CompiledStep<R>(session, result, results);
  });
  return made;
}

// --- TinyJit

/** A function made by `TinyJit`. */
export interface CapturedFunction<A extends unknown[], R> {
  (...args: A): R;
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
  const results = new Results();
  let calls = 0;
  const call = (...args: A): R => {
    if (session.captureDepth > 0) return fn(...args); // part of the function being captured
    if (args.some(isTypedArray)) {
      throw new CaptureError(
        "captured function: expected tensors, got a typed array, whose values would not be seen to change: " +
          "pass new Tensor(array)",
      );
    }
    const body = calls < 2 ? results.body(session, () => fn(...args)) : undefined;
    const result = session.allocate();
    const callIndex = calls++;
    try {
      const { text } = session.encode(args);
      session.transport.send({ kind: "jit_call", jit: handle[number], result, text, body });
    } catch (error) {
      calls = callIndex;
      throw error;
    }
    if (!session.transport.synchronous && callIndex < 2) {
      const answer = session.ask({ kind: "length", handle: result });
      answer.catch(() => (calls = Math.min(calls, callIndex)));
    }
    return results.take(session, result) as R;
  };
  const reset = (): void => {
    calls = 0;
    session.run("$reset", [handle]);
  };
  return Object.defineProperty(Object.assign(call, { reset, [jit]: handle }), "captured", {
    get: () => calls >= 2,
  }) as unknown as CapturedFunction<A, R>;
}

const jit: unique symbol = Symbol("jit");

/** The Python object behind a captured function. */
export function jitOf(captured: object): PythonObject {
  return (captured as { [jit]: PythonObject })[jit];
}

/** Throws ArgumentError unless `fn`, an argument of `what`, is a function. */
export function checkFunction(fn: unknown, what: string): void {
  if (typeof fn !== "function") throw new ArgumentError(`${what}: expected a function, got ${typeof fn}`);
}
