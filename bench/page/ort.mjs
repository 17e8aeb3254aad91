/**
 * onnxruntime-web, WebAssembly or WebGPU execution provider; the models are made by `bench/onnx_models.py`. On WebGPU
 * what goes in and what comes out stays on the GPU.
 */

import { moments, numbers, operand } from "./inputs.mjs";

let ort;

export async function start(threads, device) {
  const name = device.toLowerCase();
  ort = await import(`/peers/onnxruntime-web/dist/ort.${name}.min.mjs`);
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = "/peers/onnxruntime-web/dist/";
  return name === "wasm" ? make : makeOnGpu;
}

async function makeOnGpu(kind, sizes, name) {
  const session = await ort.InferenceSession.create(`/models/${name}.onnx`, {
    executionProviders: ["webgpu"],
    graphOptimizationLevel: "all",
    preferredOutputLocation: "gpu-buffer",
  });
  const device = await ort.env.webgpu.device;
  const feeds = Object.fromEntries(
    session.inputMetadata.map(({ name, shape }) => {
      const data = operand(Number(name.slice(2)) + 1, { shape, dtype: "float32", low: -1, high: 1 });
      const { STORAGE, COPY_DST, COPY_SRC } = globalThis.GPUBufferUsage;
      const gpuBuffer = device.createBuffer({
        size: Math.max(16, data.byteLength),
        usage: STORAGE | COPY_DST | COPY_SRC,
      });
      device.queue.writeBuffer(gpuBuffer, 0, data);
      return [name, ort.Tensor.fromGpuBuffer(gpuBuffer, { dataType: "float32", dims: shape })];
    }),
  );
  return {
    step: async () => void (await session.run(feeds)).out.dispose(),
    check: async () => numbers(await (await session.run(feeds)).out.getData(true)),
    dispose: () => void session.release(),
  };
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
