/**
 * The floor of a browser: a hundred products of 8 by 8 as calls of WebGPU that are written by hand, with everything made
 * beforehand. No library that records its commands anew for each step, as WebGPU asks, can hand them over sooner.
 */

import { HUNDRED, HUNDRED_SCALE, numbers, scaled, uniform } from "./inputs.mjs";

const SIDE = 8;
const SLOT = 256; // bytes from one product to the next, which a binding's offset is a multiple of
const ROW = 10; // steps that are recorded side by side, so that a clock of 5 µs will do
const ROUNDS = 30;

const TEXT = `
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> w: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;

@compute @workgroup_size(${SIDE}, ${SIDE})
fn product(@builtin(local_invocation_id) at: vec3<u32>) {
  var sum = 0.0;
  for (var k = 0u; k < ${SIDE}u; k++) { sum += x[at.y * ${SIDE}u + k] * w[k * ${SIDE}u + at.x]; }
  out[at.y * ${SIDE}u + at.x] = sum;
}`;

export async function start() {
  const adapter = await globalThis.navigator.gpu.requestAdapter();
  if (!adapter) throw new Error("no adapter");
  const device = await adapter.requestDevice();
  return (kind) => {
    if (kind !== "hundred") throw new Error(`has no program ${kind}`);
    return hundred(device);
  };
}

async function hundred(device) {
  const { STORAGE, COPY_SRC, COPY_DST, MAP_READ } = globalThis.GPUBufferUsage;
  const buffer = (size, usage = STORAGE | COPY_SRC | COPY_DST) => device.createBuffer({ size, usage });
  const [products, w] = [buffer(SLOT * (HUNDRED + 1)), buffer(SLOT)];
  device.queue.writeBuffer(products, 0, uniform(1, SIDE, SIDE));
  device.queue.writeBuffer(w, 0, scaled(2, [SIDE, SIDE], HUNDRED_SCALE));
  const module = device.createShaderModule({ code: TEXT });
  const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute: { module } });
  const layout = pipeline.getBindGroupLayout(0);
  const range = (buffer, i) => ({ buffer, offset: SLOT * i, size: SLOT });
  const groups = Array.from({ length: HUNDRED }, (_, i) => {
    const ranges = [range(products, i), range(w, 0), range(products, i + 1)];
    return device.createBindGroup({
      layout,
      entries: ranges.map((resource, binding) => ({ binding, resource })),
    });
  });
  const step = () => {
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    for (const group of groups) {
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(1);
    }
    pass.end();
    device.queue.submit([encoder.finish()]);
  };
  return {
    step,
    calls: () => calls(device, pipeline, groups),
    check: async () => {
      step();
      const staging = buffer(SLOT, MAP_READ | COPY_DST);
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(products, SLOT * HUNDRED, staging, 0, SLOT);
      device.queue.submit([encoder.finish()]);
      await staging.mapAsync(globalThis.GPUMapMode.READ);
      return numbers(new Float32Array(staging.getMappedRange()));
    },
    dispose: () => device.destroy(),
  };
}

/** Microseconds of each kind of call in a step, the least of some rounds; `setPipeline` as often as the others. */
async function calls(device, pipeline, groups) {
  const least = {};
  const timed = (name, action) => {
    const begin = performance.now();
    const found = action();
    const taken = (1e3 * (performance.now() - begin)) / ROW;
    least[name] = Math.min(taken, least[name] ?? Infinity);
    return found;
  };
  for (let round = 0; round < ROUNDS; round++) {
    const encoders = Array.from({ length: ROW }, () => device.createCommandEncoder());
    const passes = timed("beginComputePass", () => encoders.map((encoder) => encoder.beginComputePass()));
    const each = (action) => () => {
      for (const pass of passes) for (const group of groups) action(pass, group);
    };
    timed(
      "setPipeline",
      each((pass) => pass.setPipeline(pipeline)),
    );
    timed(
      "setBindGroup",
      each((pass, group) => pass.setBindGroup(0, group)),
    );
    timed(
      "dispatchWorkgroups",
      each((pass) => pass.dispatchWorkgroups(1)),
    );
    const recorded = timed("finish", () =>
      encoders.map((encoder, i) => {
        passes[i].end();
        return encoder.finish();
      }),
    );
    timed("submit", () => recorded.forEach((commands) => device.queue.submit([commands])));
    await device.queue.onSubmittedWorkDone();
  }
  return least;
}
