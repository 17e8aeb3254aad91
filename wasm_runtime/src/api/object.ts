/** Objects of the Python side that are no tensors: layers, optimizers, captured steps. */

import { callTensorList, split, wrap } from "./calls";
import { PolygradError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { Handle } from "./handle";
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
}

/** Which tensors an object made with these arguments has. */
function present(shape: Shape, args: readonly unknown[]): ReadonlySet<string> {
  const [given, options] = split(args);
  const has = ({ flag }: TensorAttribute): boolean =>
    flag === undefined || Boolean(given[flag.position] ?? options?.[flag.name] ?? flag.default);
  return new Set(shape.tensors.filter(has).map(({ name }) => name));
}

/** An object with attributes. */
export class PythonObject extends Handle {
  /** @internal */
  static readonly shape: Shape = { id: "", tensors: [], values: [] };
  readonly #present: ReadonlySet<string>;
  #values: Readonly<Record<string, unknown>> | undefined;

  /** @internal `args` are what it was constructed with. */
  constructor(session: Session, number: number, args: readonly unknown[] = []) {
    super(session, number);
    this.#present = present(this.shape, args);
  }

  private get shape(): Shape {
    return (this.constructor as typeof PythonObject).shape;
  }

  /** @internal The names of the attributes that hold a tensor, in order. */
  get tensorNames(): readonly string[] {
    return this.shape.tensors.map(({ name }) => name).filter((name) => this.#present.has(name));
  }

  /** @internal */
  attribute(name: string): Tensor {
    return wrap(this.session, this.session.call("$get", [this, name]));
  }

  /** @internal */
  optional(name: string): Tensor | null {
    return this.#present.has(name) ? this.attribute(name) : null;
  }

  /** @internal */
  list(name: string): Promise<Tensor[]> {
    return callTensorList(this.session, "$get", [this, name]);
  }

  /** @internal */
  assign(name: string, value: unknown): void {
    this.session.run("$set", [this, name, value]);
  }

  /** @internal Plain data: in a worker as of the last `ready()`. */
  plain(name: string): unknown {
    if (this.session.transport.synchronous) {
      const found = this.session.askSync(["meta", this.number, [name]]) as Record<string, unknown>;
      return found[name];
    }
    if (this.#values === undefined) {
      throw new PolygradError(
        `${name}: expected an object that has arrived from the worker: await its ready() first`,
      );
    }
    return this.#values[name];
  }

  /** Resolves when it has been made, and what it knows has arrived; rejects if that failed. */
  async ready(): Promise<this> {
    const found = await this.session.ask(["meta", this.number, this.shape.values]);
    this.#values = found as Record<string, unknown>;
    return this;
  }
}
