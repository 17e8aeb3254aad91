/** jax-js, on WebAssembly or WebGPU; every program is under `jit`, as its users write. */

import {
  ADAM,
  BLOCK,
  BLOCK_LR,
  CONVNET,
  CONVNET_LR,
  HEADS,
  HUNDRED,
  HUNDRED_SCALE,
  LABELS,
  LENGTH,
  MLP,
  MLP_LR,
  SMALL,
  SMALL_LR,
  STEPS_CHECKED,
  TINY,
  WIDTH,
  numbers,
  scaled,
  uniform,
} from "./inputs.mjs";
import { operation } from "./ops_jax.mjs";
import * as jax from "/peers/@jax-js/jax/dist/index.js";

const { numpy: np, nn, lax, jit, grad, valueAndGrad, blockUntilReady, tree } = jax;

const tensor = (seed, ...shape) => np.array(uniform(seed, ...shape)).reshape(shape);

const parameters = (specs) =>
  Object.fromEntries(
    Object.entries(specs).map(([name, [seed, shape, scale]]) => [
      name,
      np.array(scaled(seed, shape, scale)).reshape(shape),
    ]),
  );

export async function start(_, device) {
  await jax.init(device.toLowerCase());
  jax.defaultDevice(device.toLowerCase());
  return (kind, sizes) => KINDS[kind](sizes);
}

/** A pure function of these arrays, waited for at every step: dispatches pile up otherwise. */
function forward(f, inputs) {
  const jitted = jit(f);
  const run = () => blockUntilReady(jitted(...inputs.map((x) => x.ref)));
  return {
    step: async () => (await run()).dispose(),
    check: async () => numbers(await (await run()).data()),
    dispose: () => inputs.forEach((x) => x.dispose()),
  };
}

/** SGD on softmax cross-entropy; `scores(parameters, x)`. */
function training(scores, p, lr, x) {
  const labels = nn.oneHot(np.array(LABELS.slice(0, x.shape[0]), { dtype: np.int32 }), 10);
  const scale = -1 / x.shape[0];
  const loss = (p, x, labels) => nn.logSoftmax(scores(p, x), -1).mul(labels).sum().mul(scale);
  const update = jit((p, x, labels) => {
    const [value, gradients] = valueAndGrad(loss)(tree.ref(p), x, labels);
    return [tree.map((w, g) => w.sub(g.mul(lr)), p, gradients), value];
  });
  const run = () => {
    const [next, value] = update(p, x.ref, labels.ref);
    p = next;
    return value;
  };
  const step = async () => {
    const value = run();
    tree.dispose(await blockUntilReady([value, tree.ref(p)]));
  };
  return {
    step,
    check: async () => {
      const losses = [];
      for (let i = 0; i < STEPS_CHECKED; i++) losses.push((await run().data())[0]);
      return losses;
    },
    dispose: () => tree.dispose([p, x, labels]),
  };
}

function twoLayers(specs, x) {
  const scores = (p, x) => np.matmul(nn.relu(np.matmul(x, p.w1).add(p.b1)), p.w2).add(p.b2);
  return training(scores, parameters(specs), MLP_LR, x);
}

function block(p, x) {
  const normalized = (x, w, b) => nn.standardize(x, -1, { epsilon: 1e-5 }).mul(w).add(b);
  const linear = (x, w, b) => np.matmul(x, w).add(b);
  const [q, k, v] = np
    .split(linear(normalized(x.ref, p.ln1_w, p.ln1_b), p.qkv_w, p.qkv_b), 3, -1)
    .map((t) => t.reshape([LENGTH, HEADS, WIDTH / HEADS]));
  const h = nn.dotProductAttention(q, k, v, { isCausal: true }).reshape([LENGTH, WIDTH]);
  const middle = x.add(linear(h, p.out_w, p.out_b));
  const up = nn.gelu(linear(normalized(middle.ref, p.ln2_w, p.ln2_b), p.up_w, p.up_b));
  return middle.add(linear(up, p.down_w, p.down_b));
}

