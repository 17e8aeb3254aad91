/** The rule of indices: `Tensor.at`. */

import { Handle } from "../handle";
import { ELLIPSIS, Slice } from "../slice";
import { isFloat, knownOfValue, result, shapeIn, type Rule } from "./rule";
import { axisOf, isInteger, type Shape } from "./sizes";

/** The size of `size` elements of which a slice takes some; undefined where a bound is symbolic. */
function sliceSize({ start, stop, step }: Slice, size: number): number | undefined {
  if (start instanceof Handle || stop instanceof Handle) return undefined;
  const stride = step ?? 1;
  if (stride === 0) return undefined;
  const [low, high] = stride > 0 ? [0, size] : [-1, size - 1];
  const clamped = (bound: number): number => Math.max(low, Math.min(bound < 0 ? bound + size : bound, high));
  const first = start === null ? (stride > 0 ? low : high) : clamped(start);
  const last = stop === null ? (stride > 0 ? high : low) : clamped(stop);
  return Math.max(0, Math.ceil((last - first) / stride));
}

export const indexed: Rule = (args) => {
  const [shape, indices] = [args.shape(0), args.positional[1] as readonly unknown[]];
  const used = indices.filter((index) => index !== null && index !== ELLIPSIS).length;
  if (shape === undefined || used > shape.length) return undefined;
  const rest = shape.length - used;
  const full = indices.includes(ELLIPSIS) ? indices : [...indices, ELLIPSIS];
  const out: number[] = [];
  let axis = 0;
  let lists = 0;
  for (const index of full) {
    if (index === null) {
      out.push(1);
    } else if (index === ELLIPSIS) {
      out.push(...shape.slice(axis, axis + rest));
      axis += rest;
    } else {
      const taken = indexSizes(index, shape[axis++] ?? 0);
      if (taken === undefined) return undefined;
      if (!isInteger(index) && !(index instanceof Slice)) lists++;
      out.push(...taken);
    }
  }
  // Several lists are one: where it comes depends on what stands between. A number beside a list is a list, too.
  const isMixed = lists > 1 || (lists === 1 && indices.some(isInteger));
  return isMixed || full.filter((index) => index === ELLIPSIS).length > 1
    ? result(args.known(0), undefined, args.known(0).dtype)
    : result(args.known(0), out, args.known(0).dtype);
};

/** The sizes that one index leaves of an axis. */
function indexSizes(index: unknown, size: number): Shape | undefined {
  if (index instanceof Slice) {
    const length = sliceSize(index, size);
    return length === undefined ? undefined : [length];
  }
  if (isInteger(index)) return axisOf(index, size) === undefined ? undefined : [];
  if (Array.isArray(index) && index.flat(Infinity).some((x) => typeof x === "boolean")) return undefined; // a mask
  const { shape, dtype } = knownOfValue(index);
  if (index instanceof Handle && (dtype === undefined || dtype === "bool" || isFloat(dtype)))
    return undefined;
  return shape && shapeIn({ shape });
}
