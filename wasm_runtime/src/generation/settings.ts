/** The settings of a file that generates text, checked. */

import { ProgramError } from "../errors";
import type { Sampling } from "./sampling";

export interface Settings {
  readonly capacity: number;
  readonly vocabulary: number;
  /** The numbers of tokens that Programs of a prompt process. */
  readonly chunks: readonly number[];
  readonly stopTokens: readonly number[];
  readonly maxNewTokens: number;
  /** How the model's files draw tokens. */
  readonly sampling: Sampling;
}

/** Throws ProgramError for settings that are damaged. */
export function settingsOf(values: Readonly<Record<string, unknown>>): Settings {
  const { sampling } = values;
  if (typeof sampling !== "object" || sampling === null) {
    throw new ProgramError("settings: expected sampling, got none: the file is damaged");
  }
  return {
    capacity: countOf(values.capacity, "capacity"),
    vocabulary: countOf(values.vocabulary, "vocabulary"),
    chunks: countsOf(values.chunks, "chunks"),
    stopTokens: countsOf(values.stop_tokens, "stop_tokens", 0),
    maxNewTokens: countOf(values.max_new_tokens, "max_new_tokens"),
    sampling: Object.fromEntries(
      Object.entries(sampling).map(([name, value]) => [
        name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
        value as unknown,
      ]),
    ),
  };
}

/** Throws ProgramError unless `value` is an integer from `least` on. */
export function countOf(value: unknown, name: string, least = 1): number {
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= least) return value;
  throw new ProgramError(`${name}: expected an integer from ${least}, got ${String(value)}`);
}

/** Throws ProgramError unless `value` is a list of integers from `least` on. */
export function countsOf(value: unknown, name: string, least = 1): readonly number[] {
  if (!Array.isArray(value)) throw new ProgramError(`${name}: expected a list, got ${String(value)}`);
  return value.map((n) => countOf(n, name, least));
}
