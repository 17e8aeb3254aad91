/** Layers, the state of models and classes of the user's, case by case, as in cases.mjs. */

import { makeNet, rows, thrown } from "./case_helpers.mjs";

export const modelCases = {
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
