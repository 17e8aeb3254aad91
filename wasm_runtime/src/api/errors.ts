/** Errors of the Python side as errors of this one. */

import type { FetchError, FetchFailure } from "../errors";
import * as classes from "./generated/errors";
import type { ErrorText } from "./transport";

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

type ErrorClass = new (message: string, options?: FetchFailure) => Error;

/** JavaScript's own classes, for its own errors and for those of Python's that mean the same. */
const NATIVE_CLASSES: Readonly<Record<string, ErrorClass>> = {
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
const OWN_CLASSES: Readonly<Record<string, ErrorClass>> = classes;

/** An error as polygrad/bridge.py describes it. */
interface ErrorDescription {
  /** The class, or its nearest base class that has a meaning here. */
  readonly type: string;
  /** The name of its class in Python. */
  readonly name?: string;
  readonly message: string;
  readonly traceback: string;
  /** Of a FetchError. */
  readonly url?: string;
  readonly status?: number;
}

/** The error that `text` describes. It has the class and the message of the Python error; `cause` is the traceback. */
export function errorFrom(text: ErrorText): Error {
  const { type, name = type, message, traceback, url, status } = JSON.parse(text) as ErrorDescription;
  const errorClass = OWN_CLASSES[type] ?? NATIVE_CLASSES[type];
  if (errorClass !== undefined) return new errorClass(message, { cause: traceback, url, status });
  return new PythonError(message, name, { cause: traceback });
}

/** The text that describes an error of this side. */
export function describe(error: unknown): ErrorText {
  const described: Partial<FetchError> & { type?: unknown } =
    error instanceof Error ? error : new Error(String(error));
  const { name, message, stack, type = name, url, status } = described; // a PythonError, Pyodide's or ours, has a type
  return JSON.stringify({ type: name, name: type, message, traceback: stack, url, status });
}
