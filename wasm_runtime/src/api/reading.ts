/** The elements of tensors: as typed arrays, nested arrays, and single elements; at once where Python is on this thread. */

import {
  asArray,
  nest,
  type ArrayOf,
  type DType,
  type ElementOf,
  type NestedOf,
  type Scalar,
  type TypedArray,
} from "./dtypes";
import { ShapeError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { number, owner } from "./handle";

/** The only element of `array`. Throws ShapeError when there is not exactly one. */
export function onlyElement(array: TypedArray, dtype: DType, shape: readonly number[]): Scalar {
  if (array.length !== 1) {
    throw new ShapeError(
      `item: expected one element, got shape [${shape.join(", ")}]: use tolist() or data()`,
    );
  }
  return nest(array, dtype, []) as Scalar;
}

/** Reads that do not wait, for a session on this thread. */
export interface Reads {
  /** `tensor.data()` at once. Throws DeviceError on devices that answer later. */
  dataSync<D extends DType>(tensor: Tensor<D>): ArrayOf<D>;
  /** `tensor.tolist()` at once; see `dataSync`. */
  tolistSync<D extends DType>(tensor: Tensor<D>): NestedOf<ElementOf<D>>;
  /** `tensor.item()` at once; see `dataSync`. */
  itemSync<D extends DType>(tensor: Tensor<D>): ElementOf<D>;
}

export const READS: Reads = {
  dataSync<D extends DType>(tensor: Tensor<D>) {
    const bytes = tensor[owner].askSync({ kind: "read", handle: tensor[number] });
    return asArray(bytes as ArrayBuffer, tensor.dtype) as ArrayOf<D>;
  },
  tolistSync<D extends DType>(tensor: Tensor<D>) {
    return nest(READS.dataSync(tensor), tensor.dtype, tensor.shape) as NestedOf<ElementOf<D>>;
  },
  itemSync<D extends DType>(tensor: Tensor<D>) {
    return onlyElement(READS.dataSync(tensor), tensor.dtype, tensor.shape) as ElementOf<D>;
  },
};