const KINDS = {
  operation,
  matmul: ({ m, k, n }) => forward((a, b) => np.matmul(a, b), [tensor(1, m, k), tensor(2, k, n)]),
  hundred: () =>
    forward(
      (x, w) => {
        for (let i = 0; i < HUNDRED; i++) x = np.matmul(x, w.ref);
        w.dispose();
        return x;
      },
      [tensor(1, 8, 8), np.array(scaled(2, [8, 8], HUNDRED_SCALE)).reshape([8, 8])],
    ),
  softmax: ({ rows, columns }) => forward((x) => nn.softmax(x, -1), [tensor(1, rows, columns)]),
  gelu: ({ rows, columns }) => forward((x) => nn.gelu(x), [tensor(1, rows, columns)]),
  layernorm: ({ rows, columns }) =>
    forward(
      (x, w, b) => nn.standardize(x, -1, { epsilon: 1e-5 }).mul(w).add(b),
      [tensor(1, rows, columns), tensor(2, columns), tensor(3, columns)],
    ),
  mlp: () => twoLayers(MLP, tensor(1, 64, 784)),
  tiny: () => twoLayers(TINY, tensor(1, 1, 4)),
  convnet: () => {
    const convolution = (x, w, b) =>
      nn.relu(lax.convGeneralDilated(x, w, [1, 1], "VALID").add(b.reshape([1, -1, 1, 1])));
    const scores = (p, x) => {
      const h = convolution(convolution(x, p.w1, p.b1), p.w2, p.b2);
      const pooled = h.reshape([64, 32, 12, 2, 12, 2]).max([3, 5]);
      return np.matmul(pooled.reshape([64, 4608]), p.w3).add(p.b3);
    };
    return training(scores, parameters(CONVNET), CONVNET_LR, tensor(1, 64, 1, 28, 28));
  },
  adam: () => {
    const { b1, b2, epsilon } = ADAM;
    let p = parameters(SMALL);
    let [m, v] = [0, 1].map(() => tree.map(np.zerosLike, tree.ref(p)));
    let powers = np.array([1, 1]);
    const loss = (p) => Object.values(p).reduce((sum, x) => np.square(x).sum().add(sum), 0);
    const update = jit((p, m, v, powers) => {
      const [value, gradients] = valueAndGrad(loss)(tree.ref(p));
      powers = powers.mul(np.array([b1, b2]));
      const [c1, c2] = [0, 1].map((i) => np.subtract(1, powers.ref.slice(i)));
      m = tree.map((m, g) => m.mul(b1).add(g.mul(1 - b1)), m, tree.ref(gradients));
      v = tree.map((v, g) => v.mul(b2).add(np.square(g).mul(1 - b2)), v, gradients);
      const moved = (x, m, v) =>
        x.sub(
          m
            .div(c1.ref)
            .mul(SMALL_LR)
            .div(np.sqrt(v.div(c2.ref)).add(epsilon)),
        );
      const next = tree.map(moved, p, tree.ref(m), tree.ref(v));
      tree.dispose([c1, c2]);
      return [next, m, v, powers, value];
    });
    const run = () => {
      let value;
      [p, m, v, powers, value] = update(p, m, v, powers);
      return value;
    };
    return {
      step: async () => tree.dispose(await blockUntilReady([run(), tree.ref([p, m, v])])),
      check: async () => {
        const losses = [];
        for (let i = 0; i < STEPS_CHECKED; i++) losses.push((await run().data())[0]);
        const all = await Promise.all(Object.values(p).map((a) => a.ref.data()));
        return [...losses, ...all.flatMap((a) => numbers(a))];
      },
      dispose: () => tree.dispose([p, m, v, powers]),
    };
  },
  "block-forward": () => {
    const p = parameters(BLOCK);
    const names = Object.keys(p);
    return forward(
      (x, ...values) => block(Object.fromEntries(names.map((n, i) => [n, values[i]])), x),
      [tensor(1, LENGTH, WIDTH), ...Object.values(p)],
    );
  },
  "block-backward": () => {
    const p = parameters(BLOCK);
    const [x, g] = [tensor(1, LENGTH, WIDTH), tensor(14, LENGTH, WIDTH)];
    const gradients = jit((inputs, g) =>
      grad((inputs, g) => block(inputs.p, inputs.x).mul(g).sum())(inputs, g),
    );
    const inputs = { x, p };
    const run = () => blockUntilReady(gradients(tree.ref(inputs), g.ref));
    return {
      step: async () => tree.dispose(await run()),
      check: async () => {
        const { x, p } = await run();
        const all = await Promise.all([x, ...Object.values(p)].map((a) => a.data()));
        return all.flatMap((a) => numbers(a));
      },
      dispose: () => tree.dispose([inputs, g]),
    };
  },
  "block-step": () => {
    let p = parameters(BLOCK);
    const [x, g] = [tensor(1, LENGTH, WIDTH), tensor(14, LENGTH, WIDTH)];
    const loss = (p, x, g) => block(p, x).mul(g).sum();
    const update = jit((p, x, g) => {
      const [value, gradients] = valueAndGrad(loss)(tree.ref(p), x, g);
      return [tree.map((w, g) => w.sub(g.mul(BLOCK_LR)), p, gradients), value];
    });
    const step = async () => {
      const [next, value] = update(p, x.ref, g.ref);
      p = next;
      tree.dispose(await blockUntilReady([value, tree.ref(p)]));
    };
    return {
      step,
      check: async () => {
        for (let i = 0; i < STEPS_CHECKED; i++) await step();
        const all = await Promise.all(Object.values(p).map((a) => a.ref.data()));
        return all.flatMap((a) => numbers(a));
      },
      dispose: () => tree.dispose([p, x, g]),
    };
  },
};
