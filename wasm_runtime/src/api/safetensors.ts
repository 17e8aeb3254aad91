/**
 * Safetensors files: u64 header length | JSON header {name: {dtype, shape, data_offsets}} | data, little-endian
 * (https://github.com/huggingface/safetensors#format). Each tensor is handed over as soon as its bytes are there, so
 * that a large file is never whole in Python's memory.
 */

import type { DType } from "./dtypes";
import { ArgumentError } from "./generated/errors";

const DTYPES: Readonly<Record<string, DType>> = {
  BOOL: "bool",
  I8: "int8",
  U8: "uint8",
  I16: "int16",
  U16: "uint16",
  I32: "int32",
  U32: "uint32",
  I64: "int64",
  U64: "uint64",
  F16: "float16",
  BF16: "bfloat16",
  F32: "float32",
  F64: "float64",
};

const MAX_HEADER = 100_000_000;

/** A tensor of a file: where its data lies, counted from the end of the header. */
export interface Entry {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}

/** Bytes that arrive in pieces, and are taken in runs of known length. */
export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>;
  readonly #progress: (loaded: number) => void;
  #pieces: Uint8Array[] = [];
  #available = 0;
  #loaded = 0;

  constructor(source: AsyncIterable<Uint8Array>, progress: (loaded: number) => void) {
    this.#source = source[Symbol.asyncIterator]();
    this.#progress = progress;
  }

  /** The next `count` bytes. Rejects with ArgumentError when there are fewer. */
  async take(count: number): Promise<Uint8Array<ArrayBuffer>> {
    while (this.#available < count) {
      const next = await this.#source.next();
      if (next.done === true) {
        throw new ArgumentError(
          `safetensors: expected ${count} more bytes, got ${this.#available}: the file is cut short`,
        );
      }
      const piece = next.value;
      this.#pieces.push(piece);
      this.#available += piece.length;
      this.#loaded += piece.length;
      this.#progress(this.#loaded);
    }
    const out = new Uint8Array(count);
    let at = 0;
    while (at < count) {
      const piece = this.#pieces[0];
      if (piece === undefined) break;
      const part = piece.subarray(0, count - at);
      out.set(part, at);
      at += part.length;
      if (part.length === piece.length) this.#pieces.shift();
      else this.#pieces[0] = piece.subarray(part.length);
    }
    this.#available -= count;
    return out;
  }
}

function entryOf(name: string, value: unknown): Entry {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>;
  const known = typeof dtype === "string" ? DTYPES[dtype] : undefined;
  const sizes = Array.isArray(shape) && shape.every((n) => Number.isInteger(n) && (n as number) >= 0);
  const ends = Array.isArray(offsets) ? (offsets as unknown[]) : [];
  const [start, end] = [ends[0], ends[1]];
  if (known === undefined || !sizes || !Number.isInteger(start) || !Number.isInteger(end)) {
    throw new ArgumentError(
      `safetensors: ${name}: expected dtype, shape and data_offsets, got ${JSON.stringify(value)}`,
    );
  }
  const entry = { name, dtype: known, shape: shape as number[], start: start as number, end: end as number };
  const size = Number(/\d+$/.exec(known)?.[0] ?? 8) / 8;
  const nbytes = entry.shape.reduce((a, b) => a * b, 1) * size;
  if (entry.start < 0 || entry.end - entry.start !== nbytes) {
    throw new ArgumentError(
      `safetensors: ${name}: expected ${nbytes} bytes, got ${entry.start}..${entry.end}`,
    );
  }
  return entry;
}

/** The entries of a header in the order of the data. Throws ArgumentError for a damaged one. */
export async function readHeader(reader: ByteReader): Promise<Entry[]> {
  const prefix = await reader.take(8);
  const length = new DataView(prefix.buffer).getBigUint64(0, true);
  if (length > MAX_HEADER) {
    throw new ArgumentError(`safetensors: expected a header of at most ${MAX_HEADER} bytes, got ${length}`);
  }
  const text = new TextDecoder().decode(await reader.take(Number(length)));
  let header: unknown;
  try {
    header = JSON.parse(text);
  } catch (cause) {
    throw new ArgumentError("safetensors: expected a JSON header, got damaged bytes", { cause });
  }
  if (typeof header !== "object" || header === null || Array.isArray(header)) {
    throw new ArgumentError("safetensors: expected a JSON object as header, got something else");
  }
  const entries = Object.entries(header).filter(([name]) => name !== "__metadata__");
  return entries.map(([name, value]) => entryOf(name, value)).sort((a, b) => a.start - b.start);
}

/** Every tensor of a file and its bytes, in the order of the data. */
export async function* readTensors(
  reader: ByteReader,
): AsyncGenerator<readonly [Entry, Uint8Array<ArrayBuffer>]> {
  let at = 0;
  for (const entry of await readHeader(reader)) {
    if (entry.start < at) {
      throw new ArgumentError(
        `safetensors: ${entry.name}: expected data of its own, got bytes of another tensor`,
      );
    }
    await reader.take(entry.start - at);
    yield [entry, await reader.take(entry.end - entry.start)];
    at = entry.end;
  }
}
