/** tfjs with its WebAssembly or its WebGPU backend: hand-written kernels, called one by one. */

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

async function script(address) {
  await new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement("script"), { src: address });
    element.onload = resolve;
    element.onerror = () => reject(new Error(`${address} did not load`));
    document.head.append(element);
  });
}

let tf, operation;

export async function start(threads, device) {
  const name = device.toLowerCase();
  await script("/peers/@tensorflow/tfjs/dist/tf.min.js");
  await script(`/peers/@tensorflow/tfjs-backend-${name}/dist/tf-backend-${name}.min.js`);
  tf = globalThis.tf;
  if (name === "wasm") {
    tf.wasm.setWasmPaths("/peers/@tensorflow/tfjs-backend-wasm/dist/");
    tf.wasm.setThreadsCount(threads);
  }
  if (!(await tf.setBackend(name))) throw new Error(`the ${name} backend did not start`);
  await tf.ready();
  ({ operation } = await import("./ops_tfjs.mjs")); // needs the library that the scripts have made global
  const make = (kind, sizes) => (kind === "operation" ? operation : KINDS[kind])(sizes);
  if (name === "wasm") return make;
  // What it records is submitted when there is much of it, or when it is told to.
  const finish = () => {
    const backend = tf.backend();
    if (!backend.commandEncoder) return;
    backend.endComputePassEncoder();
    backend.submitQueue();
  };
  return (kind, sizes) => ({ ...make(kind, sizes), finish });
}

const tensor = (seed, ...shape) => tf.tensor(uniform(seed, ...shape), shape);

const parameters = (specs) =>
  Object.fromEntries(
    Object.entries(specs).map(([name, [seed, shape, scale]]) => [
      name,
      tf.tensor(scaled(seed, shape, scale), shape),
    ]),
  );

/** `f` of these tensors; WebAssembly computes before it returns. */
function forward(f, inputs) {
  return {
    step: () => void tf.tidy(() => void f(...inputs)),
    check: async () => {
      const found = tf.tidy(() => f(...inputs));
      const data = await found.data();
      found.dispose();
      return numbers(data);
    },
    dispose: () => tf.dispose(inputs),
  };
}

/** SGD on softmax cross-entropy; `scores(variables, x)`. */
function training(scores, p, lr, x) {
  const variables = Object.fromEntries(Object.entries(p).map(([name, t]) => [name, tf.variable(t)]));
  const labels = tf.oneHot(tf.tensor1d(LABELS.slice(0, x.shape[0]), "int32"), 10).toFloat();
  const optimizer = tf.train.sgd(lr);
  const loss = () => tf.losses.softmaxCrossEntropy(labels, scores(variables, x));
  const list = Object.values(variables);
  return {
    step: () => optimizer.minimize(loss, false, list),
    check: async () => {
      const losses = [];
      for (let i = 0; i < STEPS_CHECKED; i++) {
        const loss_ = tf.tidy(() => optimizer.minimize(loss, true, list));
        losses.push((await loss_.data())[0]);
        loss_.dispose();
      }
      return losses;
    },
    dispose: () => tf.dispose([variables, x, labels]),
  };
}

function twoLayers(specs, x) {
  const scores = (p, x) => tf.matMul(tf.relu(tf.matMul(x, p.w1).add(p.b1)), p.w2).add(p.b2);
  return training(scores, parameters(specs), MLP_LR, x);
}

const normalized = (x, w, b) =>
  tf.tidy(() => {
    const { mean, variance } = tf.moments(x, -1, true);
    return x.sub(mean).mul(variance.add(1e-5).rsqrt()).mul(w).add(b);
  });

const gelu = (x) => {
  const inner = x.add(x.mul(x).mul(x).mul(0.044715)).mul(Math.sqrt(2 / Math.PI));
  return x.mul(0.5).mul(tf.tanh(inner).add(1));
};

function block(p, x) {
  const linear = (x, w, b) => tf.matMul(x, w).add(b);
  const [q, k, v] = tf
    .split(linear(normalized(x, p.ln1_w, p.ln1_b), p.qkv_w, p.qkv_b), 3, -1)
    .map((t) => t.reshape([LENGTH, HEADS, WIDTH / HEADS]).transpose([1, 0, 2]));
  const mask = tf.linalg
    .bandPart(tf.ones([LENGTH, LENGTH]), -1, 0)
    .sub(1)
    .mul(1e9);
  const scores = tf.matMul(q, k, false, true).mul(1 / Math.sqrt(WIDTH / HEADS));
  const h = tf
    .matMul(tf.softmax(scores.add(mask), -1), v)
    .transpose([1, 0, 2])
    .reshape([LENGTH, WIDTH]);
  const middle = x.add(linear(h, p.out_w, p.out_b));
  const up = gelu(linear(normalized(middle, p.ln2_w, p.ln2_b), p.up_w, p.up_b));
  return middle.add(linear(up, p.down_w, p.down_b));
}

