/** `load` of ONNX models, case by case, as in cases.mjs; `host.onnx` has small models by name, in base64. */

import { thrown } from "./case_helpers.mjs";

export const onnxCases = {
  async digits({ Tensor, load, nn, optim, compileStep, dispose }, { url }) {
    const progress = [];
    const model = await load(`${url}/digits.onnx`, {
      onProgress: ({ loaded, total }) => progress.push([loaded, total]),
    });
    const { images } = await nn.state.safeLoad(`${url}/digits.safetensors`);
    const pixels = Float32Array.from(await images.at("0:6").data());
    const first = pixels.slice(0, 64);
    const found = {
      inputs: model.inputs,
      outputs: model.outputs,
      ops: model.ops,
      names: Object.keys(nn.state.getStateDict(model)),
      progress: progress.at(-1)[0],
    };
    // what an input may be
    const wanted = await model.forward({ image: pixels }).probabilities.tolist();
    const given = {
      tensor: new Tensor(pixels, { shape: [6, 1, 8, 8] }),
      shaped: { data: pixels, shape: [6, 1, 8, 8] },
      nested: await new Tensor(pixels).reshape(6, 1, 8, 8).tolist(),
    };
    found.wanted = wanted;
    for (const [name, image] of Object.entries(given)) {
      found[name] = await model.forward({ image }).probabilities.tolist();
    }
    const { probabilities } = await model.run({ image: first });
    found.run = [probabilities.shape, await probabilities.tolist()];
    // captured for all sizes: the same numbers
    const step = await model.capture({ batch: [1, 8] });
    found.captured = [];
    for (const n of [6, 2, 6, 1]) {
      const image = pixels.subarray(0, 64 * n);
      found.captured.push(await step.forward({ image }).probabilities.tolist());
    }
    step.close();
    const graph = await model.graph();
    const times = await model.profile({ image: first }, 0.02);
    found.graph = { first: graph.nodes[1], weights: graph.initializers };
    found.times = times.nodes.map(({ name, op, seconds, launches, outputs }) => {
      return { name, op, timed: seconds > 0 === launches > 0, outputs };
    });
    found.fused = [times.fusedLaunches, times.fusedSeconds > 0, times.rounds > 0];
    found.exported = Array.from((await model.export({ batch: 1 })).slice(0, 4));
    // a File, whose name errors begin with; bytes; and what goes wrong
    const bytes = new Uint8Array(await (await model.export({ batch: 1 })).buffer);
    const named = (data, name) => Object.assign(new Blob([data]), { name });
    found.wrong = {
      missing: await thrown(() => load(`${url}/nowhere.onnx`)),
      kind: await thrown(() => load(3)),
      exported: await thrown(() => load(bytes)),
      damaged: await thrown(() => load(named(new Uint8Array([8, 7, 58, 200]), "cut.onnx"))),
      inputs: await thrown(() => model.forward({ picture: pixels }).probabilities.data()),
      elements: await thrown(() => model.forward({ image: pixels.slice(0, 63) }).probabilities.data()),
      shape: await thrown(() => model.forward({ image: Tensor.zeros(1, 1, 4, 4) }).probabilities.data()),
      dtype: await thrown(() => model.forward({ image: new Int32Array(64) }).probabilities.data()),
      bounds: await thrown(() => model.capture({ size: 3 })),
    };
    model.close();
    found.wrong.closed = await thrown(() => model.forward({ image: pixels }));
    found.alive = await probabilities.sum().item(); // what was returned lives on
    // trained on
    const tuned = await load(`${url}/digits.onnx`, { requiresGrad: true });
    const opt = new optim.Adam(nn.state.getParameters(tuned), { lr: 0.01 });
    const labels = new Tensor([3, 3, 3, 3, 3, 3], { dtype: "int32" });
    const train = compileStep(
      (m, image, y) => m.forward({ image }).probabilities.add(1e-6).log().nllLoss(y),
      tuned,
      opt,
      given.tensor,
      labels,
    );
    for (let i = 0; i < 30; i++) train.run(given.tensor, labels);
    found.tuned = await tuned.forward({ image: pixels }).probabilities.argmax(1).tolist();
    dispose(tuned, opt, train);
    return found;
  },

  /** Models of few bytes: y is text, a sequence or an optional of x; a value is beside the model; a node fails. */
  async kinds({ load }, { onnx }) {
    const bytes = (name) => Uint8Array.from(atob(onnx[name]), (c) => c.charCodeAt(0));
    const values = async (name, x, options) => {
      const found = await (await load(bytes(name), options)).run(x);
      const plain = async (y) =>
        Array.isArray(y)
          ? Promise.all(y.map(plain))
          : y?.tolist
            ? [
                JSON.parse(
                  JSON.stringify(await y.tolist(), (_, v) => (typeof v === "bigint" ? String(v) : v)),
                ),
                y.dtype,
              ]
            : y;
      return Object.fromEntries(
        await Promise.all(Object.entries(found).map(async ([k, y]) => [k, await plain(y)])),
      );
    };
    const x = new Float32Array([1, 2, 3]);
    return {
      text: await values("text", { x: ["b", "a"] }),
      sequence: await values("sequence", { x }),
      optional: [await values("optional", { x }), await values("optional", { x: null })],
      integers: await values("integers", { n: new BigInt64Array([2n]), flag: new Uint8Array([0, 7]) }),
      external: await values(
        "external",
        { x },
        { files: { "weights.bin": new Uint8Array(new Float32Array([10, 20, 30]).buffer) } },
      ),
      noFile: await thrown(() => load(bytes("external"))),
      outside: await thrown(() => load(bytes("outside"))),
      missingOp: await thrown(() => load(bytes("missing"))),
      node: await thrown(async () => (await load(bytes("node"))).forward({ x }).y.data()),
      sync: await thrown(async () => (await load(bytes("sequence"))).forward({ x })),
    };
  },
};
