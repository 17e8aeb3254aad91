/** Arithmetic of shapes. A function returns undefined where the arguments do not fit: Python says why. */

export type Shape = readonly number[];

export function isInteger(x: unknown): x is number {
  return Number.isSafeInteger(x);
}

/** The shape that all of `shapes` are expanded to; undefined where they do not fit. */
export function broadcast(...shapes: (Shape | undefined)[]): Shape | undefined {
  const out: number[] = [];
  for (const shape of shapes) {
    if (shape === undefined) return undefined;
    for (let i = 1; i <= shape.length; i++) {
      const [size, other] = [shape.at(-i) ?? 1, out[i - 1] ?? 1];
      if (size !== other && size !== 1 && other !== 1) return undefined;
      out[i - 1] = size === 1 ? other : size;
    }
  }
  return out.reverse();
}

/** An axis counted from the front; undefined when there is no such axis. */
export function axisOf(axis: unknown, count: number): number | undefined {
  if (!isInteger(axis) || axis < -count || axis >= count) return undefined;
  return axis < 0 ? axis + count : axis;
}

/** The axes of an argument: one, an array of them, or all. */
export function axesOf(axis: unknown, count: number): readonly number[] | undefined {
  if (axis === undefined) return Array.from({ length: count }, (_, i) => i);
  const axes = (Array.isArray(axis) ? (axis as unknown[]) : [axis]).map((a) => axisOf(a, count));
  return axes.every(isInteger) ? axes : undefined;
}

export const product = (sizes: Shape): number => sizes.reduce((a, b) => a * b, 1);

export function withoutAxes(shape: Shape, axes: readonly number[], keepdim: unknown): Shape | undefined {
  if (keepdim !== undefined && typeof keepdim !== "boolean") return undefined; // Python takes any value for one
  if (keepdim) return shape.map((size, i) => (axes.includes(i) ? 1 : size));
  return shape.filter((_, i) => !axes.includes(i));
}

/** `sizes` with its -1 computed; undefined where they do not hold the elements of `shape`. */
export function reshaped(shape: Shape, sizes: Shape): Shape | undefined {
  const rest = product(sizes.filter((size) => size !== -1));
  const size = product(shape) / rest;
  const out = sizes.map((s) => (s === -1 ? size : s));
  return product(out) === product(shape) && out.every(isInteger) ? out : undefined;
}

export function matrixProduct(a: Shape, b: Shape): Shape | undefined {
  const [rows, columns] = [a.at(-1), b.at(-Math.min(b.length, 2))];
  if (rows === undefined || rows !== columns) return undefined;
  const inner = [...a.slice(-2, -1), ...(b.length > 1 ? b.slice(-1) : [])];
  const outer = broadcast(a.slice(0, -2), b.slice(0, -2));
  return outer && [...outer, ...inner];
}

/** A number for each of `count` axes; undefined for anything but one number, or as many. */
export function perAxis(value: unknown, count: number): readonly number[] | undefined {
  if (isInteger(value)) return Array<number>(count).fill(value);
  if (!Array.isArray(value) || value.length !== count || !value.every(isInteger)) return undefined;
  return value;
}

export interface Window {
  readonly kernel: Shape;
  readonly stride: unknown;
  readonly padding: unknown;
  readonly dilation: unknown;
}

/** Sizes after a convolution or pooling of the last axes. */
export function windowed(sizes: Shape, window: Window): Shape | undefined {
  const { kernel } = window;
  const stride = perAxis(window.stride, kernel.length);
  const padding = perAxis(window.padding, kernel.length);
  const dilation = perAxis(window.dilation, kernel.length);
  if (!stride || !padding || !dilation) return undefined;
  const out = sizes.map((size, i) => {
    const span = (dilation[i] ?? 1) * ((kernel[i] ?? 1) - 1) + 1;
    return Math.floor((size + 2 * (padding[i] ?? 0) - span) / (stride[i] ?? 1)) + 1;
  });
  return out.every((size) => size > 0) ? out : undefined;
}

/** Whether two shapes are the same. */
export const equal = (a: Shape, b: Shape | undefined): boolean => a.join() === b?.join();
