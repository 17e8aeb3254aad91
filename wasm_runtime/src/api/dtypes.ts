/** Elements in JavaScript: the typed array of a dtype, and single elements as numbers, booleans or bigints. */

import { ARRAYS, DTYPES, isDType, type DType, type Scalar, type TypedArray as AnyArray } from "../arrays";
import { DTypeError } from "./generated/errors";

export type { DType, Scalar } from "../arrays";

const ALIASES = {
  half: "float16",
  float: "float32",
  double: "float64",
  char: "int8",
  short: "int16",
  int: "int32",
  long: "int64",
  uchar: "uint8",
  ushort: "uint16",
  uint: "uint32",
  ulong: "uint64",
} as const satisfies Record<string, DType>;

/** A dtype by its name, or by its name in C. */
export type DTypeName = DType | keyof typeof ALIASES;

/** The dtype that a name stands for. */
export type DTypeOf<N extends DTypeName> = N extends keyof typeof ALIASES
  ? (typeof ALIASES)[N]
  : Extract<N, DType>;

interface Elements {
  readonly bool: boolean;
  readonly int64: bigint;
  readonly uint64: bigint;
}

/** One element of a tensor of dtype `D`. */
export type ElementOf<D extends DType> = D extends keyof Elements ? Elements[D] : number;

interface Arrays {
  readonly bool: Uint8Array<ArrayBuffer>;
  readonly int8: Int8Array<ArrayBuffer>;
  readonly uint8: Uint8Array<ArrayBuffer>;
  readonly int16: Int16Array<ArrayBuffer>;
  readonly uint16: Uint16Array<ArrayBuffer>;
  readonly int32: Int32Array<ArrayBuffer>;
  readonly uint32: Uint32Array<ArrayBuffer>;
  readonly int64: BigInt64Array<ArrayBuffer>;
  readonly uint64: BigUint64Array<ArrayBuffer>;
  /** A Float16Array where the engine has one. */
  readonly float16: TypedArray;
  readonly bfloat16: Uint16Array<ArrayBuffer>;
  readonly float32: Float32Array<ArrayBuffer>;
  readonly float64: Float64Array<ArrayBuffer>;
}

/** The typed array of dtype `D`. */
export type ArrayOf<D extends DType> = Arrays[D];

/** The result of `data()`. float16 is a Float16Array where the engine has one, else its bits; bfloat16 is its bits. */
export type TypedArray = AnyArray<ArrayBuffer>;

/** Elements of type `E` in arrays nested to the shape; a single element for shape []. */
export type NestedOf<E> = E | NestedOf<E>[];

export type Nested = NestedOf<Scalar>;

interface ArrayType {
  new (buffer: ArrayBuffer, byteOffset?: number, length?: number): TypedArray;
  readonly name: string;
  readonly BYTES_PER_ELEMENT: number;
}

const HALF = (globalThis as { Float16Array?: ArrayType }).Float16Array;

/** The arrays of each dtype, in this engine. */
const OWN_ARRAYS: Readonly<Record<DType, ArrayType>> = { ...ARRAYS, ...(HALF && { float16: HALF }) };

const DTYPES_OF_ARRAYS: Record<string, DType> = {
  Int8Array: "int8",
  Uint8Array: "uint8",
  Uint8ClampedArray: "uint8",
  Int16Array: "int16",
  Uint16Array: "uint16",
  Int32Array: "int32",
  Uint32Array: "uint32",
  BigInt64Array: "int64",
  BigUint64Array: "uint64",
  Float16Array: "float16",
  Float32Array: "float32",
  Float64Array: "float64",
};

/** The dtype of this name, or undefined. */
export function findDType(name: string): DType | undefined {
  const dtype = (ALIASES as Record<string, DType | undefined>)[name] ?? name;
  return isDType(dtype) ? dtype : undefined;
}

/** The dtype of this name. Throws DTypeError. */
export function toDType(name: DTypeName): DType {
  const dtype = findDType(name);
  if (dtype === undefined) {
    throw new DTypeError(`dtype: expected one of ${DTYPES.join(", ")}, got ${JSON.stringify(name)}`);
  }
  return dtype;
}

export function isTypedArray(x: unknown): x is TypedArray {
  return ArrayBuffer.isView(x) && !(x instanceof DataView);
}

/** The dtype that an array's elements have. */
export function dtypeOfArray(array: TypedArray): DType {
  const name = Object.prototype.toString.call(array).slice(8, -1);
  const dtype = DTYPES_OF_ARRAYS[name];
  if (dtype === undefined) throw new TypeError(`polygrad: expected a typed array, got ${name}`);
  return dtype;
}

/** The bytes of a tensor as a typed array. */
export function asArray(bytes: ArrayBuffer, dtype: DType): TypedArray {
  return new OWN_ARRAYS[dtype](bytes);
}

/** The number whose IEEE 754 half-precision bits these are. */
export function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

const word = new DataView(new ArrayBuffer(4));

function bfloatToNumber(bits: number): number {
  word.setUint32(0, bits << 16);
  return word.getFloat32(0);
}

/** A function that reads an element of the typed array. */
export function reader(dtype: DType): (x: number | bigint) => Scalar {
  if (dtype === "bool") return (x) => x !== 0;
  if (dtype === "bfloat16") return (x) => bfloatToNumber(Number(x));
  if (dtype === "float16" && HALF === undefined) return (x) => halfToNumber(Number(x));
  return (x) => x;
}

/** The elements of a tensor, nested to its shape. */
export function nest(array: TypedArray, dtype: DType, shape: readonly number[]): Nested {
  const read = reader(dtype);
  let flat: Nested[] = Array.from(array as Iterable<number | bigint>, read);
  for (let axis = shape.length - 1; axis > 0; axis--) {
    const size = shape[axis] ?? 0;
    const count = shape.slice(0, axis).reduce((a, b) => a * b, 1);
    const rows = flat;
    flat = Array.from({ length: count }, (_, i) => rows.slice(i * size, (i + 1) * size));
  }
  return shape.length === 0 ? (flat[0] ?? 0) : flat;
}
