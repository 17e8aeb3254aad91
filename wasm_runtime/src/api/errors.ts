/** Errors of the Python side as errors of this one. */

import * as classes from "./generated/errors";

const BY_NAME: Readonly<Record<string, new (message: string, options?: ErrorOptions) => Error>> = classes;

interface Described {
  readonly type: string;
  readonly message: string;
  readonly traceback: string;
}

/**
 * The error that `text` describes: `!` and JSON, as polygrad/bridge.py writes it. Its class is that of the Python
 * error, its message the Python message; `cause` is the traceback.
 */
export function errorFrom(text: string): Error {
  const { type, message, traceback } = JSON.parse(text.slice(1)) as Described;
  const known = BY_NAME[type];
  if (known !== undefined) return new known(message, { cause: traceback });
  return new classes.PolygradError(`${type}: ${message}`, { cause: traceback });
}

/** An error of this side as such a text. */
export function describe(error: unknown): string {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return `!${JSON.stringify({ type: name, message, traceback: stack })}`;
}
