/**
 * The JavaScript API, case by case, for every host: `cases[name](pg, host)` gives plain data, which test_api.py compares
 * with what Python computes. `host`: { worker, url } (url: where a page's files are; a path in Node).
 */

import { makeNet, rows, thrown } from "./case_helpers.mjs";
import { fileCases } from "./file_cases.mjs";
import { trainingCases } from "./training_cases.mjs";
import { transformCases } from "./transform_cases.mjs";

export const cases = {
  ...fileCases,
  ...trainingCases,
  ...transformCases,

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

  async state({ Tensor, nn }, { url }) {
    Tensor.manualSeed(3);
    const net = makeNet(nn);
    const own = nn.state.getStateDict(net);
    const bytes = await nn.state.safeSave({ ...own, n: new Tensor([1n, 2n]) }, { made: "here" });
    const back = await nn.state.safeLoad(bytes);
    const other = makeNet(nn);
    delete back.n;
    await nn.state.loadStateDict(other, back);
    const progress = [];
    const digits = await nn.state.safeLoad(`${url}/digits.safetensors`, {
      onProgress: (event) => progress.push(event),
    });
    const shapes = {};
    for (const [name, t] of Object.entries(digits)) shapes[name] = [(await t.ready()).shape, t.dtype];
    const sums = {};
    for (const [name, t] of Object.entries(digits)) sums[name] = Number(await t.cast("int32").sum().item());
    const last = progress.at(-1);
    const stop = new AbortController();
    const enough = {
      signal: stop.signal,
      onProgress: () => stop.abort(new RangeError("enough")),
    };
    const cut = bytes.slice(0, bytes.length - 3);
    return {
      names: Object.keys(own),
      size: bytes.length,
      same:
        JSON.stringify(await other.hidden.weight.tolist()) ===
        JSON.stringify(await net.hidden.weight.tolist()),
      shapes,
      sums,
      progress: [last.stage, last.fraction, last.loaded === last.total],
      stopped: await thrown(() => nn.state.safeLoad(`${url}/digits.safetensors`, enough)),
      early: await thrown(() => nn.state.safeLoad(bytes, { signal: AbortSignal.abort() })),
      unknown: await thrown(() => nn.state.loadStateDict(net, { odd: new Tensor([1]) })),
      cut: await thrown(() => nn.state.safeLoad(cut)),
      missing: await thrown(() => nn.state.safeLoad(`${url}/nowhere.safetensors`)),
    };
  },

  async errors({ Tensor, nn, Device, errors, python, setNumThreads }) {
    const t = new Tensor([1, 2]);
    const found = {
      shape: await thrown(() =>
        t
          .add(new Tensor([1, 2, 3]))
          .sum()
          .item(),
      ),
      axis: await thrown(() => t.sum(3).item()),
      dtype: await thrown(() => t.cast("odd").item()),
      argument: await thrown(() => t.sum({ colour: 1 }).item()),
      missing: await thrown(() => new nn.Linear(1).ready()),
      ragged: await thrown(() => new Tensor([[1], [2, 3]])),
      overflow: await thrown(() => new Tensor([300], { dtype: "uint8" })),
      gradient: await thrown(() => t.gradient(t)[0].item()),
      device: await thrown(() => t.to("TPU").item()),
      item: await thrown(() => t.item()),
      python: await thrown(() => python("import nowhere")),
      zero: await thrown(() => python("1 / 0")),
      key: await thrown(() => python("{}['b']")),
      kind: await thrown(() => python("'a' + 1")),
      todo: await thrown(() => python("raise NotImplementedError")),
      type: (await python("import nowhere").catch((error) => error)).type,
      afterwards: await t.sum().item(),
    };
    const gone = new Tensor([1]);
    gone.dispose();
    found.disposed = await thrown(() => gone.add(1));
    const bad = await (async () => t.add(new Tensor([1, 2, 3])).tolist())().catch((error) => error);
    const classes = [
      bad instanceof errors.ShapeError,
      bad instanceof errors.PolygradError,
      bad instanceof errors.AxisError,
    ];
    // An operation without a result: the next answer is its error, and only that.
    const silent = await thrown(async () => {
      setNumThreads(0);
      await t.sum().item();
    });
    found.defaultDevice = await thrown(() => (Device.default = "TPU"));
    return { ...found, classes, silent: silent.name, then: await t.sum().item() };
  },

  async memory({ Tensor, errors, python, Device }) {
    await python(
      "from polygrad import Device; limit = Device['WASM'].heap.limit; Device['WASM'].heap.limit = 64 * 2**20",
    );
    const large = Tensor.ones(2 ** 25)
      .add(Tensor.rand(1))
      .contiguous();
    const error = await large.data().catch((e) => e);
    large.dispose();
    const smaller = await Tensor.ones(10).add(1).sum().item();
    // Far more than there is room for, in tensors that nobody keeps.
    const a = Tensor.rand(2 ** 20).realize();
    const b = Tensor.rand(2 ** 20).realize();
    for (let i = 0; i < 40; i++) await a.add(b).data();
    await python("Device['WASM'].heap.limit = limit");
    return [error.name, error instanceof errors.OutOfMemoryError, smaller, Device.default];
  },

  async partsBySecondName({ Tensor }) {
    return thrown(() => Tensor.ones(2, 3).unbind({ axis: 1 }));
  },

  /** The shape of a layer's result after its weight was assigned. */
  async assigned({ Tensor, nn }) {
    const layer = new nn.Linear(3, 4);
    layer.weight = Tensor.ones(5, 3);
    layer.bias = Tensor.ones(5);
    const y = await layer.forward(Tensor.ones(2, 3)).ready();
    let atOnce;
    try {
      atOnce = layer.forward(Tensor.ones(2, 3)).shape;
    } catch {
      atOnce = y.shape; // a worker has to be asked
    }
    return [atOnce, y.shape];
  },

  async lifetimes({ Tensor, nn, scope, dispose, python }) {
    // Of this case alone: tensors with an axis of 7. Others may be freed at any time.
    const count = () =>
      python(
        "from polygrad.tensor.core.registry import live_tensors; sum(7 in t.shape for t in live_tensors())",
      );
    const seven = () => new Tensor([1, 2, 3, 4, 5, 6, 7]);
    const settle = () => new Promise((resolve) => setTimeout(resolve, 20));
    await settle();
    const start = await count();
    const kept = scope(() => {
      const a = seven();
      const b = a.add(1).mul(2);
      const c = a.exp().keep();
      return { b, list: [c] };
    });
    await settle();
    const inScope = (await count()) - start;
    const values = await kept.b.tolist();
    dispose(kept);
    await settle();
    const afterwards = (await count()) - start;
    const layer = new nn.Linear(7, 7);
    const withLayer = (await count()) - start;
    layer.dispose();
    await settle();
    const nested = scope(() => scope(seven).add(1));
    const deep = await nested.tolist();
    nested.dispose();
    const tick = () => new Promise((resolve) => setTimeout(resolve, 5));
    let during;
    const result = await scope(async () => {
      const a = seven();
      await tick();
      const b = scope(() => a.add(1).mul(2));
      await b.data();
      during = (await count()) - start;
      return { b };
    });
    const failing = scope(async () => {
      const a = seven();
      await tick();
      throw new RangeError(`after ${a.numel()}`);
    });
    const failed = await thrown(() => failing);
    await settle();
    const asynchronous = { during, after: (await count()) - start, failed, b: await result.b.tolist() };
    result.b.dispose();
    // A scope that ends while a later one goes on keeps what it returns.
    const first = scope(async () => (await tick(), [seven()]));
    const second = scope(async () => (await first, await tick(), seven()));
    const [ofFirst, ofSecond] = [(await first)[0], await second];
    const overlapping = [ofFirst.disposed, ofSecond.disposed];
    dispose(ofFirst, ofSecond);
    {
      const t = seven();
      t[Symbol.dispose ?? Symbol.for("Symbol.dispose")]();
    }
    await settle();
    const end = (await count()) - start;
    return { inScope, values, afterwards, withLayer, deep, asynchronous, overlapping, end };
  },

  async questions(pg, { worker }) {
    const { Tensor, Device, getNumThreads, setNumThreads, python } = pg;
    const t = new Tensor([[1, 2, 3]]);
    const before = worker ? await thrown(() => t.median().shape) : null;
    await t.ready();
    const threads = await getNumThreads();
    setNumThreads(1);
    const one = await getNumThreads();
    setNumThreads(threads);
    const old = Device.default;
    Device.default = "interp";
    const there = await new Tensor([1]).ready();
    Device.default = old;
    const here = await there.to(old).ready();
    const list = await python("[1, 'a', None, {'b': 2.5}]");
    return {
      before,
      known: [
        t.shape,
        t.ndim,
        t.numel(),
        t.size(-1),
        t.elementSize(),
        t.nbytes(),
        t.isFloatingPoint(),
        t.dtype,
        t.device,
      ],
      one,
      devices: [old, there.device, here.device, Device.default],
      available: await Device.available(),
      sync: worker
        ? ["dataSync", "tolistSync", "itemSync"].filter((name) => name in pg || name in t)
        : [Array.from(pg.dataSync(t)), pg.itemSync(t.sum()), pg.tolistSync(t)],
      list: [list[0], list[1], list[2] ?? null],
      instance: [t instanceof Tensor, t.add(1) instanceof Tensor, {} instanceof Tensor],
      pixels: await Tensor.fromImage(
        { width: 2, height: 1, data: Uint8Array.from([1, 2, 3, 4, 5, 6, 7, 8]) },
        { channels: 3 },
      ).tolist(),
    };
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

  /** What consoles show. `Symbol.for` has the name by which Node asks. */
  async shown({ Tensor, nn, optim }, { worker }) {
    const show = (x) => x[Symbol.for("nodejs.util.inspect.custom")](2, {}, JSON.stringify);
    const t = new Tensor([
      [1, 2.5],
      [3, 4],
    ]);
    const layer = new nn.Linear(2, 3, { bias: false });
    const lines = [];
    const { log } = console;
    console.log = (line) => lines.push(line);
    try {
      await t.mul(2).print();
    } finally {
      console.log = log;
    }
    const gone = new Tensor([1]);
    gone.dispose();
    return {
      tensor: show(t),
      text: `${t}`,
      unknown: show(t.median()).split("\n")[0],
      layer: [show(layer), show(new optim.SGD(nn.state.getParameters(layer), 0.5))],
      gone: show(gone),
      lines,
      formatter: globalThis.devtoolsFormatters?.map(({ header, hasBody, body }) => [
        header(t),
        hasBody(t),
        hasBody(t) && body(t),
        header({}),
      ]),
      worker,
    };
  },

  async subclasses({ Tensor, nn, optim }) {
    Tensor.manualSeed(3);
    class Activated extends nn.Linear {
      norm = new nn.LayerNorm(3);
      #calls = 0;

      forward(x) {
        this.#calls++;
        return this.norm.forward(super.forward(x)).relu();
      }

      get calls() {
        return this.#calls;
      }

      state() {
        return "its own";
      }
    }
    class Counted extends optim.SGD {
      steps = 0;

      step() {
        this.steps++;
        return super.step();
      }
    }
    class Vector extends Tensor {
      twice() {
        return this.mul(2);
      }
    }
    const layer = new Activated(2, 3);
    const x = new Tensor([[1, -2]]);
    const expected = await x.matmul(layer.weight.transpose()).add(layer.bias).layernorm().relu().tolist();
    const weight = new Tensor([1, 1]);
    const optimizer = new Counted([weight], { lr: 0.5 });
    Tensor.train(() => {
      weight.sum().backward();
      optimizer.step();
    });
    const vector = new Vector([1, 2]);
    class Named extends Activated {
      number = 7;
      session = "mine";
      owner = null;
    }
    class Wide extends nn.Linear {
      constructor(size) {
        super(size, 2 * size, { bias: false });
        this.size = size;
      }
    }
    const named = new Named(2, 3);
    const wide = new Wide(2);
    return {
      own: [await layer.forward(x).tolist(), await x.sequential([layer]).tolist()],
      expected,
      calls: layer.calls,
      state: [layer.state(), Object.keys(nn.state.getStateDict(layer))],
      names: [Activated.name, layer.constructor.name, nn.Linear.name, Tensor.name],
      instances: [
        [layer instanceof Activated, layer instanceof nn.Linear, layer instanceof nn.LayerNorm],
        [new nn.Linear(2, 3) instanceof Activated, new nn.Linear(2, 3) instanceof nn.Linear],
        [vector instanceof Vector, vector instanceof Tensor, x instanceof Vector, x.add(1) instanceof Tensor],
        [optimizer instanceof Counted, optimizer instanceof optim.SGD, {} instanceof nn.Linear],
      ],
      optimizer: [optimizer.steps, await weight.tolist()],
      vector: await vector.twice().tolist(),
      made: await Vector.zeros(2).tolist(),
      named: [named.number, named.session, (await named.forward(x).ready()).shape, named.calls],
      wide: [wide.size, (await wide.weight.ready()).shape, wide.bias, wide instanceof Wide],
      called: await thrown(() => nn.Linear(2, 3)),
    };
  },

  async models({ Tensor, nn, optim, scope, dispose, compileStep, TinyJit }) {
    const layer = () => new nn.Linear(2, 2, { bias: false });
    const names = (model, prefix) => Object.keys(nn.state.getStateDict(model, prefix));
    class Private {
      #hidden = layer();
      forward(x) {
        return this.#hidden.forward(x);
      }
    }
    class Visible {
      #hidden = layer();
      #more = [layer(), layer()];
      weight = Tensor.ones(2);
      evaluations = 0;

      get hidden() {
        return this.#hidden;
      }
      get layers() {
        return [...this.#more];
      }
      get scale() {
        return this.weight; // a property's tensor: no second name
      }
      get normalised() {
        return this.weight.div(2); // computed: no state
      }
    }
    class Derived extends Visible {
      get hidden() {
        return super.hidden;
      }
      own = layer();
    }
    class Relu {
      forward(x) {
        return x.relu();
      }
    }
    const map = scope(() => new Map([["a", Tensor.ones(2).mul(3)]]));
    const set = scope(() => new Set([Tensor.ones(2).mul(4)]));
    const kept = [await map.get("a").tolist(), await [...set][0].tolist()];
    dispose(map, set);
    const jit = TinyJit((x) => new Map([["y", x.add(1)]]));
    return {
      names: {
        map: names(new Map([["a", layer()]])),
        set: names(new Set([layer(), { bias: Tensor.ones(1) }])),
        visible: names(new Visible()),
        derived: names({ net: new Derived() }),
        literal: names({
          get layer() {
            return this.made;
          },
          made: layer(),
        }),
        plainLayer: names([new nn.LayerNorm(2, 1e-5, false), layer(), new Relu()]),
        empty: names([]),
        prefix: names([layer()], "net"),
      },
      parameters: nn.state.getParameters(new Visible()).length,
      private: await thrown(() => nn.state.getParameters(new Private())),
      inside: await thrown(() => nn.state.getStateDict([new Private()])),
      saved: await thrown(() => nn.state.loadStateDict(new Private(), {})),
      none: await thrown(() => nn.state.getParameters(new Relu())),
      undefined: await thrown(() => nn.state.getParameters(undefined)),
      closure: await thrown(() => nn.state.getParameters((x) => x)),
      step: await thrown(() => {
        const net = layer();
        const opt = new optim.SGD([net.weight]);
        return names(compileStep((net, x) => net.forward(x).sum(), net, opt, Tensor.ones(2)));
      }),
      kept,
      disposed: [map.get("a").disposed, [...set][0].disposed],
      jit: await thrown(async () => jit(Tensor.ones(1)).get("y").data()),
    };
  },

  async layers({ Tensor, nn, optim }) {
    Tensor.manualSeed(3);
    const net = {
      block: new nn.TransformerBlock(4, 2, { activation: "relu" }),
      lstm: new nn.LSTM(4, 3, { bidirectional: true }),
      gru: new nn.GRU(6, 4, 2),
      conv: new nn.Conv1d(2, 3, 2, { padding: "same" }),
      up: new nn.ConvTranspose1d(3, 2, 2, { stride: 2 }),
      attention: new nn.MultiheadAttention(4, 2, { batchFirst: true }),
    };
    for (const part of Object.values(net)) await part.ready();
    nn.init.kaimingNormal_(net.conv.weight, { mode: "fan_out", nonlinearity: "relu" });
    const opt = new optim.RMSprop(nn.state.getParameters(net), { lr: 0.01, momentum: 0.5 });
    opt.clipGradients(0.5);
    const schedule = new optim.SequentialLR(
      opt,
      [new optim.LinearLR(opt, 0.5, { totalIters: 2 }), new optim.ExponentialLR(opt, 0.5)],
      [2],
    );
    const x = new Tensor([rows(3, 4), rows(3, 4)]);
    const found = [];
    await Tensor.train(async () => {
      for (let i = 0; i < 4; i++) {
        opt.zeroGrad();
        const [out, [h, c]] = net.lstm.forward(net.block.forward(x, { isCausal: true }));
        const [sequence, last] = net.gru.forward(out);
        const image = net.up.forward(net.conv.forward(sequence.permute(1, 2, 0).reshape(3, 2, 4)));
        const [attended, weights] = net.attention.forward(x, x, x);
        const loss = image.square().mean().add(h.sum()).add(c.mean()).add(last.sum()).add(attended.sum());
        loss.backward();
        opt.step();
        schedule.step();
        found.push([await loss.item(), await opt.lr.item(), (await weights.ready()).shape]);
      }
    });
    const norm = optim.clipGradNorm_(nn.state.getParameters(net), 0.1);
    return { found, norm: await norm.item(), names: Object.keys(nn.state.getStateDict(net)) };
  },

  async sequential({ Tensor, nn }) {
    Tensor.manualSeed(1);
    const layers = [new nn.Linear(2, 3), (x) => x.relu(), new nn.RMSNorm(3)];
    const x = new Tensor([[1, 2]]);
    const names = Object.keys(nn.state.getStateDict({ layers, more: new Map([["w", x]]) }));
    return [await x.sequential(layers).tolist(), names];
  },
};
