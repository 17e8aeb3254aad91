/** Errors of the Python side as errors of this one. */

import * as classes from "./generated/errors";

/**
 * An exception of Python's that has no class of its own here, such as ModuleNotFoundError: `type` is its name, and the
 * message is Python's.
 */
export class PythonError extends classes.PolygradError {
  override name = "PythonError";
  readonly type: string;

  constructor(message: string, type: string, options?: ErrorOptions) {
    super(message, options);
    this.type = type;
  }
}

/** What Python calls an operation that exists, but not for what it was given. */
export class NotImplementedError extends classes.PolygradError {
  override name = "NotImplementedError";
}

type ErrorClass = new (message: string, options?: ErrorOptions) => Error;

/** JavaScript's own classes, for its own errors and for those of Python's that mean the same. */
const OF_THE_LANGUAGE: Readonly<Record<string, ErrorClass>> = {
  Error,
  TypeError,
  RangeError,
  ReferenceError,
  SyntaxError,
  ValueError: RangeError,
  IndexError: RangeError,
  KeyError: RangeError,
  ZeroDivisionError: RangeError,
  NotImplementedError,
};
const OWN: Readonly<Record<string, ErrorClass>> = classes;

interface Described {
  /** The class, or the nearest one above it that has a meaning here. */
  readonly type: string;
  /** What Python calls it. */
  readonly name?: string;
  readonly message: string;
  readonly traceback: string;
}

/**
 * The error that `text` describes: `!` and JSON, as polygrad/bridge.py writes it. Its class is that of the Python
 * error, its message the Python message; `cause` is the traceback.
 */
export function errorFrom(text: string): Error {
  const { type, name = type, message, traceback } = JSON.parse(text.slice(1)) as Described;
  const known = OWN[type] ?? OF_THE_LANGUAGE[type];
  if (known !== undefined) return new known(message, { cause: traceback });
  return new PythonError(message, name, { cause: traceback });
}

/** An error of this side as such a text. */
export function describe(error: unknown): string {
  const known: Error & { type?: unknown } = error instanceof Error ? error : new Error(String(error));
  const { name, message, stack, type = name } = known; // a PythonError, Pyodide's or ours, has a type
  return `!${JSON.stringify({ type: name, name: type, message, traceback: stack })}`;
}
