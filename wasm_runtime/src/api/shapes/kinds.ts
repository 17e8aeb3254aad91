/** The rules of kinds of operations. `table.ts` says which operations they are for. */

import { findDType, type DType } from "../dtypes";
import { Handle } from "../handle";
import {
  dtypeOption,
  isFloat,
  knownOfValue,
  operandDType,
  promoted,
  result,
  shapeIn,
  type Arguments,
  type Rule,
} from "./rule";
import {
  axesOf,
  axisOf,
  broadcast,
  equal,
  isInteger,
  matrixProduct,
  reshaped,
  windowed,
  withoutAxes,
  type Shape,
} from "./sizes";

/** A function of each element, or of elements in their places: none of its options changes what is known. */
export const elementwise =
  (dtype: (x: DType | undefined) => DType | undefined = (x) => x): Rule =>
  (args) => {
    args.allOptions();
    return result(args.known(0), args.shape(0), dtype(args.known(0).dtype));
  };

export const same = elementwise();
export const floats = elementwise((x) => (isFloat(x) ? x : undefined));
export const truth = elementwise(() => "bool");

export const binary =
  (dtype: (common: DType | undefined) => DType | undefined): Rule =>
  (args) => {
    const [x, other] = [args.known(0), args.positional[1]];
    return result(x, broadcast(args.shape(0), args.shape(1)), dtype(operandDType(x, other)));
  };

export const arithmetic = binary((common) => common);
export const division = binary((common) => (isFloat(common) ? common : undefined));
export const comparison = binary(() => "bool");

/** A reduction with `axis` at position `at`, and `keepdim` behind it. */
export const reduction =
  (dtype: (x: DType | undefined) => DType | undefined, at = 1): Rule =>
  (args) => {
    const shape = args.shape(0);
    const axes = shape && axesOf(args.get(at, "axis"), shape.length);
    const own = dtype(args.known(0).dtype);
    return result(
      args.known(0),
      axes && withoutAxes(shape, axes, args.get(at + 1, "keepdim")),
      args.get(at + 2, "dtype") === undefined ? own : undefined,
    );
  };

export const extremum = reduction((x) => x);
export const floatReduction = reduction((x) => (isFloat(x) ? x : undefined));

/** A loss: one element, unless its `reduction` is "none". `dtype`: of the predictions' dtype and the targets'. */
export const loss =
  (dtype: (x: DType | undefined, y: DType | undefined) => DType | undefined): Rule =>
  (args) => {
    const given = [...args.positional.slice(2), ...args.allOptions()];
    if (given.includes("none")) return undefined;
    const common = dtype(args.known(0).dtype, args.known(1).dtype);
    const isWeighted = given.some((x) => x instanceof Handle);
    return result(args.known(0), [], isFloat(common) && !isWeighted ? common : undefined);
  };

/** A movement of elements, whose dtype stays. */
export const movement =
  (move: (shape: Shape, args: Arguments) => Shape | undefined): Rule =>
  (args) => {
    const shape = args.shape(0);
    return result(args.known(0), shape && move(shape, args), args.known(0).dtype);
  };

export const toShape = movement((shape, args) => {
  const sizes = args.sizes(1);
  return sizes && reshaped(shape, sizes);
});

export const expanded = movement((shape, args) => {
  const sizes = args.sizes(1, -1);
  if (sizes === undefined || sizes.length < shape.length) return undefined;
  const added = sizes.length - shape.length;
  const out = sizes.map((size, i) => (size === -1 ? (shape[i - added] ?? 1) : size));
  return out.every((size, i) => [size, 1].includes(shape[i - added] ?? 1)) ? out : undefined;
});

export const swapped = movement((shape, args) => {
  const first = axisOf(args.get(1, "dim0") ?? 1, shape.length);
  const second = axisOf(args.get(2, "dim1") ?? 0, shape.length);
  if (first === undefined || second === undefined) return undefined;
  return shape.map((size, i) => (i === first ? shape[second] : i === second ? shape[first] : size) ?? size);
});

export const transposed = movement((shape) => (shape.length > 2 ? undefined : [...shape].reverse()));

/** The property `T`. */
export const matrixTransposed = movement((shape) =>
  shape.length < 2 ? undefined : [...shape.slice(0, -2), ...shape.slice(-2).reverse()],
);

export const joined =
  (join: (shapes: readonly Shape[], dim: unknown) => Shape | undefined): Rule =>
  (args) => {
    const parts = args.positional.map((_, i) => args.shape(i));
    if (parts.length === 0) return undefined;
    const dtypes = args.positional.map((_, i) => args.known(i).dtype);
    const shape = parts.every((part) => part !== undefined)
      ? join(parts, args.option("dim") ?? 0)
      : undefined;
    return result(
      args.known(0),
      shape,
      dtypes.reduce((a, b) => promoted(a, b)),
    );
  };

export const catenation = joined((shapes, dim) => {
  const [first = []] = shapes;
  const axis = axisOf(dim, first.length);
  const fits = shapes.every(
    (s) => s.length === first.length && s.every((n, i) => i === axis || n === first[i]),
  );
  if (axis === undefined || !fits) return undefined;
  return first.map((size, i) => (i === axis ? shapes.reduce((sum, s) => sum + (s[axis] ?? 0), 0) : size));
});

export const stacked = joined((shapes, dim) => {
  const [first = []] = shapes;
  const axis = axisOf(dim, first.length + 1);
  if (axis === undefined || !shapes.every((s) => equal(s, first))) return undefined;
  return [...first.slice(0, axis), shapes.length, ...first.slice(axis)];
});

