/** Damage: files with other bytes, lengths and parts than good ones have. `tests/fuzz/changes.py` does the same in Python. */

/** Integers from 0 to below `n`, the same for the same seed (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(n: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let x = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    x = (x + Math.imul(x ^ (x >>> 7), 61 | x)) ^ x;
    return Math.floor((((x ^ (x >>> 14)) >>> 0) / 2 ** 32) * n);
  }

  choice<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }
}

type Change = (data: Buffer, random: Random, files: readonly Uint8Array[]) => Uint8Array;

const LIMITS = [0, 1, 2, 7, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1].map(BigInt);
const LARGE = [...LIMITS, ...[40n, 53n, 60n, 63n].flatMap((bits) => [(1n << bits) - 1n, 1n << bits])];
/** What may stand for a number, or anything else, in a text. */
const WORDS = [
  ...[
    "0",
    "1",
    "-1",
    "2",
    "255",
    "65536",
    "2147483648",
    "9007199254740991",
    "9007199254740993",
    "1e400",
    "-0",
    "1.5",
  ],
  ...[
    "NaN",
    "null",
    "true",
    '""',
    '"x"',
    '"__proto__"',
    '"constructor"',
    "[]",
    "{}",
    "[[]]",
    "\\ud800",
    "\xff",
  ],
  ...["9".repeat(400), "[".repeat(300)],
];

/** `data` with `added` in the place of `removed` bytes at `at`. */
const spliced = (data: Buffer, at: number, removed: number, added: Uint8Array): Uint8Array =>
  Buffer.concat([data.subarray(0, at), added, data.subarray(at + removed)]);

function flip(data: Buffer, random: Random): Uint8Array {
  const at = random.below(data.length);
  data[at] = (data[at] ?? 0) ^ (1 << random.below(8));
  return data;
}

function setByte(data: Buffer, random: Random): Uint8Array {
  data[random.below(data.length)] = random.choice([0, 1, 0x7f, 0x80, 0xff, random.below(256)]);
  return data;
}

/** An integer at its limits, little-endian, of 1 to 8 bytes. */
function number(data: Buffer, random: Random): Uint8Array {
  const size = random.choice([1, 2, 4, 4, 8, 8]);
  const word = Buffer.alloc(8);
  word.writeBigUInt64LE(random.choice([...LARGE, BigInt(data.length), BigInt(data.length - 1)]));
  return spliced(data, random.below(data.length), size, word.subarray(0, size));
}

/** A byte that is there, one more or less. */
function near(data: Buffer, random: Random): Uint8Array {
  const at = random.below(data.length);
  data[at] = ((data[at] ?? 0) + random.choice([-8, -1, 1, 8])) & 255;
  return data;
}

/** Another word in the place of a number, a name or a bracket of a text. */
function word(data: Buffer, random: Random): Uint8Array {
  const start = random.below(data.length);
  const text = data.subarray(start, start + 400).toString("latin1");
  const places = [...text.matchAll(/-?\d+|"[^"]{0,40}"|[[\]{}]|null|true|false/g)];
  if (places.length === 0) return data;
  const { index, 0: found } = random.choice(places);
  return spliced(data, start + index, found.length, Buffer.from(random.choice(WORDS), "latin1"));
}

function remove(data: Buffer, random: Random): Uint8Array {
  return spliced(data, random.below(data.length), random.choice([1, 1, 2, 4, 8, 16, 64]), Buffer.alloc(0));
}

function repeat(data: Buffer, random: Random): Uint8Array {
  const at = random.below(data.length);
  const part = data.subarray(at, at + 1 + random.below(64));
  const times = random.choice([1, 1, 2, 20, 500]);
  return spliced(data, at, 0, Buffer.concat(Array<Buffer>(times).fill(part)));
}

/** A part of another file, before or instead of what is there. */
function splice(data: Buffer, random: Random, files: readonly Uint8Array[]): Uint8Array {
  const other = random.choice(files);
  const start = random.below(other.length);
  const part = other.subarray(start, start + 1 + random.below(128));
  return spliced(data, random.below(data.length), random.choice([0, 8, 64]), part);
}

function cut(data: Buffer, random: Random): Uint8Array {
  return data.subarray(0, random.below(data.length));
}

const CHANGES: readonly Change[] = [
  ...[flip, flip, setByte, number, number, near, word, word, word],
  ...[remove, repeat, splice, cut],
];

/** One of the files with a few changes, mostly one. */
export function changed(files: readonly Uint8Array[], random: Random): Uint8Array {
  let data: Uint8Array = Buffer.from(random.choice(files));
  for (let times = random.choice([1, 1, 1, 2, 3, 8]); times > 0 && data.length > 0; times--) {
    data = random.choice(CHANGES)(Buffer.from(data), random, files);
  }
  return data;
}
