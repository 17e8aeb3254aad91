/** Data sets, and the checkpoints of runs on them, case by case, as in cases.mjs. `host.folder` is new; `host.files` lists one. */

import { rows, thrown } from "./case_helpers.mjs";

const COUNT = 37;
const POINTS = rows(COUNT, 4);
const KINDS = POINTS.map((_, i) => i % 3);
const CSV = `a,b,"kind, or so"\r\n${KINDS.map((k, i) => `${i},"${i / 4}",k${k}`).join("\r\n")}\r\n`;

const OPTIONS = { loss: "crossEntropy", metrics: ["accuracy"], epochs: 3, batchSize: 8 };

/** A model with dropout, the same each time. */
function makeModel({ Tensor, nn }) {
  Tensor.manualSeed(7);
  const [first, second] = [new nn.Linear(4, 8), new nn.Linear(8, 3)];
  return { first, second, forward: (x) => second.forward(first.forward(x).relu().dropout(0.25)) };
}

/** Batches of rows, as arrays. */
function* batchesOf(size = 8) {
  for (let i = 0; i < COUNT; i += size) {
    yield [POINTS.slice(i, i + size), new Int32Array(KINDS.slice(i, i + size))];
  }
}

async function* slowly(items) {
  for (const item of items) {
    await new Promise((resolve) => setTimeout(resolve, 1));
    yield item;
  }
}

const streamOf = (items) =>
  new ReadableStream({
    start(controller) {
      for (const item of items) controller.enqueue(item);
      controller.close();
    },
  });

const bytesOf = (text) => new TextEncoder().encode(text);

