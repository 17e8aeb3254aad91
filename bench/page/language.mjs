/** What the pages of language models share: `bench/libraries/language.py` in JavaScript. */

/** Tokens of any model that has at least 512. */
export const tokensOf = (count) => Array.from({ length: count }, (_, i) => (i * 7919 + 13) % 509);

/** Sentences of `count` tokens each, no two alike. */
export const sentencesOf = (sentences, count) =>
  Array.from({ length: sentences }, (_, j) =>
    Array.from({ length: count }, (_, i) => (i * 7919 + 31 * j + 13) % 509),
  );

export const PROMPT = [13, 8, 3, 507, 502, 497, 492, 487]; // of the first token

/** A text of so many tokens: single letters of the vocabulary that `bench/gguf_files.py` makes up, whose numbers are their codes. */
export const lettersOf = (count) =>
  Array.from({ length: count }, (_, i) => String.fromCharCode(99 + ((i * 7) % 23))).join("");

export const codesOf = (text) => Array.from(text, (letter) => letter.charCodeAt(0));

/** The text of a token of that vocabulary. */
export const textOf = (token) =>
  token < 256 ? String.fromCharCode(token) : token === 256 ? "ab" : `t${token}`;

/**
 * Milliseconds for each token but the first, which reads the prompt, and the first one's text. `write(count, onToken)`
 * writes so many tokens. It does so once before: what is compiled then counts as the first token's.
 */
export async function written(count, write) {
  await write(count, () => undefined);
  const times = [];
  let first;
  await write(count, (text) => {
    times.push(performance.now());
    first ??= text;
  });
  if (times.length !== count) throw new Error(`expected ${count} tokens, got ${times.length}`);
  return [(times[count - 1] - times[0]) / (count - 1), first];
}

/** The last part of a path: what the server has of it under /models/. */
export const nameOf = (path) => path.split("/").at(-1);

/** Whole numbers as an int64 array, as ONNX models take them. */
export const whole = (numbers) => BigInt64Array.from(numbers, BigInt);
