import assert from "node:assert/strict";
import { test } from "node:test";

import { packAny, type Packed } from "../src/api/data";
import { wholeRecords } from "../src/api/datasets/csv_records";
import { Examples, stack, type BatchPlan } from "../src/api/datasets/examples";
import { ItemSource, type ItemsOf } from "../src/api/datasets/item_source";
import { Prefetch } from "../src/api/datasets/prefetch";
import { hashOf, shuffle, uniformOf } from "../src/api/datasets/random";
import type { Session } from "../src/api/session";

/** What an asynchronous iterable gives. */
async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const out: T[] = [];
  for await (const item of items) out.push(item);
  return out;
}

const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

async function* generated(count: number): AsyncGenerator<number> {
  for (const i of numbers(count)) yield await Promise.resolve(i);
}

/** Examples of numbers, and how often one was decoded. */
function examplesOf(source: ItemsOf<number>, bufferSize?: number): { examples: Examples; decoded: number[] } {
  const decoded: number[] = [];
  const decode = (x: number): readonly [Packed, Packed] => {
    decoded.push(x);
    return [packAny([x], undefined), packAny(x, "int32")];
  };
  const items = new ItemSource(source, "test");
  return { examples: new Examples(undefined as unknown as Session, items, decode, bufferSize), decoded };
}

const PLAN: BatchPlan = { batchSize: 4, shuffle: true, dropLast: false, seed: 3, epoch: 0, start: 0 };

/** The targets of the batches of an epoch. */
async function targets(examples: Examples, plan: Partial<BatchPlan> = {}): Promise<number[][]> {
  const batches = await all(examples.packed({ ...PLAN, ...plan }));
  return batches.map(([, { bytes }]) => [...new Int32Array(bytes.buffer)]);
}

test("hashes are those of MurmurHash3, and uniform", () => {
  // sklearn.utils.murmurhash3_32(struct.pack("<q", x), positive=True)
  assert.deepEqual([hashOf(1), hashOf(-1), hashOf(2 ** 40 + 3)], [1392991556, 1651860712, 120034456]);
  assert.equal(hashOf(5, 1, 7), 744132843);
  const counts = new Array<number>(8).fill(0);
  for (const i of numbers(8000)) {
    const bin = Math.floor(uniformOf(5, 1, i) * 8);
    counts[bin] = (counts[bin] ?? NaN) + 1;
  }
  assert.ok(
    counts.every((n) => n > 850 && n < 1150),
    String(counts),
  );
});

test("a shuffle is a permutation, by its integers", () => {
  const order = (...seed: number[]): number[] => {
    const items = numbers(50);
    shuffle(items, ...seed);
    return items;
  };
  assert.deepEqual(order(1), order(1));
  assert.notDeepEqual(order(1), order(2));
  assert.deepEqual(
    order(1).sort((a, b) => a - b),
    numbers(50),
  );
});

test("all examples come once in each epoch, from arrays and from other sources, in other orders", async () => {
  for (const source of [numbers(18), () => generated(18)]) {
    const { examples } = examplesOf(source, 5);
    const epochs = [await targets(examples), await targets(examples, { epoch: 1 })];
    for (const epoch of epochs) {
      assert.deepEqual(
        epoch.map((batch) => batch.length),
        [4, 4, 4, 4, 2],
      );
      assert.deepEqual(
        epoch.flat().sort((a, b) => a - b),
        numbers(18),
      );
    }
    assert.notDeepEqual(epochs[0], epochs[1]);
    assert.notDeepEqual(epochs[0]?.flat(), numbers(18));
    assert.deepEqual(epochs[0], await targets(examples));
    assert.notDeepEqual(epochs[0], await targets(examples, { seed: 4 }));
    assert.deepEqual((await targets(examples, { shuffle: false, dropLast: true })).flat(), numbers(16));
  }
});

test("the order of a seed stays, as a run that goes on later takes the same", async () => {
  const order = async (source: ItemsOf<number>): Promise<number[]> =>
    (await targets(examplesOf(source, 4).examples, { epoch: 2 })).flat();
  assert.deepEqual(await order(numbers(12)), [0, 2, 5, 6, 9, 11, 3, 10, 4, 7, 1, 8]);
  assert.deepEqual(await order(() => generated(12)), [3, 0, 5, 2, 6, 8, 4, 1, 9, 7, 11, 10]);
});

test("an epoch goes on from a position, and what comes before is not decoded", async () => {
  for (const source of [numbers(18), () => generated(18)]) {
    const whole = await targets(examplesOf(source, 5).examples);
    const { examples, decoded } = examplesOf(source, 5);
    assert.deepEqual(await targets(examples, { start: 3 }), whole.slice(3));
    assert.deepEqual(decoded, whole.slice(3).flat());
    assert.deepEqual(await targets(examples, { start: 5 }), []);
  }
});

test("a part is held out by the seed, the same from each source and in each epoch", async () => {
  const part = (isHeldOut: boolean): Partial<BatchPlan> => ({ part: { fraction: 0.3, isHeldOut } });
  const sorted = async (source: ItemsOf<number>, plan: Partial<BatchPlan>): Promise<number[]> =>
    (await targets(examplesOf(source).examples, plan)).flat().sort((a, b) => a - b);
  const held = await sorted(numbers(400), part(true));
  assert.ok(held.length > 90 && held.length < 150, String(held.length));
  assert.deepEqual(await sorted(() => generated(400), { ...part(true), epoch: 7 }), held);
  const others = await sorted(numbers(400), part(false));
  assert.deepEqual(
    [...held, ...others].sort((a, b) => a - b),
    numbers(400),
  );
  const { examples } = examplesOf(numbers(400));
  assert.equal(
    examples.count({ ...PLAN, part: { fraction: 0.3, isHeldOut: true } }),
    Math.ceil(held.length / 4),
  );
  assert.equal(examplesOf(() => generated(9)).examples.count(PLAN), null);
});

