/** Symbolic integers: sizes and positions that get a value for each run. */

import { Handle, owner } from "./handle";
import type { Session } from "./session";

type Integer = number | Variable;

/** A symbolic integer; `bind` gives it a value for one run. */
export class Variable extends Handle<Session> {
  /** This variable with a value. Throws ArgumentError when it is out of bounds. */
  bind(value: number): Variable {
    return new Variable(this[owner], this[owner].call("Variable.bind", [this, value]));
  }

  #combine(op: string, other: Integer): Variable {
    return new Variable(this[owner], this[owner].call("$symbolic", [op, this, other]));
  }

  add(other: Integer): Variable {
    return this.#combine("add", other);
  }

  sub(other: Integer): Variable {
    return this.#combine("sub", other);
  }

  mul(other: Integer): Variable {
    return this.#combine("mul", other);
  }

  /** Division, rounded down. */
  floordiv(other: Integer): Variable {
    return this.#combine("floordiv", other);
  }

  /** The remainder of `floordiv`. */
  mod(other: Integer): Variable {
    return this.#combine("mod", other);
  }
}
