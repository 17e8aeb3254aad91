import assert from "node:assert/strict";
import { test } from "node:test";

import { ProgramError } from "../src/errors";
import { chunksOf, LanguageModel } from "../src/generation/language_model";
import { pauseIfDue } from "../src/generation/pause";
import { drawName, fullSampling, isPenalized, numbersOf, type Sampling } from "../src/generation/sampling";
import { settingsOf } from "../src/generation/settings";
import { StopStrings } from "../src/generation/stop_strings";
import type { OpenedModel } from "../src/loading";
import { PieceReader } from "../src/pieces";

const refused = (work: () => unknown, pattern: RegExp): void => {
  assert.throws(work, (error) => error instanceof ProgramError && pattern.test(error.message));
};

test("a prompt is divided into chunks that end with it, or begin with it", () => {
  const lengths = [8, 32, 128];
  const chunks = (count: number, start: number): number[][] =>
    chunksOf(count, start, lengths).map(({ first, length }) => [first, length]);
  assert.deepEqual(chunks(3, 0), [[0, 8]]);
  assert.deepEqual(chunks(20, 0), [[0, 32]]);
  assert.deepEqual(chunks(40, 35), [[32, 8]]);
  assert.deepEqual(chunks(300, 0), [
    [0, 128],
    [128, 128],
    [172, 128],
  ]);
  assert.deepEqual(chunksOf(3, 1, [1]), [
    { first: 1, length: 1 },
    { first: 2, length: 1 },
  ]);
});

test("text waits as long as it may be the beginning of a stop string", () => {
  const stops = new StopStrings(["END", "\n\n"]);
  assert.deepEqual(
    ["a", "bE", "N", "x\n", "\nc"].map((part) => stops.feed(part)),
    ["a", "b", "", "ENx", ""],
  );
  assert.equal(stops.isFound(), true);
  const other = new StopStrings(["END"]);
  assert.equal(other.feed("aEN") + other.finish(), "aEN");
  assert.equal(other.isFound(), false);
});

test("the Program that draws follows from the options", () => {
  const name = (options: Sampling): string => drawName(fullSampling(options, 1000));
  assert.equal(name({}), "greedy");
  assert.equal(name({ temperature: 1 }), "draw");
  assert.equal(name({ temperature: 1, topP: 0.9 }), "threshold");
  assert.equal(name({ temperature: 1, topK: 2000 }), "threshold");
  assert.deepEqual(
    [1, 16, 17, 50, 1024].map((topK) => name({ temperature: 1, topK })),
    [16, 16, 32, 64, 1024].map((count) => `candidates${count}`),
  );
  assert.equal(isPenalized(fullSampling({ temperature: 1, topK: 5 }, 9)), false);
  for (const options of [{ repetitionPenalty: 2 }, { presencePenalty: 1 }, { logitBias: { 3: 1 } }]) {
    assert.equal(isPenalized(fullSampling(options, 9)), true);
  }
  assert.deepEqual([...numbersOf(fullSampling({ topP: 0.5 }, 9), 9)], [0, 9, 0.5, 0, 1, 0, 0]);
});

test("options that are out of range are refused by name", () => {
  for (const [options, pattern] of [
    [{ temperature: -1 }, /temperature: expected at least 0, got -1/],
    [{ topK: 1.5 }, /topK: expected an integer from 0, got 1.5/],
    [{ topP: 0 }, /topP: expected more than 0, at most 1, got 0/],
    [{ minP: 2 }, /minP: expected from 0 to 1, got 2/],
    [{ repetitionPenalty: NaN }, /repetitionPenalty: expected more than 0, got NaN/],
    [{ seed: -1 }, /seed: expected an integer of 64 bits, got -1/],
    [{ seed: 2n ** 64n }, /seed: expected an integer of 64 bits/],
    [{ seed: 0.5 }, /seed: expected an integer of 64 bits, got 0.5/],
    [{ logitBias: { 9: 1 } }, /logitBias: expected numbers by tokens below 9, got 9: 1/],
  ] satisfies [Sampling, RegExp][]) {
    refused(() => fullSampling(options, 9), pattern);
  }
});

test("settings have JavaScript's names, and damaged ones are refused", () => {
  const good = {
    capacity: 64,
    vocabulary: 9,
    chunks: [8, 32],
    stop_tokens: [0],
    max_new_tokens: 5,
    sampling: { temperature: 0.5, top_k: 3 },
  };
  const { stopTokens, maxNewTokens, sampling } = settingsOf(good);
  assert.deepEqual([stopTokens, maxNewTokens, sampling], [[0], 5, { temperature: 0.5, topK: 3 }]);
  for (const [name, value] of [
    ["capacity", 0],
    ["chunks", [8, "x"]],
    ["chunks", 8],
    ["sampling", undefined],
  ] as const) {
    refused(() => settingsOf({ ...good, [name]: value }), new RegExp(name));
  }
});

