/** `node run_exported.mjs ENTRY MODEL RUNS [THREADS]`: runs an exported model on each of RUNS; prints what came of it. */

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [entry, path, runs, threads] = process.argv.slice(2);
const { load } = entry.endsWith(".cjs")
  ? createRequire(import.meta.url)(entry)
  : await import(pathToFileURL(entry));

const hex = ({ data }) => Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("hex");
const arrays = { float32: Float32Array, int32: Int32Array };

const model = await load(path, threads && { threads: Number(threads) });
for (let n = 0; threads && model.threads < threads && n < 1000; n++) {
  await new Promise((done) => setTimeout(done, 5));
}
const outputs = [];
for (const run of JSON.parse(await readFile(runs, "utf8"))) {
  const inputs = model.inputs.map(({ name, dtype }) => {
    const bytes = Uint8Array.from(Buffer.from(run[name], "hex"));
    return [name, new arrays[dtype](bytes.buffer)];
  });
  const found = await model.run(Object.fromEntries(inputs));
  outputs.push(Object.fromEntries(Object.entries(found).map(([name, value]) => [name, hex(value)])));
}
const parameters = {};
for (const parameter of model.parameters) parameters[parameter.name] = hex(await parameter.read());
console.log(
  JSON.stringify({
    inputs: model.inputs,
    outputs,
    parameters,
    saved: Buffer.from(await model.save()).toString("hex"),
    threads: model.threads,
  }),
);
