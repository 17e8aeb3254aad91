/** Objects of the Python side that are no tensors: layers, optimizers, captured steps. */

import { callTensorList, split, unpack, wrap } from "./calls";
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
  /** Whether it holds lists of tensors, or layers, so that only Python knows all that are in it. */
  readonly lists?: boolean;
}

/** Which tensors an object made with these arguments has. */
function present(shape: Shape, args: readonly unknown[]): ReadonlySet<string> {
  const [given, options] = split(args);
  const has = ({ flag }: TensorAttribute): boolean =>
    flag === undefined || Boolean(given[flag.position] ?? options?.[flag.name] ?? flag.default);
  return new Set(shape.tensors.filter(has).map(({ name }) => name));
}

/** The bridge's name for the tensors in an object. */
const STATE = "$state";

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

  /** The names of the attributes that hold a tensor, in order. */
  private get tensorNames(): readonly string[] {
    return this.shape.tensors.map(({ name }) => name).filter((name) => this.#present.has(name));
  }

  /** @internal Its tensors by their dotted names, in order. In a worker known after `ready()`. */
  state(): [string, Tensor][] {
    if (!this.shape.lists) return this.tensorNames.map((name) => [name, this.attribute(name)]);
    const names = this.plain(STATE) as string[];
    const tensors = unpack(this.session, this.session.call(STATE, [this]), names.length);
    return tensors.map((tensor, i) => [names[i] ?? "", tensor]);
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
        `${name.replace("$", "")}: expected an object that has arrived from the worker: await its ready() first`,
      );
    }
    return this.#values[name];
  }

  /** Resolves when it has been made, and what it knows has arrived; rejects if that failed. */
  async ready(): Promise<this> {
    const names = this.shape.lists ? [...this.shape.values, STATE] : this.shape.values;
    const found = await this.session.ask(["meta", this.number, names]);
    this.#values = found as Record<string, unknown>;
    return this;
  }
}
