/** Training and captured functions, case by case, as in cases.mjs. */

import { makeNet, rows, thrown } from "./case_helpers.mjs";

export const trainingCases = {
  async training({ Tensor, nn, optim }) {
    Tensor.manualSeed(7);
    const net = makeNet(nn);
    const opt = new optim.AdamW(nn.state.getParameters(net), 0.05, { weightDecay: 0.1 });
    const x = new Tensor(rows(6, 4));
    const y = new Tensor([0, 1, 2, 0, 1, 2], { dtype: "int32" });
    const losses = [];
    const before = Tensor.training;
    await Tensor.train(async () => {
      for (let i = 0; i < 10; i++) {
        opt.zeroGrad();
        const loss = net.forward(x).crossEntropy(y, { labelSmoothing: 0.1 }).backward();
        opt.step();
        losses.push(await loss.item());
      }
    });
    return {
      losses,
      modes: [before, Tensor.training],
      names: Object.keys(nn.state.getStateDict(net)),
      eps: (await net.norm.ready()).eps,
      noBias: net.out.bias,
      final: await net.forward(x).tolist(),
    };
  },

  async compileStep({ Tensor, nn, optim, compileStep }) {
    Tensor.manualSeed(7);
    const net = makeNet(nn);
    const opt = new optim.SGD(nn.state.getParameters(net), { lr: 0.1, momentum: 0.9 });
    const x = new Tensor(rows(6, 4));
    const y = new Tensor([0, 1, 2, 0, 1, 2], { dtype: "int32" });
    const modes = [];
    const step = compileStep(
      (model, a, b) => {
        modes.push(Tensor.training);
        const out = model.forward(a);
        return [out.crossEntropy(b), out.argmax(1)];
      },
      net,
      opt,
      x,
      y,
    );
    const losses = [];
    let guesses;
    for (let i = 0; i < 10; i++) {
      const [loss, found] = step.run(x, y);
      losses.push(await loss.item());
      guesses = await found.tolist();
    }
    const state = Object.keys(nn.state.getStateDict(await opt.ready()));
    // The same inputs in every form that there is.
    opt.lr.assign(new Tensor([0]));
    const flat = new Float32Array(rows(6, 4).flat());
    const forms = [];
    for (const [a, b] of [
      [rows(6, 4), [0, 1, 2, 0, 1, 2]],
      [flat, new Int32Array([0, 1, 2, 0, 1, 2])],
      [flat.buffer, y],
      [x, [0n, 1n, 2n, 0n, 1n, 2n].map(Number)],
    ]) {
      const [loss, found] = step.run(a, b);
      forms.push([await loss.item(), await found.tolist(), found.shape]);
    }
    step.run(x, y);
    await step.ready();
    const file = await step.save(["images", "labels"]);
    const { launches, seconds, text } = await step.profile(0.01);
    const profiled = launches.length === step.nKernels && seconds > 0 && text.includes(launches[0].name);
    return {
      losses,
      guesses,
      modes,
      file: ["PGRD", "images", "labels", "hidden.weight", "optimizer.lr", "loss"].filter((word) =>
        new TextDecoder("latin1").decode(file).includes(word),
      ).length,
      profiled,
      kernels: step.nKernels,
      loss: await step.lossValue(),
      state,
      forms,
      wrongCount: await thrown(() => step.run(flat.subarray(1), y)[0].item()),
      wrongRows: await thrown(() => step.run(rows(4, 6), y)[0].item()),
      wrongDType: await thrown(() => step.run(new Float64Array(24), y)[0].item()),
      ragged: await thrown(() => step.run([[1], [2, 3]], y)),
      one: await thrown(() => step.run(x)[0].item()),
      wrongShape: await thrown(() => step.run(new Tensor([1]), y)[0].item()),
      noLoss: await thrown(() => compileStep((model, a) => model.forward(a), net, opt, x).ready()),
      throws: await thrown(() =>
        compileStep(
          () => {
            throw new RangeError("mine");
          },
          net,
          opt,
          x,
        ),
      ),
    };
  },

  async fit({ Tensor, nn, fit }) {
    const start = () => {
      Tensor.manualSeed(7);
      return makeNet(nn);
    };
    const net = start();
    const x = rows(37, 4);
    const y = new Int32Array(x.map((_, i) => i % 3));
    const options = {
      loss: "crossEntropy",
      metrics: ["accuracy"],
      epochs: 4,
      batchSize: 8,
      validation: 0.2,
    };
    let checkpoint;
    const seen = [];
    const onEpoch = async (state) => {
      seen.push(state.epoch);
      if (state.epoch === 2) checkpoint = await state.checkpoint();
    };
    const { history } = await fit(net, [x, y], { ...options, onEpoch });
    const again = start();
    const resumed = await fit(again, [x, y], { ...options, resume: checkpoint });
    const same = JSON.stringify(await again.out.weight.tolist());
    const stopped = await fit(start(), [x, y], { ...options, onEpoch: ({ epoch }) => epoch < 2 });
    const controller = new AbortController();
    const abort = { signal: controller.signal, onEpoch: () => controller.abort(new Error("enough")) };
    const aborted = await thrown(() => fit(start(), [x, y], { ...options, ...abort }));
    const own = (prediction, target) => prediction.crossEntropy(target);
    const withOwn = await fit(start(), [x, y], { ...options, loss: own });
    const errors = [];
    for (const wrong of [{ loss: "nothing" }, { epochs: -1 }, { loss: (p) => p }, { loss: "mse" }]) {
      errors.push((await thrown(() => fit(start(), [x, y], { ...options, ...wrong }))).name);
    }
    return {
      history,
      final: await net.forward(new Tensor(x.slice(0, 3))).tolist(),
      resumed:
        same === JSON.stringify(await net.out.weight.tolist()) &&
        JSON.stringify(resumed.history) === JSON.stringify(history) &&
        JSON.stringify(withOwn.history) === JSON.stringify(history),
      seen,
      stopped: [stopped.stopReason, stopped.history.loss.length],
      aborted: aborted.message,
      errors,
    };
  },

  async tinyJit({ Tensor, TinyJit, Variable, itemSync }, { worker }) {
    let calls = 0;
    const w = Tensor.full([2], 3).contiguous().realize();
    const f = TinyJit((x, scale) => {
      calls++;
      return { scaled: x.mul(w).mul(scale), parts: [x.sum(), "text"] };
    });
    const seen = [];
    for (let i = 0; i < 5; i++) {
      const { scaled, parts } = f(new Tensor([i, 1]), 2);
      seen.push([await scaled.tolist(), await parts[0].item(), parts[1], f.captured]);
    }
    w.assign(new Tensor([1, 1]));
    const after = await f(new Tensor([1, 1]), 2).scaled.tolist();
    const other = await thrown(() => f(new Tensor([1, 1]), 3).scaled.tolist());
    f.reset();
    const again = await f(new Tensor([1, 1]), 3).scaled.tolist();
    const inside = [];
    if (!worker) {
      const read = TinyJit((x) => itemSync(x.sum()));
      read.reset();
      for (let i = 0; i < 2; i++) inside.push(await thrown(() => read(new Tensor([1]))));
    }
    const table = Tensor.arange(10).contiguous().realize();
    const at = TinyJit((n) => table.at(n).mul(2));
    const n = new Variable("n", 0, 9);
    const bound = [];
    for (let i = 0; i < 4; i++) bound.push(await at(n.bind(i)).item());
    return { seen, calls, after, other, again, inside: inside[1]?.name, bound };
  },

  async fitEdges({ Tensor, nn, fit }) {
    const [x, y] = [rows(12, 4), new Int32Array(12)];
    const options = { loss: "crossEntropy", batchSize: 4 };
    const makeModel = (forward = (out, x) => out.forward(x)) => {
      const out = new nn.Linear(4, 3);
      return { out, forward: (x) => forward(out, x) };
    };
    const errors = [];
    for (const [model, given] of [
      [(x) => x, options],
      [null, options],
      [new nn.Linear(4, 3).weight.constructor, options],
      [{ out: new nn.Linear(4, 3) }, options],
      [makeModel(), undefined],
      [makeModel(), { ...options, batch_size: 4 }],
      [makeModel(), { ...options, loss: "constructor" }],
      [makeModel(), { ...options, metrics: "accuracy" }],
    ]) {
      errors.push(await thrown(() => fit(model, [x, y], given)));
    }
    const named = [];
    for (const given of [
      { batchSize: 0 },
      { schedulerInterval: "day" },
      { batchSize: 20, dropLast: true },
      { earlyStopping: { patients: 3 } },
      { earlyStopping: { monitor: "val_loss" } },
      { earlyStopping: 3 },
    ]) {
      named.push(await thrown(() => fit(makeModel(), [x, y], { ...options, ...given })));
    }
    const seen = [];
    const observed = makeModel((out, x) => {
      seen.push(Tensor.training);
      return out.forward(x);
    });
    let state;
    Tensor.training = true;
    await fit(observed, [x, y], { ...options, validation: [x, y], onEpoch: (s) => (state = s) });
    const trainingAfter = Tensor.training;
    Tensor.training = false;
    const late = await thrown(() => state.checkpoint());
    const own = await thrown(() =>
      fit(makeModel(), [x, y], {
        ...options,
        onEpoch() {
          throw new RangeError("mine");
        },
      }),
    );
    const run = (extra) => {
      Tensor.manualSeed(5);
      const dropped = makeModel((out, x) => out.forward(x.dropout(0.5)));
      return fit(dropped, [x, y], { ...options, epochs: 3, ...extra });
    };
    const { history } = await run({});
    const together = await Promise.all([run({}), run({})]);
    const same = together.map((one) => JSON.stringify(one.history) === JSON.stringify(history));
    return { errors, named, seen, trainingAfter, late, own, same };
  },

  /** Parts along an axis whose name this side does not know: how many they are, it cannot tell. */
  async learningRates({ Tensor, optim, compileStep }) {
    const weight = new Tensor([1, 1]);
    const opt = new optim.SGD([weight], 0.5);
    const step = compileStep((w) => w.sum(), weight, opt);
    const found = [];
    for (const lr of [0.5, 0.25, new Tensor([1])]) {
      opt.lr = lr;
      step.run();
      found.push([await opt.lr.item(), await weight.tolist()]);
    }
    opt.lr = 0.125;
    Tensor.train(() => {
      weight.sum().backward();
      opt.step();
    });
    return [...found, [await opt.lr.item(), await weight.tolist()]];
  },
};
