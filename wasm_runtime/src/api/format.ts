/** Tensors and objects as text, for consoles and logs. */

import { reader, type DType, type TypedArray } from "./dtypes";
import type { Known } from "./known";

/** The method by which Node's `console.log` and `util.inspect` show an object. */
export const inspect: unique symbol = Symbol.for("nodejs.util.inspect.custom");

/** Shows a value: Node's `util.inspect`. */
export type Inspect = (value: unknown, options?: object) => string;

/** Tensors of more elements are shown with the first and last elements of each axis. */
const MAX_ELEMENTS = 1000;
const EDGE = 3;
const OMITTED = "…";

type Tree = string | Tree[];

/** `Tensor [2, 3] float32 on WASM`, as far as it is known. */
export function describeTensor(name: string, { shape, dtype, device }: Known): string {
  const parts = [name, `[${shape?.join(", ") ?? "?"}]`, dtype, device && `on ${device}`];
  return parts.filter((part) => part !== undefined).join(" ");
}

function textOf(x: number | bigint | boolean): string {
  return typeof x === "number" && !Number.isInteger(x) ? String(Number(x.toPrecision(5))) : String(x);
}

/** The elements in row-major order as nested brackets, the columns below each other. */
export function formatElements(array: TypedArray, dtype: DType, shape: readonly number[]): string {
  const read = reader(dtype);
  const shortens = array.length > MAX_ELEMENTS;
  let width = 0;
  const build = (axis: number, offset: number, stride: number): Tree => {
    const size = shape[axis];
    if (size === undefined) {
      const text = textOf(read(array[offset] ?? 0));
      width = Math.max(width, text.length);
      return text;
    }
    const step = size === 0 ? 0 : stride / size;
    const part = (i: number): Tree => build(axis + 1, offset + i * step, step);
    if (!shortens || size <= 2 * EDGE) return Array.from({ length: size }, (_, i) => part(i));
    const first = Array.from({ length: EDGE }, (_, i) => part(i));
    const last = Array.from({ length: EDGE }, (_, i) => part(size - EDGE + i));
    return [...first, OMITTED, ...last];
  };
  const render = (tree: Tree, depth: number): string => {
    if (typeof tree === "string") return tree === OMITTED ? tree : tree.padStart(width);
    const separator = tree.every((part) => typeof part === "string") ? ", " : `,\n${" ".repeat(depth + 1)}`;
    return `[${tree.map((part) => render(part, depth + 1)).join(separator)}]`;
  };
  return render(build(0, 0, array.length), 0);
}
