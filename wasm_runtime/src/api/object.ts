/** Objects of the Python side that are no tensors: layers, optimizers, captured steps. */

import { callTensorList, split, unpack, wrap } from "./calls";
import { PolygradError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { inspect, type Inspect } from "./format";
import { Handle, handlesIn, number, owner } from "./handle";
import { attributeAssigned, constructed, type Constructed } from "./known";
import type { Session } from "./session";

/** An attribute that holds a tensor; `flag`: only where the constructor's argument of that name was true. */
export interface TensorAttribute {
  readonly name: string;
  readonly flag?: { readonly name: string; readonly position: number; readonly default: boolean };
}

/** A class that `create` made. */
export interface Constructor<A extends readonly unknown[], T> {
  new (...args: A): T;
  readonly prototype: T;
}

/** What a class knows of its objects. */
export interface Shape {
  /** Its name in the manifest. */
  readonly id: string;
  readonly tensors: readonly TensorAttribute[];
  /** The attributes that are plain data, by their Python names. */
  readonly values: readonly string[];
  /** Whether its objects hold lists of tensors, or layers, so that only Python knows which tensors are in them. */
  readonly lists?: boolean;
}

/** The names of the tensors that an object has which was made with these arguments, in order. */
function tensorNames(shape: Shape, [positional, options]: Constructed): string[] {
  const isPresent = ({ flag }: TensorAttribute): boolean =>
    flag === undefined || Boolean(positional[flag.position] ?? options?.[flag.name] ?? flag.default);
  return shape.tensors.filter(isPresent).map(({ name }) => name);
}

/** The bridge's name for the tensors in an object. */
const STATE = "$state";

/** The method of a class that names the tensors of its objects itself. */
export const namedTensors: unique symbol = Symbol("namedTensors");

/**
 * An object with attributes. How to get at them are static functions: the names of its methods are for users, whose
 * classes may extend layers and optimizers.
 */
export class PythonObject extends Handle<Session> {
  /** @internal */
  static readonly shape: Shape = { id: "", tensors: [], values: [] };
  /** @internal */
  [namedTensors]?(): [string, Tensor][];
  /** @internal */
  readonly [constructed]: Constructed;
  readonly #shape: Shape;
  readonly #tensorNames: readonly string[];
  #values: Readonly<Record<string, unknown>> | undefined;

  /** @internal `args` are what it was constructed with. */
  constructor(session: Session, number: number, args: readonly unknown[] = [], shape = new.target.shape) {
    super(session, number);
    this[constructed] = split(args);
    this.#shape = shape;
    this.#tensorNames = tensorNames(shape, this[constructed]);
  }

  /**
   * @internal The tensors of `x` by their dotted names, in order; undefined for an object that never has any. In a
   * worker known after `ready()`.
   */
  static state(x: PythonObject): [string, Tensor][] | undefined {
    if (x[namedTensors] !== undefined) return x[namedTensors]();
    if (!x.#shape.lists) {
      if (x.#shape.tensors.length === 0) return undefined;
      return x.#tensorNames.map((name) => [name, PythonObject.tensor(x, name)]);
    }
    const names = PythonObject.value(x, STATE) as string[];
    const tensors = unpack(x[owner], x[owner].call(STATE, [x]), names.length);
    return tensors.map((tensor, i) => [names[i] ?? "", tensor]);
  }

  /** @internal */
  static tensor(x: PythonObject, name: string): Tensor {
    return wrap(x[owner], x[owner].call("$get", [x, name]));
  }

  /** @internal */
  static optionalTensor(x: PythonObject, name: string): Tensor | null {
    return x.#tensorNames.includes(name) ? PythonObject.tensor(x, name) : null;
  }

  /** @internal */
  static tensors(x: PythonObject, name: string): Promise<Tensor[]> {
    return callTensorList(x[owner], "$get", [x, name]);
  }

  /** @internal */
  static assign(x: PythonObject, name: string, value: unknown): void {
    x[owner].run("$set", [x, name, value]);
    attributeAssigned(x);
  }

  /** @internal Plain data: in a worker as of the last `ready()`. */
  static value(x: PythonObject, name: string): unknown {
    if (x[owner].transport.synchronous) {
      const question = { kind: "meta", handle: x[number], names: [name] } as const;
      return (x[owner].askSync(question) as Record<string, unknown>)[name];
    }
    if (x.#values === undefined) {
      throw new PolygradError(
        `${name.replace("$", "")}: expected an object that has arrived from the worker: await its ready() first`,
      );
    }
    return x.#values[name];
  }

  /** @internal Its class, and what it was constructed with. */
  override [inspect](_depth?: number, options?: object, inspectValue: Inspect = String): string {
    const [args, named] = this[constructed];
    const given = (named === undefined ? args : [...args, named]).map((value) => {
      const count = handlesIn(value).length;
      return count > 0 ? `${count} tensors` : inspectValue(value, options);
    });
    return `${super[inspect]()}(${given.join(", ")})`;
  }

  /** Resolves when it has been made, and its plain data has arrived; rejects if that failed. */
  async ready(): Promise<this> {
    const { lists, values } = this.#shape;
    const names = lists ? [...values, STATE] : values;
    const answer = await this[owner].ask({ kind: "meta", handle: this[number], names });
    this.#values = answer as Record<string, unknown>;
    return this;
  }
}