test("a token is in the cache when a Program has written it there, not before", async () => {
  const prefilled: unknown[] = [];
  let fails = true;
  const runs: Record<string, (variables: Record<string, number>) => void> = {
    prefill1: ({ start }) => prefilled.push(start),
    decode: () => {
      if (fails) throw new Error("lost");
    },
  };
  const get = (name: string): Promise<object> =>
    Promise.resolve({
      program: { buffers: [{ role: "input" }] },
      writePart: () => undefined,
      execute: (variables: Record<string, number>) => runs[name]?.(variables),
    });
  const settings = {
    capacity: 16,
    vocabulary: 9,
    chunks: [1],
    stop_tokens: [],
    max_new_tokens: 2,
    sampling: {},
  };
  const programs = { get, read: () => [4], write: () => undefined };
  const model = new LanguageModel({
    head: { settings, files: new Map() },
    programs,
  } as unknown as OpenedModel);
  const answer = async (...prompt: number[]): Promise<number[]> => {
    const tokens = [];
    for await (const piece of model.generate(prompt)) tokens.push(...piece.tokens);
    return tokens;
  };
  await assert.rejects(answer(1, 2, 3), /lost/);
  assert.deepEqual(prefilled.splice(0), [0, 1, 2]);
  fails = false;
  assert.deepEqual(await answer(1, 2, 3, 4, 5), [4, 4]); // the token 4 was drawn, and not written
  assert.deepEqual(prefilled.splice(0), [3, 4]);
  assert.deepEqual(await answer(1, 2, 3, 4, 5, 4, 4), [4, 4]); // the second 4 was drawn last
  assert.deepEqual(prefilled.splice(0), [6]);
});

test("a computation of 12 ms lets other tasks run, a shorter one goes on at once", async (t) => {
  let now = performance.now() + 1000;
  t.mock.method(performance, "now", () => now);
  /** Whether a pause settles in the task that asks for it. */
  const isAtOnce = async (): Promise<boolean> => {
    let settled = false;
    const pause = pauseIfDue().then(() => (settled = true));
    for (let i = 0; i < 20; i++) await Promise.resolve();
    const found = settled;
    await pause;
    return found;
  };
  assert.equal(await isAtOnce(), false);
  now += 11;
  assert.equal(await isAtOnce(), true);
  now += 1;
  assert.equal(await isAtOnce(), false);
});

/** Bytes 0, 1, … in pieces of these lengths. */
async function* inPieces(...lengths: number[]): AsyncGenerator<Uint8Array> {
  let next = 0;
  for (const length of lengths) yield await Promise.resolve(Uint8Array.from({ length }, () => next++));
}

test("bytes are taken in order, however they arrive", async () => {
  const reader = new PieceReader(inPieces(3, 0, 1, 10, 6));
  assert.deepEqual([...(await reader.take(2))], [0, 1]);
  assert.deepEqual([...(await reader.take(4))], [2, 3, 4, 5]);
  const lengths = [];
  let last = 5;
  for await (const piece of reader.stream(11, 4)) {
    lengths.push(piece.length);
    for (const byte of piece) assert.equal(byte, ++last);
  }
  assert.deepEqual(lengths, [8, 3]);
  assert.deepEqual([...(await reader.take(9))], [17, 18, 19]);
  await reader.end();
});

test("copies are memory of their own, also of a piece that has all their bytes", async () => {
  const bytes = Uint8Array.of(1, 2, 3, 4, 5);
  const reader = new PieceReader(bytes);
  const copy = await reader.copy(3);
  copy.fill(9);
  assert.deepEqual([...bytes], [1, 2, 3, 4, 5]);
  const end = await reader.copy(100);
  assert.deepEqual([[...end], end.buffer.byteLength], [[4, 5], 2]);
  assert.equal((await reader.copy(1)).length, 0);
});

test("pieces of odd lengths are joined to words", async () => {
  const reader = new PieceReader(inPieces(3, 3, 3, 3));
  const lengths = [];
  for await (const { length } of reader.stream(12, 4)) lengths.push(length);
  assert.ok(lengths.every((n) => n % 4 === 0));
  assert.equal(
    lengths.reduce((a, b) => a + b),
    12,
  );
});

test("a file that ends too early or too late is damaged, and closing ends its source", async () => {
  const short = new PieceReader(inPieces(5));
  await assert.rejects(async () => {
    for await (const { length } of short.stream(9, 4)) assert.ok(length > 0);
  }, /the file is damaged/);
  await assert.rejects(new PieceReader(Uint8Array.of(1)).end(), /expected its end, got more/);
  let isClosed = false;
  async function* source(): AsyncGenerator<Uint8Array> {
    try {
      for (;;) yield await Promise.resolve(new Uint8Array(8));
    } finally {
      isClosed = true;
    }
  }
  const reader = new PieceReader(source());
  await reader.take(4);
  await reader.close();
  assert.equal(isClosed, true);
});
