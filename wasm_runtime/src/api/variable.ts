/** Symbolic integers: sizes and positions whose value is given run by run. */

import { Handle } from "./handle";

type Integer = number | Variable;

/** A symbolic integer; `bind` gives it a value for one run. */
export class Variable extends Handle {
  /** This variable with a value. Throws ArgumentError when it is out of bounds. */
  bind(value: number): Variable {
    return new Variable(this.session, this.session.call("Variable.bind", [this, value]));
  }

  #with(op: string, other: Integer): Variable {
    return new Variable(this.session, this.session.call("$symbolic", [op, this, other]));
  }

  add(other: Integer): Variable {
    return this.#with("add", other);
  }

  sub(other: Integer): Variable {
    return this.#with("sub", other);
  }

  mul(other: Integer): Variable {
    return this.#with("mul", other);
  }

  /** Division, rounded down. */
  floordiv(other: Integer): Variable {
    return this.#with("floordiv", other);
  }

  /** The remainder of `floordiv`. */
  mod(other: Integer): Variable {
    return this.#with("mod", other);
  }
}
