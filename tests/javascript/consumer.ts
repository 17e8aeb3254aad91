// A program of a user, to be compiled under `strict` against the packed package (test_packaging.py).

import {
  create,
  FetchError,
  pipeline,
  progressBar,
  ShapeError,
  type CompiledStep,
  type Completion,
  type DType,
  type Examples,
  type LabelScore,
  type Linear,
  type ModelOutput,
  type OnnxModel,
  type Tensor,
} from "polygrad";
async function main(): Promise<void> {
  const {
    Tensor,
    nn,
    optim,
    load,
    compileStep,
    fit,
    TinyJit,
    Variable,
    state,
    scope,
    dispose,
    slice,
    Device,
  } = await create({ device: "auto", threads: 1, worker: false });
  const x = new Tensor(
    [
      [1, 2],
      [3, 4],
    ],
    { dtype: "float32", requiresGrad: true },
  );
  const examples: Examples = nn.data.fromExamples([[[1, 2], 0]], { dtypes: [undefined, "int32"] });
  const table = nn.data.fromCSV(new Blob(["a,b\n1,2\n"]), { targets: "b" });
  for await (const [batch] of table.batches({ batchSize: 4 })) batch.sum() satisfies Tensor;
  const run = { loss: "crossEntropy", checkpoints: { folder: "run" }, resume: true } as const;
  await fit(new nn.Linear(2, 2), examples, { ...run, validation: 0.5, onProgress: progressBar() });
  await fit(new nn.Linear(2, 2), (epoch) => [[[[epoch, 2]], new Int32Array(1)]], { ...run, resume: false });
  // @ts-expect-error: every column of inputs is named by a text
  nn.data.fromCSV("a.csv", { targets: "b", inputs: [1] });
  const y = x.matmul(x).sum(1, { keepdim: true }).reshape(-1).logSoftmax(0);
  const z: Tensor = Tensor.zeros(2, 3)
    .add(Tensor.rand([2, 3], { device: "WASM" }))
    .at("0:1", null, "...", slice(0, 2));
  class Net {
    readonly l: Linear = new nn.Linear(2, 4, { bias: false });
    forward(x: Tensor): Tensor {
      return this.l.forward(x).relu();
    }
  }
  class Activated extends nn.Linear {
    readonly norm = new nn.LayerNorm(4);
    override forward(x: Tensor): Tensor {
      return this.norm.forward(super.forward(x)).relu();
    }
  }
  class Vector extends Tensor {
    twice(): Tensor {
      return this.mul(2);
    }
  }
  const activated: Linear = new Activated(2, 4, { bias: false });
  dispose(activated, new Vector([1, 2]).twice(), Vector.zeros(2));
  const net = new Net();
  const opt = new optim.Adam(state.getParameters(net), { lr: 0.01 });
  const step = compileStep(
    (m, a, b) => {
      const out = m.forward(a);
      return [out.sub(b).square().mean(), out];
    },
    net,
    opt,
    x,
    new Float32Array(8),
  );
  const typed: CompiledStep<[Tensor, Tensor]> = step;
  const [loss, out]: [Tensor, Tensor] = typed.run(x);
  opt.lr = 0.001;
  const rate: Tensor = opt.lr;
  const f = TinyJit((a: Tensor, n: number) => ({ s: a.sum(), n }));
  const r: { s: Tensor; n: number } = f(x, 3);
  const pair = TinyJit((a: Tensor) => [a.sum(), a.mean()]);
  const [sum, mean]: [Tensor, Tensor] = pair(x);
  await scope(async () => sum.add(mean).print());
  const [values, indices] = x.sort(-1);
  const parts: Tensor[] = x.split(1);
  const n = new Variable("n", 1, 10).bind(3);
  const d: DType = x.dtype;
  const g: Tensor | null = x.grad;
  Device.default = "WASM";
  const s = scope(() => x.exp());
  dispose(s, [loss, out, rate], { r, values, indices, parts, n, g, y, z });
  const data = await x.data();
  const first: number | undefined = data[0];
  const floats: Float32Array = await x.data();
  const total: number = await x.sum().mul(2).item();
  const wide: bigint = await x.cast("long").at(0, 0).item();
  const truth: boolean = await x.gt(1).all().item();
  const named: "int32" = new Tensor([1, 2], { dtype: "int" }).dtype;
  const same: "uint8" = new Tensor(new Uint8Array(2)).reshape(1, 2).dtype;
  const any: Tensor = (named as string) === same ? x : x.argmax();
  const scalar: number | bigint | boolean = await any.item();
  console.log(floats, total, wide, truth, scalar, await Tensor.zeros(2).add(x).data());
  // @ts-expect-error: an int64 is a bigint
  const narrow: number = await x.cast("int64").item();
  const t: number = await Tensor.train(async () => 1);
  console.log(d, first, t, ShapeError.name);
  console.log(narrow);
  const model: OnnxModel = await load(new URL("file:///m.onnx"), { requiresGrad: true, device: "WASM" });
  const given = { a: new Float32Array(4), b: x, c: [[1, 2]], d: { data: new Int32Array(2), shape: [1, 2] } };
  const scores: Tensor | undefined = model.forward(given).scores;
  const output: ModelOutput | undefined = (await model.run({ s: ["a"], none: null, list: [x, x] })).text;
  const replayed = (await model.capture({ batch: [1, 8], length: 4 })).forward(given);
  const bytes: Uint8Array = await model.export({ batch: 1 });
  const sizes: readonly (number | string | null)[] | null | undefined = model.inputs[0]?.shape;
  console.log(scores, output, replayed, bytes, sizes);
  model.close();
  const generator = await pipeline("text-generation", "models/talker", { device: "WASM" });
  const answer: Completion = await generator("Hi", { maxNewTokens: 3, signal: AbortSignal.timeout(1000) });
  const answers: Completion[] = await generator(["a", "b"]);
  const several: Completion[] = await generator("a", { n: 3, temperature: 1 });
  for await (const text of generator.stream([{ role: "user", content: "Hi" }])) console.log(text.length);
  const direct = await create();
  const classify = await direct.pipeline("text-classification", new URL("file:///m"), { quantize: "int8" });
  const labels: LabelScore[] = await classify("a");
  const rows: LabelScore[][] = await classify(["a", "b"], { topK: 1 });
  const extractor = await direct.pipeline("feature-extraction", {}, { pooling: "cls" });
  const vectors: Tensor<"float32"> = await extractor("a");
  console.log(answer.finishReason === "stop", answers, several, labels, rows, vectors);
  // @ts-expect-error: no such task
  await direct.pipeline("summarization", "m");
  // @ts-expect-error: an option of another task
  await direct.pipeline("fill-mask", "m", { pooling: "cls" });
  // @ts-expect-error: Python's spelling
  await generator("a", { max_new_tokens: 3 });
  const now: number | bigint | boolean = direct.itemSync(direct.Tensor.ones(1));
  const remote = await create({ worker: true });
  // @ts-expect-error: a worker's session is read by waiting
  remote.itemSync(remote.Tensor.ones(1));
  // @ts-expect-error: Python's names work, but are not proposed
  x.log_softmax(0);
  // @ts-expect-error: operators of Python have no reverse form here
  x.sub(1, { reverse: true });
  await direct.state.safeLoad("a.safetensors", {
    onProgress: ({ stage, fraction, loaded, total }) => console.log(stage, fraction, loaded ?? 0, total ?? 0),
    signal: AbortSignal.timeout(1000),
  });
  try {
    await direct.load("m.onnx");
  } catch (error) {
    if (error instanceof FetchError) console.log(error.url, error.status, now);
  }
  // @ts-expect-error: not a dtype
  x.cast("float31");
  // @ts-expect-error: inputs have names
  model.forward(x);
  // @ts-expect-error: no such option
  x.sum({ axes: 1 });
  // @ts-expect-error: a reduction has three names
  x.crossEntropy(x, { reduction: "median" });
}
void main();