export const dataCases = {
  async dataSets({ nn }) {
    const read = async (batches) => {
      const out = [];
      for await (const [x, y] of batches) out.push([await x.tolist(), await y.tolist(), x.dtype, y.dtype]);
      return out;
    };
    const few = nn.data.fromExamples(
      [0, 1, 2].map((i) => [{ data: new Uint8Array([i, 9]), shape: [1, 2] }, i]),
      { dtypes: [undefined, "int32"] },
    );
    const options = { targets: "kind, or so", classes: ["k0", "k1", "k2"] };
    const loaded = [];
    for (const source of [
      bytesOf(CSV),
      new Blob([CSV]),
      streamOf([bytesOf(CSV.slice(0, 33)), bytesOf(CSV.slice(33))]),
    ]) {
      const [x, y] = await nn.data.fromCSV(source, options).load();
      loaded.push([x.shape, await x.sum().item(), await y.tolist(), x.dtype, y.dtype]);
    }
    const plain = nn.data.fromCSV(bytesOf("1;2;3\n4;5;6\n"), { targets: ["2", "0"], header: false });
    const own = nn.data.fromCSV(bytesOf("u,v\n1,x\n"), {
      example: ({ u, v }) => [[Number(u), v.length], Number(u) + 1],
    });
    const stream = nn.data.fromCSV(streamOf([bytesOf("a,b\n1,2\n")]), { targets: "b" });
    await stream.load();
    const wrong = (text, given = { targets: "b" }) =>
      thrown(() => nn.data.fromCSV(bytesOf(text), given).load());
    return {
      few: await read(few.batches({ batchSize: 2, shuffle: false })),
      shuffled: await read(few.batches({ batchSize: 3, seed: 1, epoch: 2 })),
      loaded,
      plain: await read(plain.batches({ shuffle: false })),
      own: await read(own.batches()),
      errors: {
        number: await wrong("a,b\n1,2\nx,3\n"),
        empty: await wrong("a,b\n1,\n"),
        ragged: await wrong("a,b\n1\n"),
        name: await wrong("a,c\n1,2\n"),
        classes: await wrong("a,b\n1,2\n", { targets: "b", classes: ["0", "1"] }),
        none: await wrong("a,b\n"),
        option: await wrong("a,b\n", { target: "b" }),
        both: await wrong("a,b\n", {}),
        quotes: await wrong('a,b\n1,"2\n'),
        again: await thrown(() => stream.load()),
        pair: await thrown(() => nn.data.fromExamples([[1, 2, 3]]).load()),
        shapes: await thrown(() =>
          nn.data
            .fromExamples([
              [[1], 2],
              [[1, 2], 2],
            ])
            .load(),
        ),
        elements: await thrown(() =>
          nn.data.fromExamples([[{ data: new Uint8Array(3), shape: [2] }, 0]]).load(),
        ),
        source: await thrown(() => nn.data.fromExamples(5)),
        batch: await thrown(() => few.batches({ batchSize: 0 }).next()),
      },
    };
  },

  async dataImages({ nn }) {
    const pixels = (value) => ({ data: new Uint8ClampedArray(16).fill(value), width: 2, height: 2 });
    const options = { width: 1, height: 2, channels: 1, classes: ["no", "yes"] };
    const images = nn.data.fromImages(
      [
        [pixels(255), "yes"],
        [pixels(0), 0],
      ],
      options,
    );
    const [x, y] = await images.load();
    const found = { x: await x.tolist(), y: await y.tolist(), label: "", size: "" };
    found.label = await thrown(() => nn.data.fromImages([[pixels(1), "perhaps"]], options).load());
    found.size = await thrown(() => nn.data.fromImages([], { width: 2 }));
    const canvas = typeof OffscreenCanvas === "undefined" ? null : new OffscreenCanvas(4, 4);
    const context = canvas?.getContext("2d"); // Deno has a canvas without
    if (!context) {
      found.file = await thrown(() => nn.data.fromImages([[new Blob(["x"]), 0]], options).load());
    } else {
      context.fillStyle = "rgb(255, 0, 51)";
      context.fillRect(0, 0, 4, 4);
      const file = await canvas.convertToBlob();
      const decoded = nn.data.fromImages([[file, 1]], { width: 2, height: 1 });
      found.file = await (await decoded.load())[0].tolist();
      found.damaged = await thrown(() => nn.data.fromImages([[new Blob(["x"]), 0]], options).load());
    }
    return found;
  },

  async fitData(pg) {
    const { Tensor, nn, fit } = pg;
    const examples = nn.data.fromExamples(
      POINTS.map((x, i) => [x, KINDS[i]]),
      { dtypes: ["float32", "int32"] },
    );
    const [x, y] = [POINTS, new Int32Array(KINDS)];
    const held = [x.slice(0, 11), y.slice(0, 11)];
    const run = async (data, extra = {}) => {
      const model = makeModel(pg);
      const { history } = await fit(model, data, { ...OPTIONS, shuffle: false, ...extra });
      return [history, await model.second.weight.tolist()];
    };
    const expected = await run([x, y], { validation: held });
    const heldBatches = () =>
      [
        [held[0].slice(0, 8), held[1].slice(0, 8)],
        [held[0].slice(8), held[1].slice(8)],
      ][Symbol.iterator]();
    const epochs = [];
    const same = {};
    for (const [name, data, validation] of [
      ["examples", examples, held],
      ["generator", (epoch) => (epochs.push(epoch), slowly(batchesOf())), heldBatches],
      ["set", new Set(batchesOf()), () => slowly(heldBatches())],
      ["tensors", () => Array.from(batchesOf(), ([a, b]) => [new Tensor(a), [new Tensor(b)]]), held],
      ["rows", [x, y], heldBatches],
      [
        "fraction",
        examples,
        nn.data.fromExamples(
          held[0].map((a, i) => [a, held[1][i]]),
          { dtypes: [undefined, "int32"] },
        ),
      ],
    ]) {
      same[name] = JSON.stringify(await run(data, { validation })) === JSON.stringify(expected);
    }
    const progress = [];
    const streamed = await run(streamOf([...batchesOf()]), {
      epochs: 1,
      onProgress: (p) => progress.push(p),
    });
    const split = [
      await run(examples, { validation: 0.3, shuffle: true, seed: 2 }),
      await run(examples, { validation: 0.3, shuffle: true, seed: 2 }),
    ];
    const failing = function* () {
      yield* batchesOf(20);
      throw new RangeError("mine");
    };
    const controller = new AbortController();
    setTimeout(() => controller.abort(new Error("enough")), 50);
    const never = () => ({ [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) });
    return {
      expected: expected[0],
      epochs,
      same,
      streamed: JSON.stringify(streamed[0].loss) === JSON.stringify(expected[0].loss.slice(0, 1)),
      last: progress.at(-1),
      split: [JSON.stringify(split[0]) === JSON.stringify(split[1]), Object.keys(split[0][0])],
      errors: {
        twice: await thrown(() => run(streamOf([...batchesOf()]))),
        fraction: await thrown(() => run(() => batchesOf(), { validation: 0.5 })),
        part: await thrown(() => run(examples, { validation: 1.5 })),
        rows: await thrown(() => run(() => [[x, y.slice(1)]])),
        pair: await thrown(() => run(() => [x])),
        none: await thrown(() => run(() => [])),
        kind: await thrown(() => run(5)),
        own: await thrown(() => run(failing)),
        never: await thrown(() => run(never, { signal: controller.signal })),
        noHeldOut: await thrown(() => run([x, y], { validation: () => [] })),
      },
    };
  },

  async progressBars({ nn, fit }, { progressBar }) {
    const few = { ...OPTIONS, batchSize: 4, validation: [POINTS.slice(0, 4), new Int32Array(4)] };
    const data = [POINTS, new Int32Array(KINDS)];
    if (typeof document === "undefined") {
      const lines = async (isTTY) => {
        const written = [];
        const onProgress = progressBar({ isTTY, write: (text) => written.push(text) });
        onProgress({ stage: "download", fraction: 0.5, loaded: 5e6, total: 1e7 });
        await fit(new nn.Linear(4, 3), data, { ...few, onProgress });
        return written;
      };
      return { live: await lines(true), plain: await lines(false) };
    }
    const element = document.createElement("div");
    const onProgress = progressBar(element);
    await fit(new nn.Linear(4, 3), data, { ...few, onProgress });
    const { value, max } = element.querySelector("progress");
    return { value, max, text: element.textContent, wrong: await thrown(() => progressBar(5)) };
  },

  async fitCheckpoints(pg, host) {
    const { nn, fit } = pg;
    const examples = nn.data.fromExamples(() => slowly(POINTS.map((x, i) => [x, KINDS[i]])), {
      dtypes: ["float32", "int32"],
      shuffleBuffer: 10,
    });
    const [x, y] = [POINTS, new Int32Array(KINDS)];
    const held = [x.slice(0, 11), y.slice(0, 11)];
    /** A run; `stopAt` aborts it once so many steps were reported. */
    const run = async (data, extra, stopAt = Infinity) => {
      const model = makeModel(pg);
      const optimizer = new nn.optim.Adam(nn.state.getParameters(model), { lr: 0.01 });
      const scheduler = new nn.optim.StepLR(optimizer, 1, { gamma: 0.5 });
      const controller = new AbortController();
      const onProgress = ({ loaded }) => {
        if (loaded >= stopAt) controller.abort(new Error("enough"));
      };
      const options = { ...OPTIONS, optimizer, scheduler, validation: held, ...extra };
      const { history } = await fit(model, data, { ...options, onProgress, signal: controller.signal });
      return JSON.stringify([history, await model.first.weight.tolist(), await model.second.weight.tolist()]);
    };
    const found = {};
    for (const [name, data] of [
      ["rows", [x, y]],
      ["examples", examples],
      ["batches", () => slowly(batchesOf())],
    ]) {
      const folder = host.folder(name);
      const checkpoints = { folder, every: 2, unit: "step", keep: 2 };
      const whole = await run(data, {});
      const aborted = await thrown(() => run(data, { checkpoints, resume: true }, 4));
      const files = await host.files(folder);
      const refused = await thrown(() => run(data, { checkpoints }));
      const resumed = await run(data, { checkpoints, resume: true });
      found[name] = {
        aborted: aborted.message,
        files,
        refused,
        same: resumed === whole,
        after: await host.files(folder),
        again: (await run(data, { checkpoints, resume: true })) === whole,
      };
    }
    const folder = host.folder("deep/er");
    const stopping = { checkpoints: { folder }, onEpoch: ({ epoch }) => epoch < 2 };
    await run([x, y], stopping);
    found.epochs = await host.files(folder);
    const more = { checkpoints: { folder, keep: 1 }, resume: true, epochs: 4 };
    found.longer = (await run([x, y], more)) === (await run([x, y], { epochs: 4 }));
    found.kept = await host.files(folder);
    const refused = (extra) => thrown(() => run([x, y], extra));
    found.errors = {
      folder: await refused({ checkpoints: {} }),
      every: await refused({ checkpoints: { folder: host.folder("e"), every: 0 } }),
      option: await refused({ checkpoints: { folder: "a", steps: 3 } }),
      resume: await refused({ resume: true }),
      other: await refused({ checkpoints: { folder }, resume: true, batchSize: 9 }),
    };
    return found;
  },
};
