/** Options as users write them: their names, and those in Python's messages. */

import { ArgumentError, PolygradError } from "./generated/errors";

/** The names of the options of type `T`. */
export type OptionNames<T> = Readonly<Record<keyof T, true>>;

/** Throws ArgumentError, which begins with `what`, unless `options` is an object with some of these options alone. */
export function checkOptions<T extends object>(what: string, options: unknown, names: OptionNames<T>): void {
  const expected = Object.keys(names).join(", ");
  if (typeof options !== "object" || options === null) {
    const got = options === null ? "null" : typeof options;
    throw new ArgumentError(`${what}: expected an object with options among ${expected}, got ${got}`);
  }
  const other = Object.keys(options).find((name) => !Object.hasOwn(names, name));
  if (other !== undefined) {
    throw new ArgumentError(`${what}: expected options among ${expected}, got ${other}`);
  }
}

/** Python's name for a member or an option: `max_batch` for `maxBatch`. */
export function pythonName(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/**
 * Options by Python's names, `max_batch` for `maxBatch`, without those that are undefined and `ours`, which Python does not
 * take. Throws as `checkOptions`.
 */
export function pythonOptions<T extends object>(
  what: string,
  options: unknown,
  names: OptionNames<T>,
  ours: readonly string[],
): Record<string, unknown> {
  checkOptions(what, options, names);
  const given = Object.entries(options as object).filter(
    ([name, value]) => value !== undefined && !ours.includes(name),
  );
  return Object.fromEntries(given.map(([name, value]) => [pythonName(name), value as unknown]));
}

/** An error of Python's with these options called as they are here: `batchSize`, not `batch_size`. */
export function withOptionNames<T>(error: unknown, names: OptionNames<T>): unknown {
  if (error instanceof PolygradError) {
    error.message = error.message.replace(/\b[a-z]+(_[a-z]+)+\b/g, (word) => {
      const own = word.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
      return Object.hasOwn(names, own) ? own : word;
    });
  }
  return error;
}
