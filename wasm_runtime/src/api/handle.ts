/** An object on the Python side, by its number in the table of `polygrad/bridge.py`. */

/// <reference lib="esnext.disposable" />

// Engines without explicit resource management still let `using` be compiled to what they have.
const dispose: typeof Symbol.dispose =
  (Symbol as { dispose?: typeof Symbol.dispose }).dispose ??
  (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);

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
  readonly session: Session;
  #number: number;

  /** @internal */
  constructor(session: Session, number: number) {
    this.session = session;
    this.#number = number;
    session.adopt(this, number);
  }

  /** @internal The number of the object. Throws when it was disposed of. */
  get number(): number {
    if (this.#number === 0) this.session.throwDisposed(this);
    return this.#number;
  }

  /** Whether `dispose` was called. */
  get disposed(): boolean {
    return this.#number === 0;
  }

  /** Free the object now; it cannot be used afterwards. What was computed from it lives on. */
  dispose(): void {
    if (this.#number === 0) return;
    this.session.drop(this, this.#number);
    this.#number = 0;
  }

  [dispose](): void {
    this.dispose();
  }

  /** Keep the object after the end of the `scope` that it was made in; the object itself. */
  keep(): this {
    this.session.forgetInScope(this);
    return this;
  }
}

/** The properties of `handle` that a user's class or program added. */
export function ownProperties(handle: Handle): [string, unknown][] {
  return Object.entries(handle).filter(([name]) => name !== "session");
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
      stack.push(...ownProperties(x as Handle).map(([, part]) => part));
    } else if (x instanceof Map || x instanceof Set) {
      stack.push(...(x.values() as Iterable<unknown>));
    } else {
      stack.push(...(Object.values(x) as unknown[]));
    }
  }
  return handles;
}
