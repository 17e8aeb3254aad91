/**
 * Safetensors files: u64 header length | JSON header {name: {dtype, shape, data_offsets}} | data, little-endian
 * (https://github.com/huggingface/safetensors#format).
 */

import { itemSize, type DType } from "./arrays";
import { ProgramError } from "./errors";
import { parseJson } from "./strict_json";

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
/** The bytes before the header. */
export const PREFIX = 8;

export interface Entry {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** The elements' bytes in row-major order. */
  readonly data: Uint8Array;
}

/** A tensor of a file; `start` and `end` of its data are counted from the end of the header. */
export interface Place {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly start: number;
  readonly end: number;
}

/** The class of the errors for damaged files. */
export type Damage = new (message: string, options?: ErrorOptions) => Error;

/** The tensors of the file `bytes`, by name, without copies. Throws ProgramError for a damaged file. */
export function readEntries(bytes: Uint8Array): Map<string, Entry> {
  const length = bytes.length < PREFIX ? Infinity : headerLength(bytes);
  if (length > bytes.length - PREFIX) {
    throw new ProgramError(
      `safetensors: expected a header of ${length} bytes, got a file of ${bytes.length}: it is cut short`,
    );
  }
  const data = bytes.subarray(PREFIX + length);
  const places = parseHeader(bytes.subarray(PREFIX, PREFIX + length), ProgramError);
  return new Map(
    places.map(({ name, dtype, shape, start, end }) => {
      if (end > data.length) {
        throw new ProgramError(
          `safetensors: ${name}: expected ${end - start} bytes, got ${start}..${end} of ${data.length}`,
        );
      }
      return [name, { dtype, shape, data: data.subarray(start, end) }];
    }),
  );
}

/** The length of the header that follows the first `PREFIX` bytes of a file. */
export function headerLength(prefix: Uint8Array): number {
  return Number(new DataView(prefix.buffer, prefix.byteOffset).getBigUint64(0, true));
}

/** The tensors of a header, in its order. Throws `Failure` for a damaged header, and for metadata where there may be none. */
export function parseHeader(bytes: Uint8Array, Failure: Damage, mayHaveMetadata = true): Place[] {
  let header: unknown;
  try {
    header = parseJson(bytes);
  } catch (cause) {
    throw new Failure("safetensors: expected a JSON header, got damaged bytes", { cause });
  }
  if (typeof header !== "object" || header === null || Array.isArray(header)) {
    const got = JSON.stringify(header).slice(0, 40);
    throw new Failure(`safetensors: expected a JSON object as header, got ${got}`);
  }
  if (!mayHaveMetadata && Object.hasOwn(header, "__metadata__")) {
    throw new Failure("safetensors: expected tensors alone, got metadata too: export it again");
  }
  const entries = Object.entries(header).filter(([name]) => name !== "__metadata__");
  return entries.map(([name, entry]) => placeOf(name, entry, Failure));
}

function isCounts(list: unknown): list is number[] {
  return Array.isArray(list) && list.every((n) => Number.isSafeInteger(n) && n >= 0);
}

function placeOf(name: string, value: unknown, Failure: Damage): Place {
  const entry = (value ?? {}) as { dtype?: unknown; shape?: unknown; data_offsets?: unknown };
  const { dtype: key } = entry;
  const dtype = typeof key === "string" && Object.hasOwn(DTYPES, key) ? DTYPES[key] : undefined;
  const { shape, data_offsets: offsets } = entry;
  if (dtype === undefined || !isCounts(shape) || !isCounts(offsets) || offsets.length !== 2) {
    throw new Failure(
      `safetensors: ${name}: expected dtype, shape and data_offsets, got ${JSON.stringify(value)}`,
    );
  }
  const [start = 0, end = 0] = offsets;
  const nbytes = shape.reduce((a, b) => a * b, itemSize(dtype));
  if (end - start !== nbytes) {
    throw new Failure(`safetensors: ${name}: expected ${nbytes} bytes, got ${start}..${end}`);
  }
  return { name, dtype, shape, start, end };
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
