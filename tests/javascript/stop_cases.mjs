/** What an AbortSignal stops, and what is left afterwards: cases for test_stops.py, as in cases.mjs. */

const WIDTH = 320;

/** When steps are stopped, as fractions of their time. */
const PARTS = [0.1, 0.3, 0.6, 0.8, 0.9, 0.95];

/** A model whose step takes long, and a batch. */
function makeTask({ Tensor, nn }, rows = 1024) {
  Tensor.manualSeed(1);
  class Net {
    layers = Array.from({ length: 5 }, () => new nn.Linear(WIDTH, WIDTH));

    forward(x) {
      for (const layer of this.layers) x = layer.forward(x).relu().dropout(0.1);
      return x;
    }
  }
  return { model: new Net(), x: Tensor.rand(rows, WIDTH).realize() };
}

const lossOf = (model, x) => model.forward(x).square().mean();

/** What a promise came to, and when; `signal` is aborted after `delay` milliseconds. */
async function stopped(delay, run) {
  const controller = new AbortController();
  const started = performance.now();
  let asked;
  setTimeout(() => {
    asked = performance.now();
    controller.abort();
  }, delay);
  try {
    await run(controller.signal);
    return { outcome: "resolved", seconds: (performance.now() - started) / 1000 };
  } catch (error) {
    return { outcome: error.name, seconds: (performance.now() - asked) / 1000 };
  }
}

async function stateOf({ nn }, ...parts) {
  const values = await Promise.all(
    parts.flatMap((part) => Object.values(nn.state.getStateDict(part)).map((t) => t.data())),
  );
  return values.map((data) => data.reduce((sum, value, i) => sum + Number(value) * ((i % 97) + 1), 0));
}

export const stopCases = {
  /** Steps that are stopped at some time each: parameters and state are always those of as many whole steps. */
  async stepStops(pg) {
    const { nn, compileStep } = pg;
    const never = new AbortController().signal;
    const prepare = async () => {
      const { model, x } = makeTask(pg);
      const opt = await new nn.optim.Adam(nn.state.getParameters(model), { lr: 0.01 }).ready();
      return { step: compileStep(lossOf, model, opt, x), x, state: () => stateOf(pg, model, opt) };
    };
    const plain = await prepare();
    const states = [String(await plain.state())];
    let whole = Infinity;
    for (let i = 0; i < PARTS.length + 1; i++) {
      const started = performance.now();
      await plain.step.run(plain.x, { signal: never });
      whole = Math.min(whole, (performance.now() - started) / 1000);
      states.push(String(await plain.state()));
    }
    const { step, x, state } = await prepare();
    const early = await step.run(x, { signal: AbortSignal.abort(new RangeError("mine")) }).catch((e) => e);
    const found = { whole, stops: [], early: [early.name, early.message] };
    let steps = 0;
    for (const part of PARTS) {
      const stop = await stopped(1000 * part * whole, (signal) => step.run(x, { signal }));
      if (stop.outcome === "resolved") steps++;
      found.stops.push({ part, ...stop, same: String(await state()) === states[steps] });
    }
    const loss = await step.run(x, { signal: never });
    return { ...found, same: String(await state()) === states[steps + 1], loss: await loss.item() };
  },

  /** A signal ends only the call that has it, also one that waits behind another. */
  async callsInTurn(pg) {
    const { Tensor, TinyJit } = pg;
    const counter = Tensor.zeros(2).contiguous().realize();
    const count = TinyJit((by) => counter.assign(counter.add(by)).realize());
    const one = new Tensor([1, 1]).realize();
    const none = new AbortController().signal;
    for (let i = 0; i < 2; i++) await count.run([one], { signal: none });
    const last = new AbortController();
    const calls = [count.run([one], { signal: none }), count.run([one], { signal: last.signal })];
    const after = count(one);
    last.abort();
    const settled = await Promise.allSettled(calls);
    return {
      settled: settled.map(({ status, reason }) => reason?.name ?? status),
      values: await after.tolist(),
      counter: await counter.tolist(),
      options: await count.run([one], { signals: none }).catch(({ message }) => message),
    };
  },

  /** A run that is stopped in the middle of a step writes a checkpoint, from which it goes on to the same end. */
  async fitStops(pg, { folder }) {
    const { Tensor, nn, fit } = pg;
    const train = async (seconds) => {
      const { model, x } = makeTask(pg);
      const data = [x, Tensor.zeros(...x.shape)];
      const optimizer = new nn.optim.Adam(nn.state.getParameters(model), { lr: 0.01 });
      const options = { loss: "mse", batchSize: x.shape[0], epochs: 3, seed: 3, optimizer };
      const found = { times: [] };
      if (seconds !== undefined) {
        options.checkpoints = { folder: folder("stopped") };
        const controller = new AbortController();
        const abort = () => {
          found.asked = performance.now();
          controller.abort();
        };
        // early in the second step, also if the one that was measured was slow
        const onEpoch = () => void setTimeout(abort, Math.min(300 * seconds, 50));
        const run = fit(model, data, { ...options, onEpoch, signal: controller.signal });
        found.outcome = (await run.catch((error) => error)).name;
        found.seconds = (performance.now() - found.asked) / 1000;
        options.resume = true;
      }
      const onEpoch = () => void found.times.push(performance.now() / 1000);
      const { history } = await fit(model, data, { ...options, onEpoch });
      return { ...found, history, state: await stateOf(pg, model) };
    };
    const plain = await train();
    const whole = plain.times[2] - plain.times[1];
    const { outcome, seconds, ...found } = await train(whole);
    const equal =
      `${plain.state}` === `${found.state}` && `${plain.history.loss}` === `${found.history.loss}`;
    return { outcome, seconds, whole, left: found.times.length, equal };
  },
};
