/** What the pages of language models share: `bench/libraries/language.py` in JavaScript. */

/** Tokens of any model that has at least 512. */
export const tokensOf = (count) => Array.from({ length: count }, (_, i) => (i * 7919 + 13) % 509);

/** Sentences of `count` tokens each, no two alike. */
export const sentencesOf = (sentences, count) =>
  Array.from({ length: sentences }, (_, j) =>
    Array.from({ length: count }, (_, i) => (i * 7919 + 31 * j + 13) % 509),
  );

export const PROMPT = [13, 8, 3, 507, 502, 497, 492, 487]; // of the first token

/** The last part of a path: what the server has of it under /models/. */
export const nameOf = (path) => path.split("/").at(-1);

/** Whole numbers as an int64 array, as ONNX models take them. */
export const whole = (numbers) => BigInt64Array.from(numbers, BigInt);
