/**
 * onnxruntime-web, WebAssembly or WebGPU execution provider; the models are made by `bench/onnx_models.py`, or those of
 * `bench/suites/onnx.py`. What goes in is in the runtime's memory beforehand; on WebGPU it stays on the GPU, and so
 * does what comes out.
 */

import { moments, numbers, operand } from "./inputs.mjs";
import { nameOf, sentencesOf, whole } from "./language.mjs";
import { withValues } from "./onnx_values.mjs";

let ort;

export async function start(threads, device) {
  const name = device.toLowerCase();
  ort = await import(`/peers/onnxruntime-web/dist/ort.${name}.min.mjs`);
  ort.env.wasm.numThreads = threads;
  ort.env.wasm.wasmPaths = "/peers/onnxruntime-web/dist/";
  return name === "wasm" ? make : makeOnGpu;
}

const ON_GPU = ["float32", "float16", "int32", "uint8"]; // of what inputs are, dtypes that its GPU buffers may have

/** What an input holds: in0 is filled by seed 1, in1 by seed 2, ...; what is between them may be a parameter. */
function input(name, shape, sizes) {
  const i = Number(name.slice(2));
  const spec = sizes.operands?.[i] ?? { shape, dtype: "float32", low: -1, high: 1 };
  return { dtype: spec.dtype, data: operand(i + 1, spec) };
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
      const { dtype, data } = input(name, shape, sizes);
      if (!ON_GPU.includes(dtype)) return [name, new ort.Tensor(dtype, data, shape)];
      const { STORAGE, COPY_DST, COPY_SRC } = globalThis.GPUBufferUsage;
      const gpuBuffer = device.createBuffer({
        size: Math.max(16, 4 * Math.ceil(data.byteLength / 4)),
        usage: STORAGE | COPY_DST | COPY_SRC,
      });
      device.queue.writeBuffer(gpuBuffer, 0, data);
      return [name, ort.Tensor.fromGpuBuffer(gpuBuffer, { dataType: dtype, dims: shape })];
    }),
  );
  const seen = sizes.check === "moments" ? moments : numbers;
  return {
    step: async () => void (await session.run(feeds)).out.dispose(),
    check: async () => seen(await (await session.run(feeds)).out.getData(true)),
    dispose: () => void session.release(),
  };
}

const ON_PROCESSOR = { executionProviders: ["wasm"], graphOptimizationLevel: "all" };

/** The encoder that `bench/encoder_files.py` makes: its tokens are copied in at each step, as they would be. */
async function encoder({ path, sentences, tokens }) {
  const session = await ort.InferenceSession.create(`/models/${nameOf(path)}/model.onnx`, ON_PROCESSOR);
  const ids = new ort.Tensor("int64", whole(sentencesOf(sentences, tokens).flat()), [sentences, tokens]);
  const step = async () => (await session.run({ ids })).out;
  return { step, check: async () => numbers((await step()).data), dispose: () => void session.release() };
}

/** A model's file with its `inputs` by name: each a number, a list of numbers, or a spec of `operand`. */
async function modelFile({ path, inputs }) {
  const values = Object.entries(inputs).map(([name, given], i) => {
    if (given.shape !== undefined) return { name, ...given, data: operand(i + 1, given) };
    return {
      name,
      dtype: "int64",
      shape: Array.isArray(given) ? [given.length] : [],
      data: whole([given].flat()),
    };
  });
  const model = withValues(await bytesOf(nameOf(path)), values);
  const session = await ort.InferenceSession.create(model, ON_PROCESSOR);
  const step = () => session.run({});
  const check = async () => {
    const found = await step();
    return session.outputNames.flatMap((name) => numbers(found[name].data));
  };
  return { step, check, dispose: () => void session.release() };
}

async function bytesOf(file) {
  const response = await fetch(`/models/${file}`);
  if (!response.ok) throw new Error(`${file}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

async function make(kind, sizes, name) {
  if (kind === "embed") return encoder(sizes);
  if (kind === "onnx") return modelFile(sizes);
  const model = await bytesOf(`${name}.onnx`);
  const plain = await ort.InferenceSession.create(model, ON_PROCESSOR);
  const values = plain.inputMetadata.map(({ name, shape }) => ({
    name,
    shape,
    ...input(name, shape, sizes),
  }));
  await plain.release();
  const session = await ort.InferenceSession.create(withValues(model, values), ON_PROCESSOR);
  const step = async () => (await session.run({})).out;
  const seen = sizes.check === "moments" ? moments : numbers;
  return { step, check: async () => seen((await step()).data), dispose: () => void session.release() };
}
