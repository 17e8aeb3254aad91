/** Tensors: making, reading, operations, indices, views and gradients, case by case, as in cases.mjs. */

import { rows, thrown } from "./case_helpers.mjs";

export const tensorCases = {
  async construction({ Tensor }) {
    const tensors = {
      numbers: new Tensor([
        [1, 2],
        [3, 4],
      ]),
      scalar: new Tensor(2.5),
      booleans: new Tensor([true, false]),
      bigints: new Tensor([1n, -(2n ** 62n)]),
      integers: new Tensor([1, 2, 3], { dtype: "int32" }),
      halves: new Tensor([0.1, -2], { dtype: "float16" }),
      typed: new Tensor(new Float64Array([1, 2, 3, 4]), { shape: [2, 2] }),
      bytes: new Tensor(new Uint8Array([0, 0, 128, 63]).buffer, { dtype: "float32" }),
      clamped: new Tensor(new Uint8ClampedArray([1, 300])),
      cast: new Tensor(new Int32Array([1, 2]), { dtype: "float32" }),
      nested: new Tensor([new Tensor([1, 2]), new Tensor([3, 4])]),
      copy: new Tensor(new Tensor([1, 2]), { dtype: "int64" }),
      fromArray: Tensor.fromArray([[1], [2]]),
      zeros: Tensor.zeros(2, 3),
      ones: Tensor.ones([2], { dtype: "int8" }),
      full: Tensor.full([2], 3),
      arange: Tensor.arange(2, 8, { step: 3 }),
      eye: Tensor.eye(2),
      linspace: Tensor.linspace(0, 1, 3),
      empty: new Tensor([]),
    };
    const out = {};
    for (const [name, t] of Object.entries(tensors)) {
      const list = await t.tolist();
      out[name] = [
        t.dtype,
        t.shape,
        JSON.parse(JSON.stringify(list, (_, x) => (typeof x === "bigint" ? `${x}n` : x))),
      ];
    }
    return out;
  },

  async data({ Tensor }) {
    const typed = async (t) => {
      const array = await t.data();
      return [array.constructor.name, Array.from(array, String)];
    };
    return {
      float32: await typed(new Tensor([1.5, 2])),
      int64: await typed(new Tensor([1n, 2n])),
      uint64: await typed(new Tensor([2n ** 63n], { dtype: "uint64" })),
      bool: await typed(new Tensor([true])),
      item: String(await new Tensor(3n).item()),
      empty: await typed(Tensor.zeros(0, 3)),
    };
  },

  async operators({ Tensor }) {
    const a = new Tensor(rows(3, 4));
    const b = new Tensor(rows(4, 2));
    const i = new Tensor([1, 2, 3], { dtype: "int32" });
    const results = {
      arithmetic: a.add(1).mul(2).sub(a).div(3),
      matmul: a.matmul(b),
      sum: a.sum(),
      sumAxis: a.sum(1),
      sumNamed: a.sum({ axis: [0, 1], keepdim: true }),
      softmax: a.softmax(-1),
      alias: a.log_softmax(1),
      where: a.gt(0).where(a, -1),
      list: i.add([1, 2, 3]),
      array: i.mul(new Int32Array([4, 5, 6])),
      weak: i.mul(2),
      infinite: a.mul(Infinity).isinf(),
      negativeZero: new Tensor([1]).div(new Tensor([0]).mul(-0)),
      maximum: a.maximum(0.25),
      reshape: a.reshape(2, -1),
      permute: a.permute([1, 0]),
      transpose: a.T,
      cat: Tensor.cat([a, a], { dim: 1 }),
      stack: a.stack(a),
      pad: a.pad([null, [1, 0]], { value: 9 }),
      einsum: Tensor.einsum("ij,jk->ki", a, b),
      cast: a.mul(10).cast("int32"),
      conv2d: new Tensor(rows(1, 16)).reshape(1, 1, 4, 4).conv2d(Tensor.ones(1, 1, 2, 2), { stride: 2 }),
    };
    const out = {};
    for (const [name, t] of Object.entries(results)) out[name] = [await t.tolist(), t.dtype];
    const [values, indices] = a.sort(1, { descending: true });
    const [variance, mean] = a.varMean(0);
    const parts = a.split(2, { dim: 1 });
    const grids = i.meshgrid(new Tensor([4, 5]));
    out.sort = [await values.tolist(), await indices.tolist()];
    out.varMean = [await variance.tolist(), await mean.tolist()];
    out.split = await Promise.all(parts.map((t) => t.tolist()));
    out.meshgrid = await Promise.all(grids.map((t) => t.tolist()));
    return out;
  },

  async indexing({ Tensor, slice }) {
    const t = Tensor.arange(24).reshape(2, 3, 4);
    const picked = {
      element: t.at(1),
      negative: t.at(-1, 0, 2),
      slice: t.at("0:1", ":", "1:3"),
      step: t.at("...", "::-2"),
      helper: t.at(slice(), slice(1, null)),
      axis: t.at(null, 0, "...", null),
      list: t.at(0, [2, 0]),
      tensor: t.at(new Tensor([1, 0], { dtype: "int32" }), "...", 0),
    };
    const out = {};
    for (const [name, x] of Object.entries(picked)) out[name] = await x.tolist();
    const w = Tensor.zeros(2, 3).contiguous().realize();
    w.setAt([0, "1:"], 5).setAt([1], new Tensor([1, 2, 3]));
    out.set = await w.tolist();
    out.wrong = await thrown(() => t.at("1-3"));
    out.outside = await thrown(() => t.at(2).tolist());
    return out;
  },

  /** Writes through views, lazy and realized; who computed before sees the old value. */
  async views({ Tensor }) {
    const out = {};
    for (const lazy of [true, false]) {
      const memory = Tensor.zeros(2, 3).contiguous();
      if (!lazy) memory.realize();
      const [row, column, before] = [memory.at(1), memory.permute(1, 0).at(0), memory.add(1)];
      row.assign(new Tensor([1, 2, 3]));
      column.setAt([0], 9);
      out[lazy ? "lazy" : "realized"] = await Promise.all(
        [memory, row, column, before].map((t) => t.tolist()),
      );
    }
    out.twice = await thrown(async () => {
      const repeated = Tensor.ones(1).contiguous().realize().expand(3);
      repeated.assign(new Tensor([1, 2, 3]));
      await repeated.tolist();
    });
    return out;
  },

  async autograd({ Tensor }) {
    const w = new Tensor([1, 2, 3], { requiresGrad: true });
    w.mul(w).sum().backward();
    const [g] = w.pow(3).sum().gradient(w);
    const [second] = g.sum().gradient(w);
    const free = Tensor.noGrad(() => w.mul(2));
    await free.ready();
    const first = await w.grad.tolist();
    w.grad = null;
    w.exp().sum().backward();
    return {
      first,
      g: await g.tolist(),
      second: await second.tolist(),
      free: free.requiresGrad,
      again: await w.grad.tolist(),
    };
  },

  async partsBySecondName({ Tensor }) {
    return thrown(() => Tensor.ones(2, 3).unbind({ axis: 1 }));
  },

  /** Shapes and dtypes at once, in a worker, too. */
  async shapes({ Tensor, nn, optim, compileStep, TinyJit, slice }) {
    class Net {
      hidden = new nn.Linear(4, 8);
      out = new nn.Linear(8, 3);
      inside = [];
      forward(x) {
        const hidden = this.hidden.forward(x).relu();
        this.inside.push(hidden.shape);
        return this.out.forward(hidden.reshape(hidden.shape[0], -1));
      }
    }
    const net = new Net();
    const x = new Tensor(rows(6, 4));
    const y = new Tensor([0, 1, 2, 0, 1, 2], { dtype: "int32" });
    const opt = new optim.SGD(nn.state.getParameters(net), 0.1);
    const step = compileStep(
      (model, a, b) => {
        const out = model.forward(a);
        return [out.crossEntropy(b), out];
      },
      net,
      opt,
      x,
      y,
    );
    const [loss, out] = step.run(x, y);
    const double = TinyJit((a) => a.mul(2).sum(0));
    const tensors = {
      made: x,
      bytes: new Tensor(new Uint8Array(8), { shape: [2, 4] }),
      cast: new Tensor([1.5], { dtype: "float16" }),
      copy: new Tensor(x, { dtype: "float64" }),
      flat: new Tensor([1, 2, 3, 4], { shape: [2, -1] }),
      zeros: Tensor.zeros(2, 3),
      added: x.add(1),
      broadcast: x.unsqueeze(1).mul(x),
      summed: x.sum({ axis: -1, keepdim: true }),
      matmul: x.matmul(x.T),
      picked: x.at(slice(1, 3), null, 0),
      step: out,
      loss,
      jit: [0, 1, 2].map(() => double(x))[2],
      gradient: x.square().sum().gradient(x)[0],
      sorted: x.sort()[1],
      moved: x.to("INTERP"),
    };
    const known = {};
    const same = {};
    for (const [name, tensor] of Object.entries(tensors)) {
      const read = (get) => {
        try {
          return get();
        } catch {
          return "unknown";
        }
      };
      const before = [read(() => tensor.shape), read(() => tensor.dtype), read(() => tensor.device)];
      await tensor.ready();
      const after = [tensor.shape, tensor.dtype, tensor.device];
      known[name] = before;
      same[name] = before.every((value, i) => value === "unknown" || String(value) === String(after[i]));
    }
    return { known, same, inside: net.inside };
  },
};
