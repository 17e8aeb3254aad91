/** Tensors from JavaScript data. */

import { wrap } from "./calls";
import { packAny, type NestedData, type Packed } from "./data";
import { toDType, type DTypeName, type TypedArray } from "./dtypes";
import { ArgumentError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { Handle, handlesIn } from "./handle";
import { knownOf, UNKNOWN, type Known } from "./known";
import type { Session } from "./session";

/**
 * Data for a tensor: numbers, booleans and bigints, arrays of them (or of tensors), typed arrays, raw bytes of `dtype`
 * (an ArrayBuffer or DataView), another tensor.
 */
export type TensorData = NestedData | TypedArray | ArrayBuffer | DataView | Tensor | readonly Tensor[];

/** Options of a new tensor. */
export interface TensorOptions<N extends DTypeName = DTypeName> {
  /** By default, numbers become float32, booleans bool, bigints int64, and typed arrays keep their dtype. */
  readonly dtype?: N | undefined;
  /** The device; by default the default device. */
  readonly device?: string | undefined;
  /** The shape; by default that of the data. */
  readonly shape?: readonly number[] | undefined;
  /** Whether gradients flow to it; by default an optimizer decides. */
  readonly requiresGrad?: boolean | undefined;
}

/** A new tensor: its number, and what is known of it. */
export interface MadeTensor {
  readonly number: number;
  readonly properties: Known;
}

/** Make a tensor. Throws ShapeError, DTypeError, OverflowError, DeviceError. */
export function makeTensor(session: Session, data: TensorData, options: TensorOptions = {}): MadeTensor {
  const { device, requiresGrad, shape } = options;
  const dtype = options.dtype === undefined ? undefined : toDType(options.dtype);
  const nested = Array.isArray(data) && handlesIn(data).length > 0;
  if (data instanceof Handle || nested) {
    if (shape !== undefined) {
      throw new ArgumentError(
        "Tensor: expected the shape of the given tensors, got an option: use reshape()",
      );
    }
    const number = session.call("$tensor", [data], { device, dtype, requires_grad: requiresGrad });
    const source = data instanceof Handle ? knownOf(data) : undefined;
    const copied = dtype ?? source?.dtype;
    return {
      number,
      properties: { ...(source?.shape && { shape: source.shape }), ...(copied && { dtype: copied }) },
    };
  }
  const made = packAny(data as NestedData, dtype);
  const given = shape ?? made.shape;
  const number = session.make(made.bytes, made.dtype, given, {
    ...(device !== undefined && { device }),
    ...(requiresGrad !== undefined && { requiresGrad }),
    ...(made.cast !== undefined && { cast: made.cast }),
  });
  const properties = {
    ...(given.every((size) => size >= 0) && { shape: given }),
    dtype: made.cast ?? made.dtype,
    ...(device === undefined && { device: session.device }),
  };
  return { number, properties: session.transport.synchronous ? UNKNOWN : properties };
}

/** A tensor of elements. */
export function tensorOfPacked(session: Session, { bytes, dtype, shape, cast }: Packed): Tensor {
  const number = session.make(bytes, dtype, shape, cast === undefined ? {} : { cast });
  const properties = { shape, dtype: cast ?? dtype, device: session.device };
  return wrap(session, number, session.transport.synchronous ? UNKNOWN : properties);
}

/** A tensor of data. Throws ShapeError, DTypeError, OverflowError, DeviceError. */
export function tensorOf(session: Session, data: TensorData, options?: TensorOptions): Tensor {
  const { number, properties } = makeTensor(session, data, options);
  return wrap(session, number, properties);
}

/** An image's elements: 8 bits for each of red, green, blue and alpha, row by row. */
export interface Pixels {
  readonly data: Uint8Array | Uint8ClampedArray;
  readonly width: number;
  readonly height: number;
}

/** A uint8 tensor of shape [height, width, channels]; 4 channels, or 3 without alpha. */
export function tensorOfPixels(session: Session, { data, width, height }: Pixels, channels: 3 | 4): Tensor {
  const bytes = new Uint8Array(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
  if (bytes.length !== width * height * 4) {
    throw new ArgumentError(
      `fromImage: expected ${width} x ${height} pixels of 4 bytes, got ${bytes.length} bytes`,
    );
  }
  const shape = [height, width, 4];
  const all = wrap(session, session.make(bytes, "uint8", shape), { shape, dtype: "uint8" });
  if (channels === 4) return all;
  const colours = all.at("...", "0:3");
  all.dispose();
  return colours;
}
