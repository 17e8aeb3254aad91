/** polygrad's wheel in Pyodide on the page's own thread, on device WASM or WEBGPU, whose reads Python is suspended for. */

import { uniform } from "./inputs.mjs";

const FILES = ["shapes.py", "ops_tensor.py", "gpt2_tensor.py", "with_tensor.py"];

async function script(address) {
  await new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement("script"), { src: address });
    element.onload = resolve;
    element.onerror = () => reject(new Error(`${address} did not load`));
    document.head.append(element);
  });
}

export async function start(threads, device) {
  await script("/dist/polygrad.js");
  const env = { DEVICE: device, POLYGRAD_THREADS: String(threads) };
  const python = await globalThis.polygrad.load({ env, cache: false });
  for (const name of FILES) {
    const response = await fetch(`/libraries/${name}`);
    python.writeFile(`/bench/${name}`, new Uint8Array(await response.arrayBuffer()));
  }
  globalThis.benchUniform = uniform;
  const make = python.runPython(`
    import json, sys
    sys.path.insert(0, "/bench")
    import js, polygrad, polygrad.nn, with_tensor
    maker = with_tensor.Maker(polygrad, js.benchUniform)
    def make(kind, sizes):
        program = maker.make(kind, json.loads(sizes))
        return program.step, lambda: json.dumps(program.check()), program.finish, program.threads
    make
  `);
  const onGpu = device === "WEBGPU";
  return async (kind, sizes) => {
    const proxy = onGpu
      ? await make.callPromising(kind, JSON.stringify(sizes))
      : make(kind, JSON.stringify(sizes));
    const [step, check, finish, threads] = proxy.toJs();
    return {
      step: () => void step(),
      ...(!onGpu && { finish: () => void finish() }),
      check: async () => JSON.parse(await (onGpu ? check.callPromising() : check())),
      threads,
      dispose: () => [step, check, finish, proxy].forEach((p) => p.destroy()),
    };
  };
}
