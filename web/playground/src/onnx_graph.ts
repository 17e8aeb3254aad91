/** An ONNX model's graph as the graph view draws it: nodes with their weights and shapes; constants are left out. */

import type { ModelGraph, ModelNode, ModelPort, NodeTimes } from "polygrad";

import type { Graph, Kind, Node } from "./inspected";
import { timeOf } from "./timeline";

/** What each kind of node means here. */
export const ONNX_KINDS: readonly (readonly [Kind, string])[] = [
  ["memory", "input, output"],
  ["arithmetic", "elementwise"],
  ["reduction", "sums over axes"],
  ["structure", "shape and order"],
  ["loop", "control flow"],
];

/** More nodes than this are not laid out while somebody waits. */
const MOST_NODES = 1200;

const SUMS =
  /(Conv|MatMul|Gemm|^Reduce|Pool$|Softmax|Normalization|Attention|LSTM|GRU|RNN|Einsum|^Arg|TopK|CumSum|Det$|DFT|STFT|Loss$)/;
const SHAPES =
  /^(Reshape|Transpose|Flatten|Squeeze|Unsqueeze|Concat|Split|Slice|Gather\w*|Scatter\w*|Expand|Pad|Tile|Shape|Size|Identity|Cast|CastLike|Resize|Upsample|DepthToSpace|SpaceToDepth|Compress|NonZero|Where|Range|ConstantOfShape|ReverseSequence|OneHot|Trilu)$/;
const CONTROL = /^(If|Loop|Scan|Sequence\w*|SplitToSequence|ConcatFromSequence|Optional\w*)$/;

function kindOf(op: string): Kind {
  const name = op.slice(op.lastIndexOf(".") + 1);
  if (name === "Constant") return "constant";
  if (CONTROL.test(name)) return "loop";
  if (SHAPES.test(name)) return "structure";
  return SUMS.test(name) ? "reduction" : "arithmetic";
}

/** A shape as it is written: "(batch, 1, 8, 8)". */
export function shapeText(shape: ModelPort["shape"]): string {
  return shape === null ? "(?)" : `(${shape.map((size) => size ?? "?").join(", ")})`;
}

/** What an input or output holds, in words. */
export function typeText(port: ModelPort): string {
  if (port.kind !== "tensor") return port.kind;
  return `${port.element ?? "?"} ${shapeText(port.shape)}`;
}

/** What there is to say of a node: shapes and times where they are known, weights, attributes. */
function detailsOf(node: ModelNode, weights: ReadonlyMap<string, string>, measured: string): string {
  const known = node.inputs.flatMap((name) => (weights.has(name) ? `${name} ${weights.get(name)}` : []));
  const attributes = Object.entries(node.attributes).map(
    ([name, value]) => `${name} ${typeof value === "object" ? value.join(" ") : value}`,
  );
  return [measured, ...known, ...attributes].filter(Boolean).join(" · ");
}

/** What there is to know of each weight by its name: those of the file, and constants among the nodes. */
function weightsOf({ nodes, initializers }: ModelGraph): Map<string, string> {
  const found = initializers.map(({ name, shape }) => [name, `(${shape.join(", ")})`] as [string, string]);
  for (const { op, outputs, attributes } of nodes) {
    const shape = op === "Constant" ? /\([\d, ]*\)$/.exec(String(attributes.value))?.[0] : undefined;
    if (shape !== undefined) found.push([outputs[0] ?? "", shape]);
  }
  return new Map(found);
}

/** How many elements the weights have. */
export function weightCount(graph: ModelGraph): number {
  const sizes = (shape: string): number[] => (shape.match(/\d+/g) ?? []).map(Number);
  return [...weightsOf(graph).values()].reduce(
    (sum, shape) => sum + sizes(shape).reduce((a, b) => a * b, 1),
    0,
  );
}

export interface DrawnModel {
  readonly graph: Graph;
  /** How many nodes are left out, as there are too many. */
  readonly omitted: number;
}

/** The graph to draw; with `times`, each node with its shapes and its time. */
export function drawnModel(
  model: ModelGraph,
  inputs: readonly ModelPort[],
  outputs: readonly ModelPort[],
  times?: NodeTimes,
): DrawnModel {
  const { nodes: all } = model;
  const weights = weightsOf(model);
  const nodes: Node[] = [];
  const details: string[] = [];
  const makers = new Map<string, number>(); // of each value
  const add = (node: Node, detail: string): number => {
    details.push(detail);
    return nodes.push(node) - 1;
  };
  for (const port of inputs) {
    const node: Node = { op: port.name, dtype: "", kind: "memory", sources: [] };
    makers.set(port.name, add(node, typeText(port)));
  }
  const shown = all.slice(0, MOST_NODES);
  shown.forEach((node, i) => {
    const time = times?.nodes[i];
    const shapes = time?.outputs.map((text) => text.replace(/^\S+ of shape /, "")).join(", ");
    const measured = time === undefined ? "" : `${shapes ?? ""} ${timeOf(time.seconds)}`;
    const sources = node.inputs.flatMap((name) => makers.get(name) ?? []);
    const made: Node = { op: node.op, dtype: node.name, kind: kindOf(node.op), sources };
    const number = add(made, detailsOf(node, weights, measured));
    for (const name of node.outputs) if (name !== "") makers.set(name, number);
  });
  for (const port of outputs) {
    const maker = makers.get(port.name);
    const sources = maker === undefined ? [] : [maker];
    add({ op: port.name, dtype: "", kind: "memory", sources }, typeText(port));
  }
  const order = nodes.map((_, i) => i);
  return { graph: { nodes, order, details, listing: "" }, omitted: all.length - shown.length };
}
