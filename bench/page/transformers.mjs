/**
 * transformers.js on the folders that `bench/onnx_decoders.py` makes, with onnxruntime-web's WebAssembly in its build
 * without GPU, which is its fastest. A step of `decode` is one call of the model, as `generate` makes it for each
 * token, with the past as inputs.
 */

import { numbers } from "./inputs.mjs";
import { codesOf, lettersOf, nameOf, PROMPT, textOf, tokensOf, whole, written } from "./language.mjs";
import { AutoModelForCausalLM, DynamicCache, env, Tensor } from "@huggingface/transformers";
import { InferenceSession } from "onnxruntime-web/webgpu"; // what transformers.js imports: one module

const RUNTIME = new URL("/peers/@huggingface/transformers/node_modules/onnxruntime-web/dist/", document.URL)
  .href;

// y = Relu(x), a float vector, in IR version 8 and opset 14.
const SMALLEST = Uint8Array.from(
  "08083a350a0c0a0178120179220452656c751201675a100a0178120b0a09080112050a0312016e62100a0179120b0a09080112050a0312016e42040a00100e"
    .match(/../g)
    .map((digits) => Number.parseInt(digits, 16)),
);

/** The first session compiles the runtime's WebAssembly, which is no part of any figure, as Pyodide's is not. */
export async function start(threads) {
  env.allowLocalModels = true;
  env.allowRemoteModels = false;
  env.localModelPath = "/models/";
  env.useBrowserCache = false;
  env.useWasmCache = false;
  env.backends.onnx.wasm.numThreads = threads;
  env.backends.onnx.wasm.wasmPaths = RUNTIME;
  await (await InferenceSession.create(SMALLEST, { executionProviders: ["wasm"] })).release();
  const kinds = { decode, "first-token": firstToken, write };
  return (kind, sizes) => {
    if (kinds[kind] === undefined) throw new Error(`has no ${kind}`);
    return kinds[kind](sizes);
  };
}

const load = (path) =>
  AutoModelForCausalLM.from_pretrained(nameOf(path).replace(".gguf", ""), { device: "wasm", dtype: "fp32" });

const row = (values) => new Tensor("int64", whole(values), [1, values.length]);
const ones = (count) => row(Array.from({ length: count }, () => 1));

/** What a run leaves for the next one. */
function past(outputs) {
  const present = Object.entries(outputs).filter(([name]) => name.startsWith("present."));
  return new DynamicCache(
    Object.fromEntries(present.map(([name, value]) => [name.replace("present", "past_key_values"), value])),
  );
}

async function decode({ path, tokens }) {
  const model = await load(path);
  const seen = tokensOf(tokens);
  const prompt = seen.slice(0, -1);
  const first = await model({ input_ids: row(prompt), attention_mask: ones(prompt.length) });
  const given = {
    input_ids: row(seen.slice(-1)),
    attention_mask: ones(tokens),
    past_key_values: past(first),
  };
  const step = async () => (await model({ ...given })).logits;
  return { step, check: async () => numbers((await step()).data), dispose: () => void model.dispose() };
}

/** Seconds from a file to the first token, and which that is. */
async function firstToken({ path }) {
  const begin = performance.now();
  const model = await load(path);
  const input_ids = row(PROMPT);
  const found = await model.generate({
    input_ids,
    attention_mask: ones(PROMPT.length),
    max_new_tokens: 1,
    do_sample: false,
  });
  const seconds = (performance.now() - begin) / 1000;
  return { check: () => [seconds, Number(found.data.at(-1))], dispose: () => void model.dispose() };
}

/** Milliseconds for each of the next `count` tokens after `context`, and the first one's text. */
async function write({ path, context, count }) {
  const model = await load(path);
  const prompt = codesOf(lettersOf(context));
  const generate = async (count, onToken) => {
    let isPrompt = true;
    const streamer = {
      put: ([tokens]) => {
        if (!isPrompt) onToken(textOf(Number(tokens.at(-1))));
        isPrompt = false;
      },
      end: () => undefined,
    };
    await model.generate({
      input_ids: row(prompt),
      attention_mask: ones(prompt.length),
      max_new_tokens: count,
      min_new_tokens: count,
      do_sample: false,
      streamer,
    });
  };
  return { check: () => written(count, generate), dispose: () => void model.dispose() };
}
