/** How the elements of each dtype come to JavaScript. The 16-bit floats come as their bits. */

import { ProgramError } from "./errors";

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

/** The dtype called `name`. Throws ProgramError for one that does not exist. */
export function dtypeOf(name: string, subject: string): DType {
  if (!Object.hasOwn(ARRAYS, name)) {
    throw new ProgramError(`${subject}: expected one of ${Object.keys(ARRAYS).join(", ")}, got ${name}`);
  }
  return name as DType;
}
