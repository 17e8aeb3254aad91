/**
 * Safetensors files in memory: u64 header length | JSON header {name: {dtype, shape, data_offsets}} | data, little-endian
 * (https://github.com/huggingface/safetensors#format).
 */

import { ARRAYS, type DType } from "./arrays";
import { ProgramError } from "./errors";

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
const NAMES = new Map(Object.entries(DTYPES).map(([name, dtype]) => [dtype, name]));
const PREFIX = 8;

export interface Entry {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** The elements' bytes in row-major order. */
  readonly data: Uint8Array;
}

/** What is in the file `bytes`, by name; no data is copied. Throws ProgramError for a damaged one. */
export function readEntries(bytes: Uint8Array): Map<string, Entry> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const length = bytes.length < PREFIX ? Infinity : Number(view.getBigUint64(0, true));
  if (length > bytes.length - PREFIX) {
    throw new ProgramError(
      `safetensors: expected a header of ${length} bytes, got a file of ${bytes.length}: it is cut short`,
    );
  }
  const data = bytes.subarray(PREFIX + length);
  const header = parse(bytes.subarray(PREFIX, PREFIX + length));
  const entries = Object.entries(header).filter(([name]) => name !== "__metadata__");
  return new Map(entries.map(([name, entry]) => [name, entryOf(name, entry, data)]));
}

function parse(bytes: Uint8Array): object {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (cause) {
    throw new ProgramError(`safetensors: expected a JSON header, got damaged bytes`, { cause });
  }
  if (typeof header !== "object" || header === null || Array.isArray(header)) {
    throw new ProgramError(
      `safetensors: expected a JSON object as header, got ${JSON.stringify(header).slice(0, 40)}`,
    );
  }
  return header;
}

function entryOf(name: string, value: unknown, data: Uint8Array): Entry {
  const entry = (value ?? {}) as { dtype?: unknown; shape?: unknown; data_offsets?: unknown };
  const dtype = typeof entry.dtype === "string" ? DTYPES[entry.dtype] : undefined;
  const isCounts = (list: unknown): list is number[] =>
    Array.isArray(list) && list.every((n) => Number.isSafeInteger(n) && n >= 0);
  const { shape, data_offsets: offsets } = entry;
  if (dtype === undefined || !isCounts(shape) || !isCounts(offsets)) {
    throw new ProgramError(
      `safetensors: ${name}: expected dtype, shape and data_offsets, got ${JSON.stringify(value)}`,
    );
  }
  const [start = 0, end = 0] = offsets;
  const nbytes = shape.reduce((a, b) => a * b, ARRAYS[dtype].BYTES_PER_ELEMENT);
  if (end - start !== nbytes || end > data.length) {
    throw new ProgramError(
      `safetensors: ${name}: expected ${nbytes} bytes, got ${start}..${end} of ${data.length}`,
    );
  }
  return { dtype, shape, data: data.subarray(start, end) };
}

/** A file of `entries`. */
export function writeEntries(entries: ReadonlyMap<string, Entry>): Uint8Array<ArrayBuffer> {
  const header: Record<string, unknown> = {};
  let end = 0;
  for (const [name, { dtype, shape, data }] of entries) {
    header[name] = { dtype: NAMES.get(dtype), shape, data_offsets: [end, (end += data.length)] };
  }
  const json = new TextEncoder().encode(JSON.stringify(header));
  const length = Math.ceil(json.length / 8) * 8; // the data starts on a multiple of 8
  const out = new Uint8Array(PREFIX + length + end).fill(0x20, PREFIX, PREFIX + length);
  new DataView(out.buffer).setBigUint64(0, BigInt(length), true);
  out.set(json, PREFIX);
  let at = PREFIX + length;
  for (const { data } of entries.values()) {
    out.set(data, at);
    at += data.length;
  }
  return out;
}
