/**
 * What this side knows of tensors without asking Python, and of the objects that make them. In a worker's session
 * `shapes/infer.ts` computes it when an operation is sent. Symbols keep it apart from what users call their own properties.
 */

import type { DType } from "./dtypes";
import type { Options } from "./encode";

/** Properties of a tensor. A size that is symbolic is text. */
export interface Known {
  readonly shape?: readonly (number | string)[];
  readonly dtype?: DType;
  readonly device?: string;
  readonly requires_grad?: boolean | null;
}

export const UNKNOWN: Known = Object.freeze({});

/** The property of tensors that holds a `Known`. */
export const known: unique symbol = Symbol("known");

/** The property of layers that holds the arguments of their constructor. */
export const constructed: unique symbol = Symbol("constructed");

/** Arguments by position, and by their Python names. */
export type Constructed = readonly [args: readonly unknown[], options: Options | undefined];

/** What is known of an object, if it is a tensor. */
export function knownOf(handle: object): Known | undefined {
  return (handle as { [known]?: Known })[known];
}

/** Another part of the program has changed a tensor: what is known of it is its shape. */
export function forgetKnown(handle: object): void {
  const tensor = handle as { [known]: Known };
  const { shape } = tensor[known];
  tensor[known] = shape === undefined ? UNKNOWN : { shape };
}

/** Objects that have got other attributes than their constructor gave them. */
const changed = new WeakSet<object>();

/** An attribute of `handle` was assigned. */
export function attributeAssigned(handle: object): void {
  changed.add(handle);
}

/** What an object was constructed with; undefined once that says nothing of its results. */
export function argumentsOf(handle: object): Constructed | undefined {
  return changed.has(handle) ? undefined : (handle as { [constructed]?: Constructed })[constructed];
}
