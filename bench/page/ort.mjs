/** onnxruntime-web, WebAssembly execution provider; the models are made by `bench/onnx_models.py`. */

import { moments, numbers, operand } from "./inputs.mjs";
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
  // in0 is filled by seed 1, in1 by seed 2, ...; what is between them may be a parameter
  const feeds = Object.fromEntries(
    session.inputMetadata.map(({ name, shape }) => {
      const i = Number(name.slice(2));
      const spec = sizes.operands?.[i] ?? { shape, dtype: "float32", low: -1, high: 1 };
      return [name, new ort.Tensor(spec.dtype, operand(i + 1, spec), shape)];
    }),
  );
  const step = async () => (await session.run(feeds)).out;
  const seen = sizes.check === "moments" ? moments : numbers;
  return { step, check: async () => seen((await step()).data), dispose: () => void session.release() };
}