export const matmul: Rule = (args) => {
  const [a, b] = [args.shape(0), args.shape(1)];
  if (args.get(2, "dtype") !== undefined) return undefined;
  return result(
    args.known(0),
    a && b && matrixProduct(a, b),
    operandDType(args.known(0), args.positional[1]),
  );
};

/** A tensor made of nothing but its shape: all positional arguments. `dtype`: without the option. */
export const filled =
  (dtype: DType | undefined, sizes = (args: Arguments): Shape | undefined => args.sizes(0)): Rule =>
  (args) => {
    const option = args.option("dtype");
    const own = typeof option === "string" ? findDType(option) : option === undefined ? dtype : undefined;
    return result(args.option("device") === undefined ? { device: DEFAULT } : {}, sizes(args), own);
  };

/** Stands for the default device, whose name the session knows. */
export const DEFAULT = "";

export const like: Rule = (args) =>
  args.allOptions().every((option) => option === undefined) ? same(args) : shapeOnly(args);

/** A copy on another device, whose name Python may write in another way. */
export const moved: Rule = (args) => result({}, args.shape(0), args.known(0).dtype);

export const shapeOnly: Rule = (args) => result({}, args.shape(0), undefined);

export const sequence: Rule = (args) => {
  const [start, stop] = [args.positional[0], args.get(1, "stop")];
  const step = args.get(2, "step") ?? 1;
  const [first, last] = stop === undefined ? [0, start] : [start, stop];
  if (!isInteger(first) || !isInteger(last) || !isInteger(step) || step === 0) return undefined;
  if (Math.max(Math.abs(first), Math.abs(last), Math.abs(step)) > 0x7fffffff) return undefined;
  const known = args.get(4, "device") === undefined ? { device: DEFAULT } : {};
  return result(known, [Math.max(0, Math.ceil((last - first) / step))], dtypeOption(args, 3, "int32"));
};

export const identity: Rule = (args) => {
  const [rows, columns] = [args.positional[0], args.get(1, "m") ?? args.positional[0]];
  if (!isInteger(rows) || !isInteger(columns)) return undefined;
  const known = args.get(3, "device") === undefined ? { device: DEFAULT } : {};
  return result(known, [rows, columns], dtypeOption(args, 2, "float32"));
};

export const convolution: Rule = (args) => {
  const [shape, weight] = [args.shape(0), args.shape(1)];
  if (shape === undefined || weight?.length !== shape.length || weight.length < 3) return undefined;
  const window = {
    kernel: weight.slice(2),
    stride: args.get(4, "stride") ?? 1,
    dilation: args.get(5, "dilation") ?? 1,
    padding: args.get(6, "padding") ?? 0,
  };
  const sizes = windowed(shape.slice(2), window);
  const channels = (weight[1] ?? 0) * Number(args.get(3, "groups") ?? 1);
  if (!sizes || channels !== shape[1] || args.get(7, "dtype") !== undefined) return undefined;
  return result(args.known(0), [shape[0] ?? 0, weight[0] ?? 0, ...sizes], productDType(args));
};

/** The dtype of a product of the first two arguments, with the bias at position 2. */
function productDType(args: Arguments): DType | undefined {
  const [bias, dtype] = [args.get(2, "bias"), promoted(args.known(0).dtype, args.known(1).dtype)];
  return bias === undefined ? dtype : promoted(dtype, knownOfValue(bias).dtype);
}

/** `x @ weight + bias`. */
export const linear: Rule = (args) => {
  const [x, weight, bias] = [args.shape(0), args.shape(1), args.get(2, "bias")];
  if (!x || weight?.length !== 2 || args.get(3, "dtype") !== undefined) return undefined;
  const added = bias === undefined ? [] : shapeIn(knownOfValue(bias));
  return result(args.known(0), broadcast(matrixProduct(x, weight), added), productDType(args));
};

/** Attention, whose leading axes are those of queries, keys, values and mask, expanded to each other. */
export const attention: Rule = (args) => {
  const [query, key, value, mask] = [args.shape(0), args.shape(1), args.shape(2), args.get(3, "attn_mask")];
  const size = value?.at(-1);
  if (!query || !key || !value || size === undefined || query.length < 2) return undefined;
  const parts = [query, key, value, mask === undefined ? [] : shapeIn(knownOfValue(mask))];
  const leading = broadcast(...parts.map((part) => part?.slice(0, -2)));
  const dtype = [1, 2].reduce((common, i) => promoted(common, args.known(i).dtype), args.known(0).dtype);
  return result(
    args.known(0),
    leading && [...leading, ...query.slice(-2, -1), size],
    isFloat(dtype) ? dtype : undefined,
  );
};

export const pooling: Rule = (args) => {
  const shape = args.shape(0);
  const given = args.get(1, "kernel_size") ?? [2, 2];
  const kernel = isInteger(given) ? [given, given] : given;
  if (!shape || !Array.isArray(kernel) || !kernel.every(isInteger)) return undefined;
  if (![undefined, false].includes(args.get(5, "ceil_mode") as boolean | undefined)) return undefined;
  const sizes = windowed(shape.slice(-kernel.length), {
    kernel,
    stride: args.get(2, "stride") ?? kernel,
    dilation: args.get(3, "dilation") ?? 1,
    padding: args.get(4, "padding") ?? 0,
  });
  if (!sizes || shape.length < kernel.length) return undefined;
  const { dtype } = args.known(0);
  return result(
    args.known(0),
    [...shape.slice(0, -kernel.length), ...sizes],
    isFloat(dtype) ? dtype : undefined,
  );
};
