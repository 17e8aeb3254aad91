/**
 * wllama on GGUF files: llama.cpp's WebAssembly in a worker, without a GPU. It takes prompts as texts and gives no scores, so
 * it is compared by what it writes.
 */

import { lettersOf, nameOf, written } from "./language.mjs";
import { Wllama } from "@wllama/wllama";

const QUIET = { debug: () => {}, log: () => {}, warn: () => {}, error: console.error };

async function load(path, threads, context) {
  const wllama = new Wllama(
    { default: new URL("/peers/@wllama/wllama/esm/wasm/wllama.wasm", document.URL).href },
    { logger: QUIET },
  );
  const response = await fetch(`/models/${nameOf(path)}`);
  await wllama.loadModel([await response.blob()], { n_ctx: context, n_threads: threads, n_gpu_layers: 0 });
  return wllama;
}

export async function start(threads) {
  return async (kind, { path, context, count }) => {
    if (kind !== "write") throw new Error(`has no ${kind}`);
    const wllama = await load(path, threads, context + count + 1);
    const generate = async (count, onToken) => {
      const chunks = await wllama.createCompletion({
        prompt: lettersOf(context),
        max_tokens: count,
        temperature: 0,
        ignore_eos: true,
        stream: true,
      });
      for await (const { choices } of chunks) if (choices[0]?.text) onToken(choices[0].text);
    };
    return { check: () => written(count, generate), dispose: () => void wllama.exit() };
  };
}
