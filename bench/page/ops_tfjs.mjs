/**
 * tfjs's operations of the breadth suite. Images are in its own layout, NHWC, and filters HWIO: an operation may say
 * how its operands are `put` in that layout once, and how its results, in order, are taken `back` to be checked.
 */

import { GRADIENT_SEED, moments, numbers, operand, uniform } from "./inputs.mjs";

const DTYPES = ["float32", "int32"];
const EPSILON = 1e-5;
const tf = globalThis.tf;

const same = (x) => x;
const turned = (x) => tf.transpose(x);
const nhwc = (x) => tf.transpose(x, [0, 2, 3, 1]);
const nchw = (x) => tf.transpose(x, [0, 3, 1, 2]);
const hwio = (x) => tf.transpose(x, [2, 3, 1, 0]);
const oihw = (x) => tf.transpose(x, [3, 2, 0, 1]);

const gelu = (x) => {
  const inner = x.add(x.mul(x).mul(x).mul(0.044715)).mul(Math.sqrt(2 / Math.PI));
  return x.mul(0.5).mul(tf.tanh(inner).add(1));
};

function linear([x, w, b], { activation }) {
  if (activation === "gelu") return gelu(tf.fused.matMul({ a: x, b: w, bias: b }));
  return tf.fused.matMul({ a: x, b: w, bias: b, activation });
}

function conv([x, w], { stride = 1, padding = 0, dilation = 1, groups = 1 }) {
  const channels = x.shape.at(-1);
  if (groups === 1) return tf.conv2d(x, w, stride, padding, "NHWC", dilation, "floor");
  if (groups !== channels) throw new Error("has no grouped convolutions but depthwise ones");
  return tf.depthwiseConv2d(
    x,
    w.reshape([...w.shape.slice(0, 2), channels, 1]),
    stride,
    padding,
    "NHWC",
    dilation,
  );
}

/** One axis as an image of height 1; `conv1d` does the same inside, but pads all of it. */
const conv1d = ([x, w], { padding }) =>
  tf.conv1d(tf.pad(x, [[0, 0], [padding, padding], [0, 0]]), w, 1, "valid"); // prettier-ignore

const convWeightGradient = ([x, w, g], settings) => tf.grad((w) => conv([x, w], settings))(w, g);
const convInputGradient = ([x, w, g], settings) => tf.grad((x) => conv([x, w], settings))(x, g);

function attention([q, k, v], { causal }) {
  const length = q.shape.at(-2);
  let scores = tf.matMul(q, k, false, true).mul(q.shape.at(-1) ** -0.5);
  if (causal) {
    const mask = tf.linalg
      .bandPart(tf.ones([length, length]), -1, 0)
      .sub(1)
      .mul(1e9);
    scores = scores.add(mask);
  }
  return tf.matMul(tf.softmax(scores, -1), v);
}

/** `tf.softmax` is of the last axis. */
function softmax([x], { axis }) {
  if (axis === x.rank - 1) return tf.softmax(x);
  const e = x.sub(tf.max(x, axis, true)).exp();
  return e.div(tf.sum(e, axis, true));
}

function standardized(x, axis) {
  const { mean, variance } = tf.moments(x, axis, true);
  return x.sub(mean).mul(variance.add(EPSILON).rsqrt());
}

function batchNorm([x, w, b]) {
  const { mean, variance } = tf.moments(x, [0, 1, 2]);
  return tf.batchNorm(x, mean, variance, b, w, EPSILON);
}

const groupNorm = ([x, w, b], { groups }) =>
  standardized(x.reshape([x.shape[0], groups, -1]), -1)
    .reshape(x.shape)
    .mul(w.reshape([-1, 1, 1]))
    .add(b.reshape([-1, 1, 1]));

const rmsNorm = ([x, w]) => x.mul(tf.mean(x.square(), -1, true).add(EPSILON).rsqrt()).mul(w);

function resize([x], { size, mode }) {
  if (mode === "linear") return tf.image.resizeBilinear(x, [size, size], false, true);
  return tf.image.resizeNearestNeighbor(x, [size, size]);
}

function variance([x], { axis }) {
  const n = x.shape[axis];
  return tf.moments(x, axis).variance.mul(n / (n - 1));
}

