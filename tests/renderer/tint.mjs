// Compiles WGSL with Tint, Chromium's compiler of it: Dawn's null backend does so without a GPU, with all features.
// Standard input: kernels as JSON, their texts by name. Standard output: what Tint says of each, by name.
import { create, globals } from "webgpu";

Object.assign(globalThis, globals);
const gpu = create(["backend=null"]);
const adapter = await gpu.requestAdapter();
const requiredFeatures = ["shader-f16", "subgroups"].filter((name) => adapter.features.has(name));
const limits = ["maxComputeInvocationsPerWorkgroup", "maxStorageBuffersPerShaderStage"];
const requiredLimits = Object.fromEntries(limits.map((name) => [name, adapter.limits[name]]));
const device = await adapter.requestDevice({ requiredFeatures, requiredLimits });
const parts = [];
for await (const part of process.stdin) parts.push(part);

const said = {};
for (const [name, code] of Object.entries(JSON.parse(Buffer.concat(parts)))) {
  device.pushErrorScope("validation");
  const module = device.createShaderModule({ code });
  const { messages } = await module.getCompilationInfo();
  device.createComputePipeline({ layout: "auto", compute: { module } });
  const error = await device.popErrorScope();
  said[name] = [
    ...messages.map(({ lineNum, message }) => `${lineNum}: ${message}`),
    ...(error ? [error.message] : []),
  ];
}
console.log(JSON.stringify({ features: requiredFeatures, said }));
process.exit(0); // Dawn's threads would keep it
