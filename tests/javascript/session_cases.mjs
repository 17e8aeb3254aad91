/**
 * What JavaScript shares with Python: errors, memory, lifetimes, answers and what consoles show, case by case,
 * as in cases.mjs.
 */

import { thrown } from "./case_helpers.mjs";

export const sessionCases = {
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
    found.names = await thrown(() => python("1", { "a-b": 1 }));
    return { ...found, classes, silent: silent.name, then: await t.sum().item() };
  },

  async pythonValues({ Tensor, TinyJit, nn, python }) {
    const x = new Tensor([1, 2]);
    const layer = new nn.Linear(2, 3);
    const doubled = TinyJit((t) => t.mul(2));
    await doubled(x).tolist();
    await doubled(x).tolist();
    return {
      tensor: await python("(x * 10).tolist()", { x: x.add(1) }),
      object: await python("[*layer.weight.shape]", { layer }),
      plain: await python("[n + 1, text, list(more['a'])]", { n: 1, text: "é", more: { a: [1, 2.5] } }),
      captured: await python("captured.captured", { captured: doubled }),
      later: await python("n + 1"),
    };
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

  async lifetimes({ Tensor, nn, scope, dispose, python }) {
    // Of this case alone: tensors with an axis of 7 that were not there before. Earlier ones may be freed at any time.
    await python(`
import weakref
from polygrad.tensor.core.registry import live_tensors
earlier = {id(t): weakref.ref(t) for t in live_tensors()}
def is_new(t):
  return 7 in t.shape and (id(t) not in earlier or earlier[id(t)]() is not t)
`);
    const count = () => python("sum(is_new(t) for t in live_tensors())");
    const seven = () => new Tensor([1, 2, 3, 4, 5, 6, 7]);
    const settle = () => new Promise((resolve) => setTimeout(resolve, 20));
    const kept = scope(() => {
      const a = seven();
      const b = a.add(1).mul(2);
      const c = a.exp().keep();
      return { b, list: [c] };
    });
    await settle();
    const inScope = await count();
    const values = await kept.b.tolist();
    dispose(kept);
    await settle();
    const afterwards = await count();
    const layer = new nn.Linear(7, 7);
    const withLayer = await count();
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
      during = await count();
      return { b };
    });
    const failing = scope(async () => {
      const a = seven();
      await tick();
      throw new RangeError(`after ${a.numel()}`);
    });
    const failed = await thrown(() => failing);
    await settle();
    const asynchronous = { during, after: await count(), failed, b: await result.b.tolist() };
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
    const end = await count();
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

  async pictures({ Tensor, pictures }) {
    const x = new Tensor([
      [1, 2.5],
      [3, 4],
    ]);
    return {
      chart: await pictures.chart({ loss: [3, 1, 2] }, { title: "a", xLabel: "epoch", log: true }),
      histogram: await pictures.histogram(x.mul(2), { bins: 2, title: "b" }),
      numbers: await pictures.histogram([1, 2, 2, 3]),
      heatMap: await pictures.heatMap(x),
      image: await pictures.image(new Uint8Array([0, 128, 255]), {}).catch(({ name }) => name),
      pixels: await pictures.image(new Tensor([[0, 128, 255]], { dtype: "uint8" }), { title: "c" }),
      wrong: await thrown(() => pictures.histogram(x, { bin: 3 })),
      shape: await thrown(() => pictures.heatMap(x.flatten())),
    };
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
};
