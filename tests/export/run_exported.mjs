/**
 * `node run_exported.mjs ENTRY MODEL RUNS [THREADS] [DEVICE]`: runs an exported model on each of RUNS; prints what came of it,
 * and how often it submitted work to a GPU in each of them.
 */

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

let submits = 0;
const { globals } = await import("webgpu").catch(() => ({}));
if (globals) {
  const { submit } = globals.GPUQueue.prototype;
  globals.GPUQueue.prototype.submit = function (commands) {
    submits++;
    submit.call(this, commands);
  };
}

const [entry, path, runs, threads, device] = process.argv.slice(2);
const { load } = entry.endsWith(".cjs")
  ? createRequire(import.meta.url)(entry)
  : await import(pathToFileURL(entry));

const hex = ({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex");
const arrays = { float32: Float32Array, int32: Int32Array };

const model = await load(path, { ...(threads && { threads: Number(threads) }), device });
for (let n = 0; threads && model.threads < threads && n < 1000; n++) {
  await new Promise((done) => setTimeout(done, 5));
}
const outputs = [];
const submitted = [];
for (const run of JSON.parse(await readFile(runs, "utf8"))) {
  const inputs = model.inputs.map(({ name, dtype }) => {
    const bytes = Uint8Array.from(Buffer.from(run[name], "hex"));
    return [name, new arrays[dtype](bytes.buffer)];
  });
  submits = 0;
  const found = await model.run(Object.fromEntries(inputs));
  submitted.push(submits);
  outputs.push(Object.fromEntries(Object.entries(found).map(([name, value]) => [name, hex(value)])));
}
const parameters = {};
for (const parameter of model.parameters) parameters[parameter.name] = hex(await parameter.read());
console.log(
  JSON.stringify({
    inputs: model.inputs,
    outputs,
    submitted,
    parameters,
    saved: Buffer.from(await model.save()).toString("hex"),
    threads: model.threads,
  }),
);
