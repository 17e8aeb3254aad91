/** Indices of `Tensor.at` and `Tensor.setAt`. */

import type { Handle } from "./handle";

/** The elements start, start + step, ... before stop; `null` is the axis's end on that side. */
export class Slice {
  constructor(
    readonly start: number | Handle | null,
    readonly stop: number | Handle | null,
    readonly step: number | null,
  ) {}
}

/** `...` among indices: all axes that the other indices leave. */
export const ELLIPSIS = Symbol("...");

type Bound = number | "";

/** A slice as text, as Python writes it: "1:3", ":", "::2", "-1:". */
export type SliceText = `${Bound}:${Bound}` | `${Bound}:${Bound}:${Bound}`;

/** The elements from `start` up to but not including `stop`, every `step`-th. */
export function slice(
  start: number | Handle | null = null,
  stop: number | Handle | null = null,
  step: number | null = null,
): Slice {
  return new Slice(start, stop, step);
}

/** The slice that a text describes, or undefined. */
export function parseSlice(text: string): Slice | undefined {
  if (!/^\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(:\s*(-?\d+)?\s*)?$/.test(text)) return undefined;
  const [start = null, stop = null, step = null] = text
    .split(":")
    .map((part) => (part.trim() === "" ? null : Number(part)));
  return new Slice(start, stop, step);
}
