/** onnxruntime-web, WebAssembly execution provider; the models are made by `bench/onnx_models.py`. */

import { numbers, uniform } from "./inputs.mjs";
import * as ort from "/peers/onnxruntime-web/dist/ort.wasm.min.mjs";

export function start(threads) {
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = "/peers/onnxruntime-web/dist/";
  return make;
}

async function make(kind, sizes, name) {
  const session = await ort.InferenceSession.create(`/models/${name}.onnx`, {
    executionProviders: ["wasm"],
    graphOptimizationLevel: "all",
  });
  // inputs are named in0, in1, ... and filled by seeds 1, 2, ...
  const feeds = Object.fromEntries(
    session.inputMetadata.map(({ name, shape }, i) => [
      name,
      new ort.Tensor("float32", uniform(i + 1, ...shape), shape),
    ]),
  );
  const step = async () => (await session.run(feeds)).out;
  return { step, check: async () => numbers((await step()).data), dispose: () => void session.release() };
}
