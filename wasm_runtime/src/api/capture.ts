/**
 * Functions of this side that become one Program: `compileStep` and `TinyJit`.
 *
 * The function's body is a list of operations. On this thread Python calls back for it while it captures; for a worker
 * it is recorded here, between `begin` and `end` so to speak, and sent along. What the function makes lives as long as
 * it runs, so that the Program knows it as scratch; its results get numbers of their own, one each call.
 */

import { unpack, wrap } from "./calls";
import { packArray, packNumbers, type NestedData } from "./data";
import { isTypedArray } from "./dtypes";
import { isOptions } from "./encode";
import { ArgumentError, CaptureError } from "./generated/errors";
import type { OptimizerGroup, Optimizer } from "./generated/nn";
import { Tensor } from "./generated/tensor";
import { getParameters } from "./models";
import { makeTensor, type TensorData } from "./make";
import { PythonObject, type Shape } from "./object";
import { handlesIn, type Session } from "./session";
import type { Body } from "./transport";

/** What a captured function may return: a tensor, or arrays and objects of them. Other values stay as captured. */
type Template =
  | { readonly tensor: number }
  | { readonly parts: [string, Template][]; readonly array: boolean }
  | { readonly value: unknown };

/** A result, with its tensors replaced by their places in `tensors`. */
function templateOf(value: unknown, tensors: Tensor[]): Template {
  if (value instanceof Tensor) return { tensor: tensors.push(value) - 1 };
  if (!Array.isArray(value) && !isOptions(value)) return { value };
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
  #count = 0;

  /** The body of a function, for Python. */
  body(session: Session, run: () => unknown): Body {
    return session.transport.body(() => {
      session.capturing++;
      try {
        const result = session.scope(run);
        session.flush();
        this.#tensors = [];
        this.#template = templateOf(result, this.#tensors);
        this.#count = this.#tensors.length;
        return this.#tensors.map((tensor) => tensor.number);
      } finally {
        session.capturing--;
      }
    });
  }

  /** The results of a call, whose tensors are the sequence `source`. */
  take(session: Session, source: number): unknown {
    for (const tensor of this.#tensors) tensor.dispose(); // those of the body
    this.#tensors = [];
    return fill(this.#template, unpack(session, source, this.#count));
  }
}

// --- compileStep

/** An input of `CompiledStep.run` as JSON: a tensor, or elements for `_elements` of polygrad/bridge.py. */
function encodeInput(session: Session, input: TensorData, buffers: Uint8Array[]): string {
  if (input instanceof Tensor) return `{"$":${input.number}}`;
  const flat = isTypedArray(input) || input instanceof ArrayBuffer || input instanceof DataView;
  if (!flat && handlesIn(input).length > 0)
    return `{"$":${wrap(session, makeTensor(session, input)).number}}`;
  const { bytes, dtype, shape } = flat ? packArray(input) : packNumbers(input as NestedData);
  const buffer = session.transport.synchronous ? bytes : bytes.slice();
  const raw = flat && !isTypedArray(input);
  const fields = [{ b: buffers.push(buffer) - 1 }, raw ? "" : dtype, flat ? null : shape];
  return JSON.stringify({ t: fields });
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
   * `inputs`: of the shapes and dtypes of those it was compiled with; none: the last again. Tensors; typed arrays or
   * bytes, whose elements are in row-major order; nested arrays, whose numbers become the input's dtype. Throws
   * ShapeError, DTypeError, DeviceError, OverflowError, ArgumentError.
   */
  run(...inputs: TensorData[]): R {
    const { session } = this;
    const buffers: Uint8Array[] = [];
    const given = inputs.map((input) => encodeInput(session, input, buffers));
    const result = session.allocate();
    const text = `[[${[`{"$":${this.number}}`, ...given].join(",")}],{"d":[]}]`;
    session.transport.send(["call_packed", "$run_step", result, text, buffers]);
    return this.#results.take(session, result) as R;
  }

  /** The loss of the last run. Rejects with CaptureError before the first. */
  async lossValue(): Promise<number> {
    return (await this.session.value("CompiledStep.loss_value", [this])) as number;
  }

  /** How many kernels one step launches. */
  get nKernels(): number {
    return this.plain("n_kernels") as number;
  }

  /** How many buffers of the arena it uses. */
  get nIntermediates(): number {
    return this.plain("n_intermediates") as number;
  }

  /** The size of the arena: the memory of all intermediates. */
  get arenaBytes(): number {
    return this.plain("arena_bytes") as number;
  }

  /** The most bytes of intermediates alive at one time: no arena can be smaller. */
  get arenaLowerBound(): number {
    return this.plain("arena_lower_bound") as number;
  }
}

/** An input of a step, as the step's function sees it: a tensor. */
export type AsTensors<X extends readonly unknown[]> = { [K in keyof X]: Tensor };

/** `Polygrad.compileStep`. */
export function compileStep<M, const X extends readonly TensorData[], R>(
  session: Session,
  fn: (model: M, ...inputs: AsTensors<X>) => R,
  model: M,
  optimizer: Optimizer | OptimizerGroup,
  ...inputs: X
): CompiledStep<R> {
  const made = session.scope(() => {
    const given = inputs.map((x) =>
      isTypedArray(x) || x instanceof Tensor ? x : wrap(session, makeTensor(session, x)),
    );
    const parameters = getParameters(model).map((tensor) => tensor.number);
    const list = session.call("$list", given);
    const first = session.allocate(inputs.length);
    const results = new Results();
    const body = results.body(session, () => {
      const tensors = inputs.map((_, i) => new session.tensorClass(session, first + i));
      const training = session.training;
      session.training = true; // as Python sets it
      try {
        return fn(model, ...(tensors as unknown as AsTensors<X>));
      } finally {
        session.training = training;
      }
    });
    const result = session.allocate();
    const text = JSON.stringify(parameters);
    try {
      session.transport.send(["compile_step", result, text, optimizer.number, list, body, first]);
    } finally {
      session.transport.send(["release", [list]]);
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
    if (session.capturing > 0) return fn(...args); // part of the function being captured
    if (args.some(isTypedArray)) {
      throw new CaptureError(
        "captured function: expected tensors, got a typed array, whose values would not be seen to change: " +
          "pass new Tensor(array)",
      );
    }
    const body = calls < 2 ? results.body(session, () => fn(...args)) : undefined;
    const result = session.allocate();
    const n = calls++;
    try {
      session.transport.send(["jit_call", handle.number, result, session.encode(args), body]);
    } catch (error) {
      calls = n;
      throw error;
    }
    if (!session.transport.synchronous && n < 2) {
      session.ask(["length", result]).catch(() => (calls = Math.min(calls, n)));
    }
    return results.take(session, result) as R;
  };
  const reset = (): void => {
    calls = 0;
    session.run("$reset", [handle]);
  };
  return Object.defineProperty(Object.assign(call, { reset }), "captured", {
    get: () => calls >= 2,
  }) as unknown as CapturedFunction<A, R>;
}

/** What is passed for a function must be one. */
export function checkFunction(fn: unknown, what: string): void {
  if (typeof fn !== "function") throw new ArgumentError(`${what}: expected a function, got ${typeof fn}`);
}
