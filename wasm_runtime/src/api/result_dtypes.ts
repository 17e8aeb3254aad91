/** The dtypes of results, as types. `scripts/api/result_dtypes.mjs` says which operations they are for. */

import type { DType, DTypeName, DTypeOf, TypedArray } from "./dtypes";
import type { Tensor } from "./generated/tensor";

export type FloatDType = "float16" | "bfloat16" | "float32" | "float64";

/** The dtype of a function of floats: of integers it is a float, too. */
export type FloatOf = { readonly [D in DType]: D extends FloatDType ? D : FloatDType };

/** The dtype of a sum: integers may become wider. */
export type ReducedDType = {
  readonly [D in DType]: D extends FloatDType ? D : Exclude<DType, "bool" | FloatDType>;
};

/** The dtype of a tensor and a number: a number does not change a dtype that can hold it. */
export type WithNumber = { readonly [D in DType]: D extends FloatDType ? D : Exclude<DType, "bool"> };

/** The dtype that two floats are converted to. */
type Wider<D, E> = D extends "float64" ? D : E extends "float64" ? E : D extends E ? D : "float32";

/** The dtype that two dtypes are converted to. */
type Promoted<D extends DType, E extends DType> = D extends FloatDType
  ? E extends FloatDType
    ? Wider<D, E>
    : D
  : E extends FloatDType
    ? E
    : D extends E
      ? D
      : DType;

/** The dtype of an operation on a tensor of dtype `D` and an operand of type `X`. */
export type Operated<D extends DType, X> = X extends number
  ? WithNumber[D]
  : X extends { readonly dtype: infer E extends DType }
    ? Promoted<D, E>
    : DType;

/** The dtype of a typed array. */
type ArrayDType<X> = X extends Float32Array
  ? "float32"
  : X extends Float64Array
    ? "float64"
    : X extends Int8Array
      ? "int8"
      : X extends Uint8Array | Uint8ClampedArray
        ? "uint8"
        : X extends Int16Array
          ? "int16"
          : X extends Uint16Array
            ? "uint16"
            : X extends Int32Array
              ? "int32"
              : X extends Uint32Array
                ? "uint32"
                : X extends BigInt64Array
                  ? "int64"
                  : X extends BigUint64Array
                    ? "uint64"
                    : DType;

/** The dtype of a tensor made of data of type `X`, in `Depth` arrays, without the option `dtype`. */
type DataDType<X, Depth extends unknown[] = []> = Depth["length"] extends 8
  ? DType
  : X extends number
    ? "float32"
    : X extends boolean
      ? "bool"
      : X extends bigint
        ? "int64"
        : X extends TypedArray
          ? ArrayDType<X>
          : X extends Tensor<infer D>
            ? D
            : X extends readonly (infer Y)[]
              ? DataDType<Y, [...Depth, unknown]>
              : DType;

/** The dtype of a tensor made of data of type `X`; `N`: the option `dtype`, or never. */
export type MadeDType<X, N extends DTypeName> = [N] extends [never] ? DataDType<X> : DTypeOf<N>;

/** Options without a dtype. */
export type Undetermined<Options> = Omit<Options, "dtype"> & { readonly dtype?: undefined };
