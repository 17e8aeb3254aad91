/**
 * `node run_models.mjs node|node-worker|chromium|chromium-gpu|runtime JOBS`: runs models on inputs; prints the outputs as JSON.
 *
 * JOBS is a file of JSON: [{ model, rounds }], where a round is inputs by name, each { dtype, shape, data } with its
 * bytes in base64. `runtime` runs .pgrd files, without Python.
 */

import { readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

/** Runs in Node or in a page: what it needs is in its arguments. */
async function runAll(jobs, load) {
  const arrays = {
    float32: Float32Array,
    float16: Uint16Array,
    int32: Int32Array,
    int64: BigInt64Array,
    bool: Uint8Array,
  };
  const toBytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const toText = ({ buffer, byteOffset, byteLength }) => {
    let text = "";
    for (const byte of new Uint8Array(buffer, byteOffset, byteLength)) text += String.fromCharCode(byte);
    return globalThis.btoa(text);
  };
  const results = [];
  for (const { model: place, rounds } of jobs) {
    const model = await load(place);
    const found = [];
    for (const round of rounds) {
      const inputs = Object.fromEntries(
        Object.entries(round).map(([name, { dtype, shape, data }]) => [
          name,
          { data: new arrays[dtype](toBytes(data).buffer), shape, dtype },
        ]),
      );
      const outputs = await model.run(inputs);
      const told = {};
      for (const [name, y] of Object.entries(outputs)) {
        const data = typeof y.data === "function" ? await y.data() : y.data;
        told[name] = { dtype: y.dtype, shape: y.shape, data: toText(data) };
      }
      found.push(told);
    }
    results.push(found);
    model.close?.();
  }
  return results;
}

const [host, file] = process.argv.slice(2);
const jobs = JSON.parse(await readFile(file, "utf8"));

async function inNode(worker) {
  const { create } = await import("../../node/dist/main.js");
  const pg = await create({ worker });
  return runAll(jobs, (place) => pg.load(place));
}

async function inRuntime() {
  const { load } = await import("../../node/dist/runtime.js");
  return runAll(jobs, load);
}

async function inChromium(device) {
  const mounts = Object.fromEntries(jobs.map(({ model }, i) => [`/models-${i}/`, dirname(model)]));
  const server = await startServer({ mounts });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    await page.addInitScript(`globalThis.runAll = ${runAll}`);
    await page.goto(`${server.url}/run.html`);
    const served = jobs.map(({ model, rounds }, i) => ({ model: `/models-${i}/${basename(model)}`, rounds }));
    return await page.evaluate(
      async ([served, device]) => {
        const { create } = await import("/dist/polygrad.mjs");
        const pg = await create({ worker: true, device });
        return globalThis.runAll(served, (place) => pg.load(place));
      },
      [served, device],
    );
  } finally {
    await browser.close();
    server.close();
  }
}

const HOSTS = {
  node: () => inNode(false),
  "node-worker": () => inNode(true),
  chromium: () => inChromium("WASM"),
  "chromium-gpu": () => inChromium("WEBGPU"),
  runtime: inRuntime,
};
const told = JSON.stringify(await HOSTS[host]());
process.stdout.write(`${told}\n`, () => process.exit(0));
