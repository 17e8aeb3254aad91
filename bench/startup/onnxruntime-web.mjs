/** onnxruntime-web, WebAssembly execution provider; the model is made by `bench/onnx_models.py`. */

import * as ort from "/peers/onnxruntime-web/dist/ort.wasm.min.mjs";

export async function multiply(a, b) {
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmPaths = "/peers/onnxruntime-web/dist/";
  const session = await ort.InferenceSession.create("/models/matmul-4-4-4.onnx", {
    executionProviders: ["wasm"],
  });
  const matrix = (values) => new ort.Tensor("float32", Float32Array.from(values), [4, 4]);
  const { out } = await session.run({ in0: matrix(a), in1: matrix(b) });
  return { product: out.data };
}
