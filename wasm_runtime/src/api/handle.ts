/** An object on the Python side, by its number in the table of `polygrad/bridge.py`. */

/// <reference lib="esnext.disposable" />

import type { Session } from "./session";

// Engines without explicit resource management still let `using` be compiled to what they have.
const dispose: typeof Symbol.dispose =
  (Symbol as { dispose?: typeof Symbol.dispose }).dispose ??
  (Symbol.for("Symbol.dispose") as typeof Symbol.dispose);

/** An object of the Python side. It is freed when it is no longer reachable, or earlier by `dispose`. */
export class Handle {
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

  /** Let it outlive the `scope` in which it was made; itself. */
  keep(): this {
    this.session.forgetInScope(this);
    return this;
  }
}