const OPERATIONS = {
  matmul: ([a, b], { ta = false, tb = false }) => tf.matMul(a, b, ta, tb),
  linear: { put: [same, turned], run: linear, back: [same, same, turned] },
  conv: { put: [nhwc, hwio], run: conv, back: [nchw] },
  conv_1d: {
    put: [(x) => tf.transpose(x, [0, 2, 1]), (x) => tf.transpose(x, [2, 1, 0])],
    run: conv1d,
    back: [(x) => tf.transpose(x, [0, 2, 1])],
  },
  conv_transpose: {
    put: [nhwc, hwio],
    run: ([x, w], { stride, padding }) => {
      const [n, height, width] = x.shape;
      const size = (length) => (length - 1) * stride - 2 * padding + w.shape[0];
      const shape = [n, size(height), size(width), w.shape[2]];
      return tf.conv2dTranspose(x, w, shape, stride, padding, "floor");
    },
    back: [nchw],
  },
  conv_weight_gradient: {
    put: [nhwc, hwio, nhwc],
    run: convWeightGradient,
    back: [oihw],
  },
  conv_input_gradient: {
    put: [nhwc, hwio, nhwc],
    run: convInputGradient,
    back: [nchw],
  },
  max_pool: {
    put: [nhwc],
    run: ([x], { kernel, stride, padding = 0 }) => tf.maxPool(x, kernel, stride, padding, "floor"),
    back: [nchw, nchw],
  },
  avg_pool: {
    put: [nhwc],
    run: ([x], { kernel, stride }) => tf.avgPool(x, kernel, stride, "valid"),
    back: [nchw, nchw],
  },
  attention,
  sum: ([x], { axis }) => tf.sum(x, axis),
  mean: ([x], { axis }) => tf.mean(x, axis),
  max: ([x], { axis }) => tf.max(x, axis),
  argmax: ([x], { axis }) => tf.argMax(x, axis),
  var: variance,
  logsumexp: ([x], { axis }) => tf.logSumExp(x, axis),
  cumsum: ([x], { axis }) => tf.cumsum(x, axis),
  cumprod: ([x], { axis }) => tf.cumprod(x, axis),
  sort: ([x]) => tf.neg(tf.topk(tf.neg(x), x.shape.at(-1)).values),
  argsort: ([x]) => tf.topk(tf.neg(x), x.shape.at(-1)).indices,
  topk: ([x], { k }) => tf.topk(x, k).values,
  softmax,
  log_softmax: ([x]) => tf.logSoftmax(x),
  batch_norm: { put: [nhwc, same, same], run: batchNorm, back: [nchw, nchw, same, same] },
  layer_norm: ([x, w, b]) => standardized(x, -1).mul(w).add(b),
  group_norm: groupNorm,
  rms_norm: rmsNorm,
  permute: ([x], { order }) => tf.transpose(x, order),
  cat: (xs, { axis }) => tf.concat(xs, axis),
  strided: ([x], { starts, steps }) => tf.stridedSlice(x, starts, x.shape, steps),
  flip: ([x], { axes }) => tf.reverse(x, axes),
  pad: ([x], { widths }) => tf.pad(x, widths),
  resize: { put: [nhwc], run: resize, back: [nchw] },
  cast: ([x], { to }) => tf.cast(x, to),
  where_less: ([a, b, x, y]) => tf.where(tf.less(a, b), x, y),
  add: ([a, b]) => a.add(b),
  erf: ([x]) => tf.erf(x),
  chain: ([x]) => x.exp().sin().add(2).log().tanh(),
  sigmoid: ([x]) => tf.sigmoid(x),
  tanh: ([x]) => tf.tanh(x),
  pow: ([x, y]) => tf.pow(x, y),
  gelu: ([x]) => gelu(x),
  take_rows: ([table, rows]) => tf.gather(table, rows),
  scatter_add: ([x, index], { size }) => tf.scatterND(index.expandDims(1), x, [size]),
  rand: (_, { shape }) => tf.randomUniform(shape),
  randn: (_, { shape }) => tf.randomNormal(shape),
  dropout: ([x]) => tf.dropout(x, 0.5),
};

export function operation({ op, operands, attributes, gradients, check }) {
  const name = op === "conv" && operands[0].shape.length === 3 ? "conv_1d" : op;
  const entry = OPERATIONS[name];
  if (entry === undefined) throw new Error(`has no ${op}`);
  const { put = [], run, back = [] } = typeof entry === "function" ? { run: entry } : entry;
  const inputs = operands.map((spec, i) => {
    if (!DTYPES.includes(spec.dtype)) throw new Error(`has no ${spec.dtype}`);
    return tf.tidy(() => (put[i] ?? same)(tf.tensor(operand(i + 1, spec), spec.shape, spec.dtype)));
  });
  let compute = () => [run(inputs, attributes)];
  if (gradients.length) {
    const targets = gradients.map((i) => inputs[i]);
    const fill = (values) => inputs.map((x, i) => (gradients.includes(i) ? values[gradients.indexOf(i)] : x));
    const both = tf.valueAndGrads((...values) => run(fill(values), attributes));
    const incoming = tf.tidy(() => {
      const shape = (back[0] ?? same)(run(inputs, attributes)).shape;
      const g = tf.tensor(uniform(GRADIENT_SEED, ...shape), shape);
      return back[0] === nchw ? nhwc(g) : g;
    });
    inputs.push(incoming);
    compute = () => {
      const { value, grads } = both(targets, incoming);
      return [value, ...grads];
    };
  }
  const seen = check === "moments" ? moments : numbers;
  return {
    step: () => void tf.tidy(() => void compute()),
    check: async () => {
      const found = tf.tidy(() => compute().map((x, i) => (back[i] ?? same)(x)));
      const all = await Promise.all(found.map((x) => x.data()));
      tf.dispose(found);
      return all.flatMap((data) => seen(data));
    },
    dispose: () => tf.dispose(inputs),
  };
}
