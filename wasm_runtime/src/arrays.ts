/** The typed arrays of dtypes, and JavaScript data as elements. */

import { ProgramError } from "./errors";

/** The typed array of each dtype. 16-bit floats are their bits. */
export const ARRAYS = {
  bool: Uint8Array,
  int8: Int8Array,
  uint8: Uint8Array,
  int16: Int16Array,
  uint16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
} as const;

export type DType = keyof typeof ARRAYS;
export type TensorData = InstanceType<(typeof ARRAYS)[DType]>;

export const DTYPES = Object.keys(ARRAYS) as readonly DType[];

export function isDType(name: string): name is DType {
  return Object.hasOwn(ARRAYS, name);
}

/** The dtype called `name`. Throws ProgramError for an unknown name. */
export function dtypeOf(name: string, subject: string): DType {
  if (!isDType(name)) {
    throw new ProgramError(`${subject}: expected one of ${DTYPES.join(", ")}, got ${name}`);
  }
  return name;
}

/** Bytes per element. */
export function itemSize(dtype: DType): number {
  return ARRAYS[dtype].BYTES_PER_ELEMENT;
}

/** Arrays of elements, over memory of the kind `Buffer`. */
export type TypedArray<Buffer extends ArrayBufferLike = ArrayBufferLike> =
  | Int8Array<Buffer>
  | Uint8Array<Buffer>
  | Uint8ClampedArray<Buffer>
  | Int16Array<Buffer>
  | Uint16Array<Buffer>
  | Int32Array<Buffer>
  | Uint32Array<Buffer>
  | Float32Array<Buffer>
  | Float64Array<Buffer>
  | BigInt64Array<Buffer>
  | BigUint64Array<Buffer>;

/** One element: int64 and uint64 are bigints, bool is a boolean. */
export type Scalar = number | bigint | boolean;

/** Nested arrays, all of one depth and of equal lengths. */
export type NestedData = Scalar | readonly NestedData[];

/**
 * The elements of nested arrays in row-major order, and their shape. For ragged arrays it throws the error that
 * `ragged` makes: at `depth`, an array has the length `got` where the others have `expected`.
 */
export function flatten(
  data: NestedData,
  ragged: (depth: number, expected: number, got: string) => Error,
): { flat: Scalar[]; shape: number[] } {
  const shape: number[] = [];
  let level: readonly NestedData[] = [data];
  while (level.some(Array.isArray)) {
    const rows = level;
    const length = rows.find(Array.isArray)?.length ?? 0;
    for (const row of rows) {
      const got = Array.isArray(row) ? row.length : undefined;
      if (got !== length) throw ragged(shape.length, length, String(got ?? "a scalar"));
    }
    shape.push(length);
    level = (rows as readonly (readonly NestedData[])[]).flat();
  }
  return { flat: level as Scalar[], shape };
}
