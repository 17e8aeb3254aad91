/** JavaScript data as the bytes of a tensor: numbers, booleans, bigints, arrays of them nested, typed arrays. */

import { flatten, itemSize, type NestedData } from "../arrays";
import {
  dtypeOfArray,
  isTypedArray,
  type DType,
  type DTypeName,
  type Scalar,
  type TypedArray,
} from "./dtypes";
import { isOptions } from "./encode";
import { DTypeError, OverflowError, ShapeError } from "./generated/errors";

export type { NestedData } from "../arrays";

/** Elements in row-major order, with their shape. */
export interface ShapedData {
  readonly data: TypedArray | ArrayBuffer | DataView;
  readonly shape: readonly number[];
  /** The elements' dtype; that of the array unless given. */
  readonly dtype?: DTypeName;
}

export function isShaped(x: unknown): x is ShapedData {
  return isOptions(x) && "data" in x && "shape" in x;
}

/** Elements in memory, as they are sent. `cast`: the dtype that Python converts them to. */
export interface Packed {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly cast?: DType;
}

/** The error of arrays that are ragged. */
function ragged(depth: number, expected: number, got: string): Error {
  return new ShapeError(`data: expected ${expected} elements in every array at depth ${depth}, got ${got}`);
}

const RANGES: Partial<Record<DType, readonly [bigint, bigint]>> = {};
for (const bits of [8, 16, 32, 64]) {
  RANGES[`int${bits}` as DType] = [-(2n ** BigInt(bits - 1)), 2n ** BigInt(bits - 1) - 1n];
  RANGES[`uint${bits}` as DType] = [0n, 2n ** BigInt(bits) - 1n];
}

/** A number cut to an integer of `dtype`, as a cast does. Throws OverflowError for an integer that does not fit. */
function toInteger(x: Scalar, dtype: DType, [low, high]: readonly [bigint, bigint]): bigint {
  if (typeof x === "number" && !Number.isInteger(x)) {
    if (Number.isNaN(x)) return 0n;
    if (x === Infinity) return high;
    if (x === -Infinity) return low;
    x = Math.trunc(x);
  }
  const value = BigInt(x);
  if (value < low || value > high) {
    throw new OverflowError(`data: expected integers in ${low}..${high} (${dtype}), got ${value}`);
  }
  return value;
}

/** The default dtype: bool for booleans, int64 for bigints, else float32. */
function dtypeOf(flat: readonly Scalar[]): DType {
  const kinds = new Set(flat.map((x) => typeof x));
  for (const kind of kinds) {
    if (kind !== "number" && kind !== "boolean" && kind !== "bigint") {
      throw new DTypeError(`data: expected numbers, booleans or bigints, got ${kind}`);
    }
  }
  if (kinds.size === 1 && kinds.has("boolean")) return "bool";
  return kinds.has("bigint") && !kinds.has("number") ? "int64" : "float32";
}

function bytesOf(array: TypedArray): Uint8Array<ArrayBuffer> {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

function integers(
  flat: readonly Scalar[],
  dtype: DType,
  range: readonly [bigint, bigint],
): Uint8Array<ArrayBuffer> {
  const wide = BigInt64Array.from(flat, (x) => toInteger(x, dtype, range));
  const size = itemSize(dtype);
  if (size === 8) return bytesOf(wide);
  const narrow = new Uint8Array(wide.length * size); // the low bytes of each, little-endian
  const all = bytesOf(wide);
  for (let i = 0; i < narrow.length; i++) narrow[i] = all[((i / size) | 0) * 8 + (i % size)] ?? 0;
  return narrow;
}

/** Nested arrays as bytes. Throws ShapeError, DTypeError, OverflowError. */
export function pack(data: NestedData, requested?: DType): Packed {
  const { flat, shape } = flatten(data, ragged);
  const natural = dtypeOf(flat);
  const dtype = requested ?? natural;
  if (dtype === "bool") {
    return { bytes: Uint8Array.from(flat, (x) => (x ? 1 : 0)), dtype, shape };
  }
  const range = RANGES[dtype];
  if (range !== undefined) return { bytes: integers(flat, dtype, range), dtype, shape };
  const floats = flat.map(Number);
  if (dtype === "float32") return { bytes: bytesOf(Float32Array.from(floats)), dtype, shape };
  const wide = bytesOf(Float64Array.from(floats));
  return { bytes: wide, dtype: "float64", shape, ...(dtype !== "float64" && { cast: dtype }) };
}

/** Nested arrays as bytes; numbers as float64, from which every dtype can be made. */
export function packNumbers(data: NestedData): Packed {
  const { flat } = flatten(data, ragged);
  return pack(data, dtypeOf(flat) === "float32" ? "float64" : undefined);
}

/** A typed array, or raw bytes of `dtype`. Throws DTypeError. */
export function packArray(data: TypedArray | ArrayBuffer | DataView, requested?: DType): Packed {
  if (isTypedArray(data)) {
    const dtype = dtypeOfArray(data);
    const cast = requested !== undefined && requested !== dtype ? { cast: requested } : {};
    return { bytes: bytesOf(data), dtype, shape: [data.length], ...cast };
  }
  const view =
    data instanceof DataView
      ? new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength)
      : new Uint8Array(data);
  const dtype = requested ?? "uint8";
  const size = itemSize(dtype);
  if (view.length % size) {
    throw new ShapeError(`data: expected a multiple of ${size} bytes for ${dtype}, got ${view.length}`);
  }
  return { bytes: view, dtype, shape: [view.length / size] };
}

/** Data of any kind as bytes. Throws ShapeError, DTypeError, OverflowError. */
export function packAny(
  data: NestedData | TypedArray | ArrayBuffer | DataView,
  dtype: DType | undefined,
): Packed {
  if (isTypedArray(data) || data instanceof ArrayBuffer || data instanceof DataView) {
    return packArray(data, dtype);
  }
  return pack(data, dtype);
}
