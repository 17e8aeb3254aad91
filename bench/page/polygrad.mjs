/** polygrad's wheel in Pyodide on the page's own thread, on device WASM or WEBGPU, whose reads Python is suspended for. */

import { uniform } from "./inputs.mjs";
import { codesOf, lettersOf, nameOf, PROMPT, textOf, written } from "./language.mjs";

const FILES = ["shapes.py", "ops_tensor.py", "gpt2_tensor.py", "with_tensor.py"];
const LANGUAGE_FILES = [
  "__init__.py",
  "shapes.py",
  "language.py",
  "language_polygrad.py",
  "onnx_polygrad.py",
];
const OF_FILES = ["decode", "prefill", "embed", "read", "onnx"];

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
  const copy = async (address, path) => {
    const response = await fetch(address);
    if (!response.ok) throw new Error(`${address}: ${response.status}`);
    python.writeFile(path, new Uint8Array(await response.arrayBuffer()));
  };
  for (const name of FILES) await copy(`/libraries/${name}`, `/bench/${name}`);
  for (const name of LANGUAGE_FILES) await copy(`/libraries/${name}`, `/bench/bench/libraries/${name}`);
  /** Copies a model's files to Python's file system; `sizes` with the path there. */
  const withFiles = async ({ path, ...sizes }) => {
    if (path === undefined) return sizes;
    const name = nameOf(path);
    const files = name.includes(".")
      ? [name]
      : ["config.json", "model.safetensors"].map((file) => `${name}/${file}`);
    for (const file of files) await copy(`/models/${file}`, `/bench/models/${file}`);
    return { ...sizes, path: `/bench/models/${name}` };
  };
  globalThis.benchUniform = uniform;
  const makers = python.runPython(`
    import gc, json, os, sys
    sys.path.insert(0, "/bench")
    import js, polygrad, polygrad.nn, with_tensor
    maker = with_tensor.Maker(polygrad, js.benchUniform)
    def make(kind, sizes):
        program = maker.make(kind, json.loads(sizes))
        return program.step, lambda: json.dumps(program.check()), program.finish, program.threads
    def make_of_file(kind, text):
        from bench.libraries import language_polygrad, onnx_polygrad
        gc.collect()  # a captured step and its model refer to each other
        sizes = json.loads(text)
        if kind == onnx_polygrad.KIND:
            program = onnx_polygrad.make(sizes, maker.operand, maker.finish)
            os.remove(sizes["path"])
        else:
            program = language_polygrad.make(kind, sizes, maker.finish)
        return program.step, lambda: json.dumps(program.check()), program.finish, program.threads
    async def first_token(path, prompt):
        from polygrad import hf
        await hf.prepare()
        polygrad.Tensor.training = False
        model = hf.load_hf(path, max_seq_len=64)
        return model.generate(json.loads(prompt), max_new_tokens=1, stop_tokens=[]).tokens[0]
    async def writer(path, prompt, count):
        from polygrad import hf
        await hf.prepare()
        polygrad.Tensor.training = False
        prompt = json.loads(prompt)
        model = hf.load_hf(path, max_seq_len=len(prompt) + count)
        def write(count, on_token):
            for piece in model.stream(prompt, max_new_tokens=count, stop_tokens=[]):
                for token in piece.tokens:
                    on_token(token)
        return write
    make, make_of_file, first_token, writer
  `);
  const [makeOperation, makeOfFile, firstToken, writer] = makers.toJs();
  const onGpu = device === "WEBGPU";
  return async (kind, sizes) => {
    if (kind === "first-token") {
      const begin = performance.now();
      const token = await firstToken((await withFiles(sizes)).path, JSON.stringify(PROMPT));
      const seconds = (performance.now() - begin) / 1000;
      return { check: () => [seconds, token] };
    }
    if (kind === "write") {
      const { path, context, count } = await withFiles(sizes);
      const write = await writer(path, JSON.stringify(codesOf(lettersOf(context))), count);
      const generate = async (count, onToken) => write(count, (token) => void onToken(textOf(token)));
      return { check: () => written(count, generate), dispose: () => write.destroy() };
    }
    const make = OF_FILES.includes(kind) ? makeOfFile : makeOperation;
    if (OF_FILES.includes(kind)) sizes = await withFiles(sizes);
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