const KINDS = {
  matmul: ({ m, k, n }) => forward((a, b) => tf.matMul(a, b), [tensor(1, m, k), tensor(2, k, n)]),
  hundred: () => {
    const w = tf.tensor(scaled(2, [8, 8], HUNDRED_SCALE), [8, 8]);
    return forward(
      (x) => {
        for (let i = 0; i < HUNDRED; i++) x = tf.matMul(x, w);
        return x;
      },
      [tensor(1, 8, 8)],
    );
  },
  softmax: ({ rows, columns }) => forward((x) => tf.softmax(x, -1), [tensor(1, rows, columns)]),
  gelu: ({ rows, columns }) => forward(gelu, [tensor(1, rows, columns)]),
  layernorm: ({ rows, columns }) =>
    forward(normalized, [tensor(1, rows, columns), tensor(2, columns), tensor(3, columns)]),
  mlp: () => twoLayers(MLP, tensor(1, 64, 784)),
  tiny: () => twoLayers(TINY, tensor(1, 1, 4)),
  convnet: () => {
    const p = parameters(CONVNET);
    // this library's layout: images NHWC, filters HWIO, and so the pooled features in another order
    for (const name of ["w1", "w2"]) p[name] = p[name].transpose([2, 3, 1, 0]);
    p.w3 = p.w3.reshape([32, 12, 12, 10]).transpose([1, 2, 0, 3]).reshape([4608, 10]);
    const convolution = (x, w, b) => tf.relu(tf.conv2d(x, w, 1, "valid").add(b));
    const scores = (p, x) => {
      const h = convolution(convolution(x, p.w1, p.b1), p.w2, p.b2);
      return tf.matMul(tf.maxPool(h, 2, 2, "valid").reshape([64, 4608]), p.w3).add(p.b3);
    };
    return training(scores, p, CONVNET_LR, tensor(1, 64, 1, 28, 28).reshape([64, 28, 28, 1]));
  },
  adam: () => {
    const list = Object.values(parameters(SMALL)).map((t) => tf.variable(t));
    const optimizer = tf.train.adam(SMALL_LR, ADAM.b1, ADAM.b2, ADAM.epsilon);
    const loss = () => tf.addN(list.map((x) => x.square().sum()));
    return {
      step: () => optimizer.minimize(loss, false, list),
      check: async () => {
        const found = [];
        for (let i = 0; i < STEPS_CHECKED; i++) {
          const value = tf.tidy(() => optimizer.minimize(loss, true, list));
          found.push((await value.data())[0]);
          value.dispose();
        }
        const all = await Promise.all(list.map((t) => t.data()));
        return [...found, ...all.flatMap((data) => numbers(data))];
      },
      dispose: () => tf.dispose(list),
    };
  },
  "block-forward": () => {
    const p = parameters(BLOCK);
    return forward((x) => block(p, x), [tensor(1, LENGTH, WIDTH)]);
  },
  "block-backward": () => {
    const p = parameters(BLOCK);
    const [x, g] = [tensor(1, LENGTH, WIDTH), tensor(14, LENGTH, WIDTH)];
    const names = Object.keys(p);
    const f = tf.grads((x, ...values) => block(Object.fromEntries(names.map((n, i) => [n, values[i]])), x));
    const inputs = [x, ...Object.values(p)];
    return {
      step: () => void tf.tidy(() => void f(inputs, g)),
      check: async () => {
        const found = tf.tidy(() => f(inputs, g));
        const all = await Promise.all(found.map((t) => t.data()));
        tf.dispose(found);
        return all.flatMap((data) => numbers(data));
      },
      dispose: () => tf.dispose([inputs, g]),
    };
  },
  "block-step": () => {
    const p = Object.fromEntries(
      Object.entries(parameters(BLOCK)).map(([name, t]) => [name, tf.variable(t)]),
    );
    const [x, g] = [tensor(1, LENGTH, WIDTH), tensor(14, LENGTH, WIDTH)];
    const optimizer = tf.train.sgd(BLOCK_LR);
    const list = Object.values(p);
    const step = () => void optimizer.minimize(() => block(p, x).mul(g).sum(), false, list);
    return {
      step,
      check: async () => {
        for (let i = 0; i < STEPS_CHECKED; i++) step();
        const all = await Promise.all(list.map((t) => t.data()));
        return all.flatMap((data) => numbers(data));
      },
      dispose: () => tf.dispose([list, x, g]),
    };
  },
};
