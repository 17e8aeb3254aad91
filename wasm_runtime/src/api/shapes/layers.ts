/** Rules of layers, whose sizes are the arguments of their constructors. */

import { Handle } from "../handle";
import { argumentsOf, type Constructed } from "../known";
import { result, type Rule } from "./rule";
import { isInteger, perAxis, windowed, type Shape } from "./sizes";

/** The argument of a layer's constructor. */
function constructorArgument([args, options]: Constructed, position: number, name: string): unknown {
  return args[position] ?? options?.[name] ?? undefined;
}

/** A layer with float32 weights that gives the shape which `shape` computes. `last`: the position of its dtype. */
const layer =
  (dtypeAt: number, shape: (x: Shape, made: Constructed) => Shape | undefined): Rule =>
  (args) => {
    const [object, x] = [args.positional[0], args.shape(1)];
    const made = object instanceof Handle ? argumentsOf(object) : undefined;
    if (made === undefined || x === undefined) return undefined;
    const isDefault = constructorArgument(made, dtypeAt, "dtype") === undefined;
    const dtype = isDefault && args.known(1).dtype === "float32" ? "float32" : undefined;
    return result(args.known(1), shape(x, made), dtype);
  };

const normLayer = (dtypeAt: number): Rule => layer(dtypeAt, (x) => x);

const linearLayer = layer(3, (x, made) => {
  const [inputs, outputs] = [
    constructorArgument(made, 0, "in_features"),
    constructorArgument(made, 1, "out_features"),
  ];
  return isInteger(outputs) && x.at(-1) === inputs ? [...x.slice(0, -1), outputs] : undefined;
});

const embeddingLayer: Rule = (args) => {
  const [object, x] = [args.positional[0], args.shape(1)];
  const made = object instanceof Handle ? argumentsOf(object) : undefined;
  const size = made && constructorArgument(made, 1, "embed_size");
  if (!made || !x || !isInteger(size)) return undefined;
  const isDefault = constructorArgument(made, 2, "dtype") === undefined;
  return result(args.known(1), [...x, size], isDefault ? "float32" : undefined);
};

const convLayer = layer(8, (x, made) => {
  const kernel = constructorArgument(made, 2, "kernel_size");
  const axes = x.length - 2;
  const sizes = perAxis(kernel, axes);
  const [inputs, outputs] = [
    constructorArgument(made, 0, "in_channels"),
    constructorArgument(made, 1, "out_channels"),
  ];
  if (axes < 1 || !sizes || x[1] !== inputs || !isInteger(outputs)) return undefined;
  // This may be one image without an axis for the batch: its first axis is the channels, too.
  if (x[0] === inputs && isInteger(kernel)) return undefined;
  const moved = windowed(x.slice(2), {
    kernel: sizes,
    stride: constructorArgument(made, 3, "stride") ?? 1,
    padding: constructorArgument(made, 4, "padding") ?? 0,
    dilation: constructorArgument(made, 5, "dilation") ?? 1,
  });
  return moved && [x[0] ?? 0, outputs, ...moved];
});

export const LAYER_RULES: Readonly<Record<string, Rule>> = {
  "nn.Linear.__call__": linearLayer,
  "nn.Embedding.__call__": embeddingLayer,
  "nn.Conv2d.__call__": convLayer,
  "nn.LayerNorm.__call__": normLayer(3),
  "nn.RMSNorm.__call__": normLayer(3),
  "nn.BatchNorm.__call__": normLayer(5),
  "nn.GroupNorm.__call__": normLayer(4),
};