test("generators and streams are read once, functions give new ones", async () => {
  const stream = (): ReadableStream<number> =>
    new ReadableStream({
      start(controller) {
        controller.enqueue(7);
        controller.close();
      },
    });
  for (const source of [generated(3), numbers(3).values(), stream()]) {
    const { examples } = examplesOf(source);
    assert.ok((await targets(examples)).length === 1);
    await assert.rejects(targets(examples), { name: "ArgumentError", message: /test: expected a function/ });
  }
  const { examples } = examplesOf(() => stream());
  assert.deepEqual(await targets(examples), [[7]]);
  assert.deepEqual(await targets(examples), [[7]]);
  assert.throws(() => examplesOf(5 as never), { message: /test: expected an iterable.*got a number/ });
  assert.throws(() => examplesOf(null as never), { message: /got null/ });
  await assert.rejects(targets(examplesOf(() => 5 as never).examples), { message: /got a number/ });
  assert.throws(() => examplesOf([], 0), {
    message: /shuffleBuffer: expected an integer of at least 1, got 0/,
  });
});

test("rows that differ are an error", () => {
  const rows = [packAny([1, 2], undefined), packAny([1], undefined)];
  assert.throws(() => stack(rows, "input"), {
    name: "ShapeError",
    message: /float32 \[2\] and float32 \[1\]/,
  });
  const { bytes, dtype, shape } = stack([packAny([1n], undefined), packAny([2n], undefined)], "input");
  assert.deepEqual([dtype, shape, [...new BigInt64Array(bytes.buffer)]], ["int64", [2, 1], [1n, 2n]]);
});

test("items are read ahead, so many and no more, and a source is closed", async () => {
  let [made, isClosed] = [0, false];
  const source = async function* (): AsyncGenerator<number> {
    try {
      for (;;) yield await Promise.resolve(made++);
    } finally {
      isClosed = true;
    }
  };
  const ahead = new Prefetch(source(), 2);
  const rest = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5));
  await rest();
  assert.equal(made, 2);
  assert.deepEqual([ahead.takeReady(), await ahead.next()], [0, 1]);
  await rest();
  assert.deepEqual([made, await ahead.next(), isClosed], [4, 2, false]);
  ahead.close();
  await rest();
  assert.equal(isClosed, true);
});

test("a reader gets what came before an error, and then the error, each time", async () => {
  const source = async function* (): AsyncGenerator<number> {
    yield await Promise.resolve(1);
    throw new RangeError("mine");
  };
  const ahead = new Prefetch(source(), 2);
  assert.equal(await ahead.next(), 1);
  for (let i = 0; i < 2; i++) await assert.rejects(ahead.next(), { message: "mine" });
  const ended = new Prefetch(generated(1), 2);
  assert.deepEqual([await ended.next(), await ended.next(), ended.takeReady()], [0, undefined, undefined]);
});

test("texts are cut at the ends of records, wherever a file is cut", async () => {
  const text = 'a,b\r\n"x\n""y""",2\r\n,\n"z",3';
  for (const size of [1, 2, 3, 5, 100]) {
    const pieces = async function* (): AsyncGenerator<string> {
      for (let i = 0; i < text.length; i += size) yield await Promise.resolve(text.slice(i, i + size));
    };
    const found = await all(wholeRecords(pieces(), () => undefined, "test"));
    assert.equal(found.join(""), text);
    const ends = ["a,b\r\n", '"x\n""y""",2\r\n', ",\n", '"z",3'];
    if (size === 1) assert.deepEqual(found, ends);
  }
});

/** The records of a text that arrives in pieces of a size; or why it has none. */
async function recordsIn(
  text: string,
  size: number,
  delimiter?: string,
): Promise<readonly string[] | string> {
  const pieces = async function* (): AsyncGenerator<string> {
    for (let i = 0; i < text.length; i += size) yield await Promise.resolve(text.slice(i, i + size));
  };
  try {
    return await all(wholeRecords(pieces(), () => delimiter, "test", 20));
  } catch (error) {
    return String(error);
  }
}

test("a quote within a field is a character of it", async () => {
  for (const [text, delimiter] of [
    ['5" disk,1\n3" disk,2\n', undefined],
    ['a\t",b\n', ","], // a tab is no delimiter here
    ['a|"b\nc|"d\n', ";"],
    ['a""b\nc\n', undefined],
  ] as const) {
    const lines = text.split(/(?<=\n)/).filter((line) => line !== "");
    assert.deepEqual(await recordsIn(text, 1, delimiter), lines, text);
    assert.equal(((await recordsIn(text, 7, delimiter)) as string[]).join(""), text);
  }
  assert.deepEqual(await recordsIn('a;"b\nc";d\ne\n', 1), ['a;"b\nc";d\n', "e\n"]);
});

test("a quote that is not closed is an error that names its line, however the text arrives", async () => {
  const text = `a,b\n"x\ny",2\n3,"not closed\n${"4,5\n".repeat(20)}`;
  const long = `a\n${"x".repeat(21)}\nb\n`;
  for (const size of [1, 3, 50, 1000]) {
    assert.equal(
      await recordsIn(text, size),
      "ArgumentError: test: line 4: expected the end of a field in quotes within 20 characters, got none",
    );
    assert.equal(
      await recordsIn(long, size),
      "ArgumentError: test: line 2: expected a record of at most 20 characters, got a longer one",
    );
    assert.equal((await recordsIn(`a\n${"x".repeat(20)}\nb\n`, size)).length > 0, true);
  }
  assert.deepEqual(await recordsIn('a\n"b\n', 1), ["a\n", '"b\n']); // the parser names it
});
