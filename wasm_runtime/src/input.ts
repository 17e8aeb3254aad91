/** JavaScript data as the elements of an input, parameter or state of an exported model. */

import { ARRAYS, flatten, type DType, type NestedData, type TensorData, type TypedArray } from "./arrays";
import { ProgramError } from "./errors";
import type { Size } from "./program";

/** An input, output, parameter or state. A size is a number, or the name of a Variable. */
export interface TensorSpec {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: readonly Size[];
}

/** Elements in row-major order. */
export interface TensorValue {
  readonly data: TensorData;
  readonly shape: readonly number[];
  readonly dtype: DType;
}

const SCALARS: readonly string[] = ["number", "bigint", "boolean"];

/** Data for a tensor: elements in row-major order, elements with their shape, or nested arrays. */
export type TensorInput =
  TypedArray | NestedData | { readonly data: TypedArray; readonly shape: readonly number[] };

/** Elements of the right dtype; `shape` is undefined where only their number is known. */
interface Elements {
  readonly data: TypedArray;
  readonly shape: readonly number[] | undefined;
}

/** The elements of `value`, which are of the dtype of `spec`. Throws ProgramError. */
export function elementsOf(spec: TensorSpec, value: TensorInput | undefined): Elements {
  if (Array.isArray(value) || SCALARS.includes(typeof value)) {
    return converted(spec, value as NestedData);
  }
  const given = value as TypedArray | { data?: unknown; shape?: unknown } | null | undefined;
  if (ArrayBuffer.isView(given)) return { data: checked(spec, given), shape: undefined };
  const { data, shape } = given ?? {};
  if (!Array.isArray(shape) || !shape.every((n) => Number.isSafeInteger(n))) {
    throw new ProgramError(
      `${spec.name}: expected a typed array, nested arrays, or { data, shape }, got ${describe(value)}`,
    );
  }
  return { data: checked(spec, data), shape: shape as number[] };
}

/**
 * The shape of `elements`, which has to match `spec`. Variables whose values follow from it are added to `variables`.
 * Throws ProgramError.
 */
export function resolve(
  spec: TensorSpec,
  { data, shape }: Elements,
  variables: Record<string, number>,
): readonly number[] {
  if (shape === undefined) infer(spec, data.length, variables);
  const sizes = shape ?? resolved(spec, variables);
  const fits =
    sizes.length === spec.shape.length &&
    sizes.every((n, i) => {
      const expected = spec.shape[i] ?? 0;
      return n === (typeof expected === "string" ? (variables[expected] ??= n) : expected);
    });
  const count = sizes.reduce((a, b) => a * b, 1);
  if (!fits || count !== data.length) {
    const bound = Object.entries(variables).map(([name, value]) => `${name} = ${value}`);
    throw new ProgramError(
      `${spec.name}: expected shape [${spec.shape.join(", ")}]${bound.length ? ` with ${bound.join(", ")}` : ""}, ` +
        `got ${shape ? `[${shape.join(", ")}] and ` : ""}${data.length} elements`,
    );
  }
  return sizes;
}

/** A shape in numbers. Throws ProgramError when a Variable has none. */
export function resolved(spec: TensorSpec, variables: Readonly<Record<string, number>>): number[] {
  return spec.shape.map((size) => {
    const n = typeof size === "string" ? variables[size] : size;
    if (n === undefined) {
      throw new ProgramError(
        `${spec.name}: expected Variable ${size}, got none: give it by its name, or the input as { data, shape }`,
      );
    }
    return n;
  });
}

/** Add the Variable of a shape whose value follows from the number of elements, if only one is unknown. */
function infer({ shape }: TensorSpec, count: number, variables: Record<string, number>): void {
  const unknown = shape.filter((n) => typeof n === "string" && variables[n] === undefined);
  const [name] = unknown;
  if (unknown.length !== 1 || typeof name !== "string") return;
  const others = shape.reduce<number>((product, n) => {
    return product * (typeof n === "string" ? (variables[n] ?? 1) : n);
  }, 1);
  if (others > 0 && count % others === 0) variables[name] = count / others;
}

function checked(spec: TensorSpec, data: unknown): TypedArray {
  const array = ARRAYS[spec.dtype];
  if (data instanceof array) return data;
  if (spec.dtype === "uint8" && data instanceof Uint8ClampedArray) return data;
  throw new ProgramError(
    `${spec.name}: expected ${spec.dtype} in a ${array.name}, got ${describe(data)}: convert it`,
  );
}

/** Nested arrays as elements. Throws ProgramError for ragged ones, and for numbers that the dtype cannot hold. */
function converted(spec: TensorSpec, value: NestedData): Elements {
  const { name, dtype } = spec;
  const { flat, shape } = flatten(value, (depth, expected, got) => {
    return new ProgramError(`${name}: expected arrays of ${expected} at depth ${depth}, got ${got}`);
  });
  if (dtype === "float16" || dtype === "bfloat16") {
    throw new ProgramError(`${name}: expected the bits of ${dtype} in a Uint16Array, got numbers`);
  }
  const data = new ARRAYS[dtype](flat.length);
  flat.forEach((x, i) => {
    const number = typeof x === "boolean" ? Number(x) : x;
    if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
      if (typeof number === "bigint" || Number.isInteger(number)) data[i] = BigInt(number);
    } else data[i] = Number(number);
    // An integer is kept as it is; 1n equals 1.
    const isKept = dtype.startsWith("float") || (data[i] == number && (dtype !== "bool" || number <= 1));
    if (!SCALARS.includes(typeof x) || !isKept) {
      throw new ProgramError(`${name}: expected elements that ${dtype} holds, got ${String(x)}`);
    }
  });
  return { data, shape };
}

function describe(value: unknown): string {
  return typeof value === "object" && value !== null ? value.constructor.name : String(value);
}
