/** The rules of operations, by the names of the manifest and of the bridge. */

import { Handle } from "../handle";
import { indexed } from "./indices";
import {
  elementwise,
  same,
  floats,
  truth,
  arithmetic,
  division,
  comparison,
  reduction,
  extremum,
  floatReduction,
  loss,
  movement,
  toShape,
  expanded,
  swapped,
  transposed,
  matrixTransposed,
  catenation,
  stacked,
  matmul,
  filled,
  like,
  moved,
  shapeOnly,
  sequence,
  identity,
  convolution,
  linear,
  attention,
  pooling,
} from "./kinds";
import { LAYER_RULES } from "./layers";
import { PARTS_RULES } from "./parts";
import {
  Arguments,
  dtypeOption,
  isFloat,
  operandDType,
  promoted,
  result,
  type ManyRule,
  type Rule,
} from "./rule";
import { axisOf, broadcast, equal, isInteger, product, reshaped } from "./sizes";

/** `rule` for each name. */
function each<R>(rule: R, names: string): Record<string, R> {
  return Object.fromEntries(names.split(" ").map((name) => [`Tensor.${name}`, rule]));
}

/** The rules of operations that give one tensor, by the names of the manifest and of the bridge. */
export const RULES: Readonly<Record<string, Rule>> = {
  ...each(same, "contiguous detach abs absolute neg negative roll flip fliplr flipud as_param"),
  "Tensor.relu": elementwise((x) => (x === "bool" ? undefined : x)),
  ...each(
    floats,
    "sin cos tan asin acos atan sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square sigmoid gelu " +
      "silu swish elu selu softplus mish reciprocal erf sign floor ceil round trunc leaky_relu hardswish hardtanh " +
      "relu6 quick_gelu dropout layernorm logsigmoid softsign cumsum nan_to_num triu tril",
  ),
  ...each(truth, "isnan isinf isfinite logical_not"),
  ...each(arithmetic, "add sub mul subtract multiply maximum minimum"),
  ...each(division, "div divide true_divide pow mod"),
  ...each(comparison, "lt gt le ge eq ne less greater less_equal greater_equal not_equal"),
  ...each(extremum, "max min amax amin"),
  ...each(floatReduction, "sum prod mean logsumexp var std nansum nanmean"),
  ...each(
    reduction(() => "bool"),
    "any all",
  ),
  ...each(
    reduction(() => "int32"),
    "argmax argmin",
  ),
  ...each(
    reduction((x) => (isFloat(x) ? x : undefined), 2),
    "norm",
  ),
  ...each(
    loss((x) => x),
    "cross_entropy nll_loss",
  ),
  ...each(loss(promoted), "mse_loss l1_loss binary_crossentropy binary_crossentropy_logits"),
  ...each(toShape, "reshape view"),
  ...each(expanded, "expand broadcast_to"),
  ...each(swapped, "transpose swapaxes swapdims"),
  ...each(matmul, "matmul dot mm bmm mv"),
  ...each(filled("float32"), "zeros ones empty rand randn normal uniform glorot_uniform kaiming_uniform"),
  ...each(like, "zeros_like ones_like rand_like randn_like full_like empty_like"),
  "Tensor.ravel": movement((shape) => [product(shape)]),
  "Tensor.randint": filled("int32"),
  "Tensor.full": filled(undefined, (args) => new Arguments([args.positional[0]]).sizes(0)),
  "Tensor.clone": (args) => (args.get(1, "device") === undefined ? same(args) : moved(args)),
  "Tensor.arange": sequence,
  "Tensor.eye": identity,
  "Tensor.to": moved,
  "Tensor.cast": (args) => result(args.known(0), args.shape(0), dtypeOption(args, 1, undefined)),
  ...Object.fromEntries(
    (
      [
        ["float", "float32"],
        ["half", "float16"],
        ["double", "float64"],
        ["int", "int32"],
        ["long", "int64"],
        ["bool", "bool"],
      ] as const
    ).map(([name, dtype]) => [`Tensor.${name}`, elementwise(() => dtype)]),
  ),
  "Tensor.softmax": (args) => (args.get(2, "dtype") === undefined ? floats(args) : shapeOnly(args)),
  "Tensor.log_softmax": (args) => (args.get(2, "dtype") === undefined ? floats(args) : shapeOnly(args)),
  "Tensor.clamp": (args) => {
    const bounds = [...args.positional.slice(1), ...args.allOptions()];
    return bounds.every((bound) => (bound ?? undefined) === undefined || typeof bound === "number")
      ? floats(args)
      : undefined;
  },
  "Tensor.where": (args) => {
    const [x, y] = [args.positional[1], args.positional[2]];
    const [known, other] = x instanceof Handle ? [args.known(1), y] : [args.known(2), x];
    const shape = broadcast(args.shape(0), args.shape(1), args.shape(2));
    return result(args.known(0), shape, operandDType(known, other));
  },
  "Tensor.permute": movement((shape, args) => {
    const axes = args.sizes(1)?.map((axis) => axisOf(axis, shape.length));
    if (axes?.length !== shape.length || new Set(axes).size !== shape.length) return undefined;
    return axes.every(isInteger) ? axes.map((axis) => shape[axis] ?? 0) : undefined;
  }),
  "Tensor.t": transposed,
  "Tensor.squeeze": movement((shape, args) => {
    const dim = args.get(1, "dim");
    if (dim === undefined) return shape.filter((size) => size !== 1);
    const axis = axisOf(dim, shape.length);
    return axis === undefined ? undefined : shape.filter((size, i) => i !== axis || size !== 1);
  }),
  "Tensor.unsqueeze": movement((shape, args) => {
    const axis = axisOf(args.get(1, "dim"), shape.length + 1);
    return axis === undefined ? undefined : [...shape.slice(0, axis), 1, ...shape.slice(axis)];
  }),
  "Tensor.flatten": movement((shape, args) => {
    const start = axisOf(args.get(1, "start_dim") ?? 0, shape.length);
    const end = axisOf(args.get(2, "end_dim") ?? -1, shape.length);
    if (start === undefined || end === undefined || end < start) return undefined;
    return [...shape.slice(0, start), product(shape.slice(start, end + 1)), ...shape.slice(end + 1)];
  }),
  "Tensor.reshape_as": movement((shape, args) => {
    const sizes = args.shape(1);
    return sizes && reshaped(shape, sizes);
  }),
  "Tensor.expand_as": movement((shape, args) => {
    const sizes = args.shape(1);
    return equal(sizes ?? [], broadcast(shape, sizes)) ? sizes : undefined;
  }),
  "Tensor.repeat": movement((shape, args) => {
    const counts = args.sizes(1);
    if (!counts || counts.length < shape.length) return undefined;
    const added = counts.length - shape.length;
    return counts.map((count, i) => count * (shape[i - added] ?? 1));
  }),
  "Tensor.pad": movement((shape, args) => {
    const pairs = args.get(1, "padding");
    if (!Array.isArray(pairs) || pairs.length !== shape.length) return undefined;
    const added = pairs.map((pair: unknown) =>
      pair === null
        ? 0
        : Array.isArray(pair) && pair.every(isInteger)
          ? product([(pair[0] ?? 0) + (pair[1] ?? 0)])
          : NaN,
    );
    const out = shape.map((size, i) => size + (added[i] ?? NaN));
    return out.every(isInteger) ? out : undefined;
  }),
  "Tensor.narrow": movement((shape, args) => {
    const [dim, length] = [axisOf(args.get(1, "dim"), shape.length), args.get(3, "length")];
    return dim === undefined || !isInteger(length)
      ? undefined
      : shape.map((s, i) => (i === dim ? length : s));
  }),
  "Tensor.select": movement((shape, args) => {
    const dim = axisOf(args.get(1, "dim"), shape.length);
    return dim === undefined ? undefined : shape.filter((_, i) => i !== dim);
  }),
  "Tensor.cat": catenation,
  "Tensor.stack": stacked,
  "Tensor.linear": linear,
  "Tensor.one_hot": (args) => {
    const [shape, count] = [args.shape(0), args.get(1, "num_classes")];
    return shape && isInteger(count) && count > 0
      ? result(args.known(0), [...shape, count], undefined)
      : undefined;
  },
  "Tensor.conv2d": convolution,
  "Tensor.max_pool2d": pooling,
  "Tensor.avg_pool2d": pooling,
  "Tensor.scaled_dot_product_attention": attention,
  ...LAYER_RULES,
  $index: indexed,
  $get: (args) => (args.positional[1] === "T" ? matrixTransposed(args) : undefined),
};

/** The rules of operations that give several tensors. */
export const RULES_OF_MANY: Readonly<Record<string, ManyRule>> = {
  ...PARTS_RULES,
  "Tensor.sort": (args) => [same(args), elementwise(() => "int32")(args)],
  "Tensor.var_mean": (args) => [floatReduction(args), floatReduction(args)],
  "Tensor.std_mean": (args) => [floatReduction(args), floatReduction(args)],
  "Tensor.topk": (args) => {
    const [shape, k] = [args.shape(0), args.get(1, "k")];
    const dim = shape && axisOf(args.get(2, "dim") ?? -1, shape.length);
    if (dim === undefined || !shape || !isInteger(k)) return undefined;
    const sizes = shape.map((size, i) => (i === dim ? k : size));
    return [result(args.known(0), sizes, args.known(0).dtype), result(args.known(0), sizes, "int32")];
  },
  "Tensor.gradient": (args) =>
    args.positional.slice(1).map((_, i) => same(new Arguments([args.positional[i + 1]]))),
};
