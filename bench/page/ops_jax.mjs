/** jax-js's operations of the breadth suite, each under `jit`. A use of an array consumes it, so others take `.ref`. */

import { GRADIENT_SEED, moments, numbers, operand, uniform } from "./inputs.mjs";
import * as jax from "/peers/@jax-js/jax/dist/index.js";

const { numpy: np, nn, lax, random, jit, vjp, blockUntilReady, tree } = jax;
const EPSILON = 1e-5;

const turned = (x, wanted) => (wanted ? np.swapaxes(x, -1, -2) : x);
const column = (x) => x.reshape([-1, 1, 1]);

const ACTIVATIONS = { relu: (x) => nn.relu(x), gelu: (x) => nn.gelu(x) };

function conv(x, w, { stride = 1, padding = 0, dilation = 1, groups = 1 }) {
  const each = (value) => Array(w.ndim - 2).fill(value);
  return lax.convGeneralDilated(x, w, each(stride), each([padding, padding]), {
    rhsDilation: each(dilation),
    featureGroupCount: groups,
  });
}

/** Windows side by side, as axes of their own: what its users write, for `reduceWindow` pads nothing. */
function windows(x, { kernel, stride, padding = 0 }) {
  if (kernel !== stride || padding) throw new Error("has no padded or overlapping windows");
  const [n, c, h, w] = x.shape;
  return x.reshape([n, c, h / kernel, kernel, w / kernel, kernel]);
}

function attention(q, k, v, { causal }) {
  const length = q.shape.at(-2);
  let scores = np.matmul(q, turned(k, true)).mul(q.shape.at(-1) ** -0.5);
  if (causal) scores = np.where(np.tri(length, length, 0, { dtype: np.bool }), scores, -Infinity);
  return np.matmul(nn.softmax(scores, -1), v);
}

const standardized = (x, axis) => nn.standardize(x, axis, { epsilon: EPSILON });

const OPERATIONS = {
  matmul: ([a, b], { ta, tb }) => np.matmul(turned(a, ta), turned(b, tb)),
  linear: ([x, w, b], { activation }) =>
    (ACTIVATIONS[activation] ?? ((y) => y))(np.matmul(x, turned(w, true)).add(b)),
  conv: ([x, w], settings) => conv(x, w, settings),
  conv_transpose: ([x, w], { stride, padding }) =>
    lax.convTranspose(
      x,
      w,
      [stride, stride],
      [
        [padding, padding],
        [padding, padding],
      ],
      { transposeKernel: true },
    ),
  conv_weight_gradient: ([x, w, g], settings) => vjp((w) => conv(x, w, settings), [w])[1](g)[0],
  conv_input_gradient: ([x, w, g], settings) => vjp((x) => conv(x, w, settings), [x])[1](g)[0],
  max_pool: ([x], settings) => np.max(windows(x, settings), [3, 5]),
  avg_pool: ([x], settings) => np.mean(windows(x, settings), [3, 5]),
  attention: ([q, k, v], settings) => attention(q, k, v, settings),
  sum: ([x], { axis }) => np.sum(x, axis),
  mean: ([x], { axis }) => np.mean(x, axis),
  max: ([x], { axis }) => np.max(x, axis),
  argmax: ([x], { axis }) => np.argmax(x, axis),
  var: ([x], { axis }) => np.var_(x, axis, { correction: 1 }),
  logsumexp: ([x], { axis }) => nn.logsumexp(x, axis),
  cumsum: ([x], { axis }) => np.cumsum(x, axis),
  cumprod: ([x], { axis }) => np.cumprod(x, axis),
  sort: ([x]) => np.sort(x, -1),
  argsort: ([x]) => np.argsort(x, -1),
  topk: ([x], { k }) => {
    const [values, indices] = lax.topK(x, k);
    indices.dispose();
    return values;
  },
  softmax: ([x], { axis }) => nn.softmax(x, axis),
  log_softmax: ([x], { axis }) => nn.logSoftmax(x, axis),
  batch_norm: ([x, w, b]) => standardized(x, [0, 2, 3]).mul(column(w)).add(column(b)),
  layer_norm: ([x, w, b]) => standardized(x, -1).mul(w).add(b),
  group_norm: ([x, w, b], { groups }) => {
    const [n, ...rest] = x.shape;
    return standardized(x.reshape([n, groups, -1]), -1)
      .reshape([n, ...rest])
      .mul(column(w))
      .add(column(b));
  },
  rms_norm: ([x, w]) => {
    const square = np.mean(np.square(x.ref), -1, { keepdims: true });
    return x.mul(np.reciprocal(np.sqrt(square.add(EPSILON)))).mul(w);
  },
  permute: ([x], { order }) => np.transpose(x, order),
  cat: (xs, { axis }) => np.concatenate(xs, axis),
  flip: ([x], { axes }) => np.flip(x, axes),
  pad: ([x], { widths }) => np.pad(x, widths),
  cast: ([x], { to }) => x.astype(np[to]),
  where_less: ([a, b, x, y]) => np.where(np.less(a, b), x, y),
  add: ([a, b]) => a.add(b),
  erf: ([x]) => lax.erf(x),
  chain: ([x]) => np.tanh(np.log(np.sin(np.exp(x)).add(2))),
  sigmoid: ([x]) => nn.sigmoid(x),
  tanh: ([x]) => np.tanh(x),
  pow: ([x, y]) => np.power(x, y),
  gelu: ([x]) => nn.gelu(x),
  take_rows: ([table, rows]) => np.take(table, rows, 0),
  gather: ([x, index]) => np.takeAlongAxis(x, index, 1),
  rand: ([key], { shape }) => random.uniform(key, shape),
  randn: ([key], { shape }) => random.normal(key, shape),
  dropout: ([x, key]) => np.where(random.bernoulli(key, 0.5, x.shape), x.mul(2), 0),
};
const RANDOM = new Set(["rand", "randn", "dropout"]); // take a key last, another at each call

export function operation({ op, operands, attributes, gradients, check }) {
  const f = OPERATIONS[op];
  if (f === undefined) throw new Error(`has no ${op}`);
  const inputs = operands.map((spec, i) => {
    const { dtype, shape } = spec;
    if (np[dtype] === undefined) throw new Error(`has no ${dtype}`);
    return np.array(operand(i + 1, spec), { dtype: np[dtype] }).reshape(shape);
  });
  const forward = jit((...xs) => f(xs, attributes));
  let compute = forward;
  let draws = 0;
  const keys = () => (RANDOM.has(op) ? [random.key(draws++)] : []);
  if (gradients.length) {
    const probe = forward(...inputs.map((x) => x.ref));
    const { shape } = probe;
    probe.dispose();
    inputs.push(np.array(uniform(GRADIENT_SEED, ...shape)).reshape(shape));
    compute = jit((...xs) => {
      const incoming = xs.pop();
      const targets = gradients.map((i) => xs[i]);
      const put = (values) => xs.map((x, i) => (gradients.includes(i) ? values[gradients.indexOf(i)] : x));
      const [out, pullback] = vjp((...values) => f(put(values), attributes), targets);
      return [out, ...pullback(incoming)];
    });
  }
  const run = () => blockUntilReady(compute(...inputs.map((x) => x.ref), ...keys()));
  return {
    step: async () => tree.dispose(await run()),
    check: async () => {
      const all = await Promise.all([await run()].flat().map((x) => x.data()));
      return all.flatMap((x) => (check === "moments" ? moments(x) : numbers(x)));
    },
    dispose: () => tree.dispose(inputs),
  };
}
