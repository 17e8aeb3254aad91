/** How tokens are drawn: options, their checks, and what the Programs of `polygrad/generation/exporting.py` read. */

import { ProgramError } from "../errors";

/** Options of sampling, applied in this order; `polygrad/generation/sampling.py` explains each. */
export interface Sampling {
  /** What is added to the scores of tokens. */
  readonly logitBias?: Readonly<Record<number, number>>;
  readonly repetitionPenalty?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  /** Divides scores; 0 takes the likeliest token. */
  readonly temperature?: number;
  /** As many tokens stay; 0: all. */
  readonly topK?: number;
  /** The likeliest tokens stay that together have this probability. */
  readonly topP?: number;
  /** Tokens stay that have this part of the likeliest token's probability. */
  readonly minP?: number;
  /** Of the draws, an integer from 0; a fresh one for each answer unless given. */
  readonly seed?: number | bigint;
}

/** Sampling with all values. */
export type FullSampling = Required<Sampling>;

const MOST_CANDIDATES = 1024; // up to this topK, a Program looks at the greatest scores alone
const LEAST_CANDIDATES = 16;

const RULES: Readonly<
  Record<Exclude<keyof Sampling, "logitBias" | "seed">, readonly [(x: number) => boolean, string, number]>
> = {
  repetitionPenalty: [(x) => x > 0, "more than 0", 1],
  presencePenalty: [() => true, "a finite number", 0],
  frequencyPenalty: [() => true, "a finite number", 0],
  temperature: [(x) => x >= 0, "at least 0", 0],
  topK: [(x) => x >= 0 && Number.isInteger(x), "an integer from 0", 0],
  topP: [(x) => x > 0 && x <= 1, "more than 0, at most 1", 1],
  minP: [(x) => x >= 0 && x <= 1, "from 0 to 1", 0],
};

const LARGEST_SEED = 2n ** 64n - 1n;

/** The options with all values. Throws ProgramError for one that is out of its range. */
export function fullSampling(given: Sampling, vocabulary: number): FullSampling {
  const numbers = Object.entries(RULES).map(([name, [isGood, expected, usual]]): [string, number] => {
    const value = given[name as keyof typeof RULES] ?? usual;
    if (typeof value !== "number" || !Number.isFinite(value) || !isGood(value)) {
      throw new ProgramError(`${name}: expected ${expected}, got ${String(value)}`);
    }
    return [name, value];
  });
  const { logitBias = {} } = given;
  for (const [token, bias] of Object.entries(logitBias)) {
    const isGood = Number.isInteger(Number(token)) && Number(token) >= 0 && Number(token) < vocabulary;
    if (!isGood || typeof bias !== "number" || Number.isNaN(bias)) {
      throw new ProgramError(
        `logitBias: expected numbers by tokens below ${vocabulary}, got ${token}: ${bias}`,
      );
    }
  }
  return { ...(Object.fromEntries(numbers) as unknown as FullSampling), logitBias, seed: seedOf(given.seed) };
}

function seedOf(seed: number | bigint | undefined): bigint {
  if (seed === undefined) return crypto.getRandomValues(new BigUint64Array(1))[0] ?? 0n;
  const isInteger = typeof seed === "bigint" || Number.isSafeInteger(seed);
  if (!isInteger || seed < 0 || seed > LARGEST_SEED) {
    throw new ProgramError(`seed: expected an integer of 64 bits, got ${seed}`);
  }
  return BigInt(seed);
}

/** The numbers in the order of the state `sampling.numbers`. */
export function numbersOf(sampling: FullSampling, vocabulary: number): Float32Array {
  const { temperature, topK, topP, minP, repetitionPenalty, presencePenalty, frequencyPenalty } = sampling;
  return Float32Array.of(
    ...[temperature, topK || vocabulary, topP, minP],
    ...[repetitionPenalty, presencePenalty, frequencyPenalty],
  );
}

/** Whether the scores change before a token is drawn. */
export function isPenalized(sampling: FullSampling): boolean {
  const { logitBias, repetitionPenalty, presencePenalty, frequencyPenalty } = sampling;
  const isChanged = repetitionPenalty !== 1 || presencePenalty !== 0 || frequencyPenalty !== 0;
  return isChanged || Object.keys(logitBias).length > 0;
}

/** The Program that draws. */
export function drawName({ temperature, topK, topP }: FullSampling): string {
  if (temperature === 0) return "greedy";
  if (topK > 0 && topK <= MOST_CANDIDATES) {
    let count = LEAST_CANDIDATES;
    while (count < topK) count *= 2;
    return `candidates${count}`;
  }
  return topK > 0 || topP < 1 ? "threshold" : "draw";
}
