/** An object on the Python side, by its number in the table of `polygrad/bridge.py`. */

/// <reference lib="esnext.disposable" />

import { inspect } from "./format";

// Engines without explicit resource management still let `using` be compiled to what they have.
const dispose: typeof Symbol.dispose =
  (Symbol as { dispose?: typeof Symbol.dispose }).dispose ??
  (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);

/** The property of a handle that is its session. Symbols leave all names to the classes of users. */
export const owner: unique symbol = Symbol("owner");

/** The property of a handle that is its number. */
export const number: unique symbol = Symbol("number");

/** What a handle asks of the session that it belongs to. */
export interface Owner {
  /** Free the object once `handle` is unreachable, or at the end of the innermost scope. */
  adopt(handle: Handle, number: number): void;
  /** Free the object now. */
  drop(handle: Handle, number: number): void;
  /** Leave the object alone when scopes end. */
  forgetInScope(handle: Handle): void;
  /** Throws the error of a handle that is used after `dispose`. */
  throwDisposed(handle: Handle): never;
}

/** An object of the Python side. It is freed when it is no longer reachable, or earlier by `dispose`. */
export class Handle<Session extends Owner = Owner> {
  /** @internal */
  readonly [owner]: Session;
  #number: number;

  /** @internal */
  constructor(session: Session, objectNumber: number) {
    this[owner] = session;
    this.#number = objectNumber;
    session.adopt(this, objectNumber);
  }

  /** @internal The number of the object. Throws when it was disposed of. */
  get [number](): number {
    if (this.#number === 0) this[owner].throwDisposed(this);
    return this.#number;
  }

  /** Whether `dispose` was called. */
  get disposed(): boolean {
    return this.#number === 0;
  }

  /** Free the object now; it cannot be used afterwards. What was computed from it lives on. */
  dispose(): void {
    if (this.#number === 0) return;
    this[owner].drop(this, this.#number);
    this.#number = 0;
  }

  [dispose](): void {
    this.dispose();
  }

  /** @internal What consoles show. */
  [inspect](): string {
    return this.disposed ? `${this.constructor.name} (disposed of)` : this.constructor.name;
  }

  /** Keep the object after the end of the `scope` that it was made in; the object itself. */
  keep(): this {
    this[owner].forgetInScope(this);
    return this;
  }
}

/** The handles in a value: in arrays, Maps, Sets, and the own properties of objects. */
export function handlesIn(value: unknown): Handle[] {
  const handles: Handle[] = [];
  const seen = new Set<object>();
  const stack = [value];
  while (stack.length > 0) {
    const x = stack.pop();
    if (typeof x !== "object" || x === null || ArrayBuffer.isView(x) || seen.has(x)) continue;
    seen.add(x);
    if (x instanceof Handle) {
      handles.push(x as Handle);
      stack.push(...(Object.values(x) as unknown[]));
    } else if (x instanceof Map || x instanceof Set) {
      stack.push(...(x.values() as Iterable<unknown>));
    } else {
      stack.push(...(Object.values(x) as unknown[]));
    }
  }
  return handles;
}
