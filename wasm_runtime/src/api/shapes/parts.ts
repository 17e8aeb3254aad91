/** The shapes of the parts that a tensor of a known shape is divided into, so that their number is known at once. */

import type { Known } from "../known";
import { result, type Arguments, type ManyRule } from "./rule";
import { axisOf, isInteger, type Shape } from "./sizes";

/** The shapes of the parts; undefined for arguments that Python refuses. */
type PartsRule = (shape: Shape, args: Arguments) => readonly Shape[] | undefined;

/** Parts of so many elements along an axis. */
function along(shape: Shape, axis: number, sizes: readonly number[]): readonly Shape[] {
  return sizes.map((size) => shape.map((n, i) => (i === axis ? size : n)));
}

/** `n` elements in parts of `size`, of which the last may be smaller; one part where there are none. */
function inPartsOf(size: number, n: number): number[] {
  const count = Math.max(Math.ceil(n / size), 1);
  return Array.from({ length: count }, (_, i) => Math.min(size, n - i * size));
}

const PARTS: Readonly<Record<string, PartsRule>> = {
  "Tensor.unbind": (shape, args) => {
    const axis = axisOf(args.get(1, "dim") ?? 0, shape.length);
    if (axis === undefined) return undefined;
    return Array<Shape>(shape[axis] ?? 0).fill(shape.filter((_, i) => i !== axis));
  },
  "Tensor.split": (shape, args) => {
    const [sizes, axis] = [args.get(1, "sizes"), axisOf(args.get(2, "dim") ?? 0, shape.length)];
    if (axis === undefined) return undefined;
    const n = shape[axis] ?? 0;
    if (isInteger(sizes)) return sizes > 0 ? along(shape, axis, inPartsOf(sizes, n)) : undefined;
    if (!Array.isArray(sizes) || !sizes.every((size) => isInteger(size) && size >= 0)) return undefined;
    const numbers = sizes as readonly number[];
    return numbers.reduce((a, b) => a + b, 0) === n ? along(shape, axis, numbers) : undefined;
  },
  "Tensor.chunk": (shape, args) => {
    const [chunks, axis] = [args.get(1, "chunks"), axisOf(args.get(2, "dim") ?? 0, shape.length)];
    if (axis === undefined || !isInteger(chunks) || chunks <= 0) return undefined;
    const n = shape[axis] ?? 0;
    const sizes = n > 0 ? inPartsOf(Math.ceil(n / chunks), n) : Array<number>(chunks).fill(0);
    return along(shape, axis, sizes);
  },
};

/** What is known of each part that `name` divides a tensor of this shape into; undefined where Python refuses to. */
export function knownParts(name: string, shape: Shape, args: Arguments): Known[] | undefined {
  const x = args.known(0);
  return PARTS[name]?.(shape, args)?.map((part) => result(x, part, x.dtype));
}

/** The rules of these methods for a tensor whose shape is known. */
export const PARTS_RULES: Readonly<Record<string, ManyRule>> = Object.fromEntries(
  Object.keys(PARTS).map((name) => [
    name,
    (args: Arguments) => {
      const shape = args.shape(0);
      return shape && knownParts(name, shape, args);
    },
  ]),
);
