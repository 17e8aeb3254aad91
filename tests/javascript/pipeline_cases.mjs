/** `pipeline`, case by case, as in cases.mjs; `host.models` is the folder that tests/pipeline_models.py made. */

import { thrown } from "./case_helpers.mjs";

const TEXTS = ["the cat sat on the mat .", "a red dog ran", "the mat"];
const PROMPTS = ["Once upon a time", "Hello", "The quick brown fox"];
const CHAT = [{ role: "user", content: "Hi there" }];
const SIZE = 16;

/** The bytes of a file. In Node addresses are paths. */
async function fetchBytes({ models }, name) {
  if (/^https?:|^\//.test(models) && typeof document !== "undefined") {
    return new Uint8Array(await (await fetch(`${models}/${name}`)).arrayBuffer());
  }
  const { readFile } = await import("node:fs/promises");
  return new Uint8Array(await readFile(`${models}/${name}`));
}

/** The address of the models: of a server, which Node starts. */
async function addressOf(models) {
  if (typeof document !== "undefined") return { url: models, close: () => undefined };
  const { createServer } = await import("node:http");
  const { readFile } = await import("node:fs/promises");
  const server = createServer((request, response) => {
    readFile(models + request.url).then(
      (bytes) => response.end(bytes),
      () => response.writeHead(404).end(),
    );
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** The files of models that this process still has open, after a moment. Only Node on Linux says so. */
async function openFiles(models) {
  if (typeof document !== "undefined") return [];
  const { readdir, readlink } = await import("node:fs/promises");
  for (let tries = 0; ; tries++) {
    const numbers = await readdir("/proc/self/fd").catch(() => []);
    const files = await Promise.all(numbers.map((n) => readlink(`/proc/self/fd/${n}`).catch(() => "")));
    const open = files.filter((file) => file.startsWith(models));
    if (open.length === 0 || tries === 20) return open;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const sound = (count, frequency = 3) =>
  Float32Array.from({ length: count }, (_, i) => Math.fround(Math.sin((i * frequency) / 50)));

/** RGB rows as ImageData has them, with alpha. */
function pixelsOf({ picture }) {
  const data = new Uint8ClampedArray(SIZE * SIZE * 4).fill(255);
  picture.forEach((value, i) => (data[Math.floor(i / 3) * 4 + (i % 3)] = value));
  return { data, width: SIZE, height: SIZE };
}

export const pipelineCases = {
  async textGeneration({ pipeline }, { models }) {
    const progress = [];
    const generator = await pipeline("text-generation", `${models}/talker`, {
      onProgress: (p) => progress.push(p),
    });
    const options = { maxNewTokens: 12 };
    const answer = await generator(PROMPTS[0], options);
    const found = {
      about: [generator.task, generator.architecture],
      progress: [progress.at(-1).stage, progress.at(-1).fraction, progress.at(-1).loaded],
      answer,
      all: (await generator(PROMPTS, options)).map(({ tokens }) => tokens),
      chat: (await generator(CHAT, options)).tokens,
      ids: (await generator(answer.tokens.slice(0, 3), { maxNewTokens: 1 })).promptTokens,
    };
    // streamed: the same text; the returned value is the whole answer
    const texts = [];
    const stream = generator.stream(PROMPTS[0], options);
    for (;;) {
      const { value, done } = await stream.next();
      if (done) {
        found.returned = value;
        break;
      }
      texts.push(value);
    }
    found.streamed = texts.join("");
    found.pieces = texts.length;
    // left early: the model is free for others
    for await (const text of generator.stream(PROMPTS[1], { maxNewTokens: 200 })) {
      found.left = text.length > 0;
      break;
    }
    found.again = (await generator(PROMPTS[1], options)).tokens;
    // two streams at once
    const collect = async (prompt) => {
      const texts = [];
      for await (const text of generator.stream(prompt, options)) texts.push(text);
      return texts.join("");
    };
    found.together = await Promise.all(PROMPTS.map(collect));
    found.separate = [];
    for (const prompt of PROMPTS) found.separate.push((await generator(prompt, options)).text);
    // drawn
    const drawn = { maxNewTokens: 8, temperature: 1, topK: 50, topP: 0.9, seed: 7 };
    found.seeds = [
      (await generator("a", drawn)).text === (await generator("a", drawn)).text,
      (await generator("a", drawn)).text === (await generator("a", { ...drawn, seed: 8n })).text,
    ];
    found.several = (await generator("a", { ...drawn, n: 3 })).map(({ tokens }) => tokens.length);
    const [first] = answer.tokens;
    found.biased = (await generator(PROMPTS[0], { ...options, logitBias: { [first]: -100 } })).tokens[0];
    // cancelled
    const controller = new AbortController();
    let count = 0;
    const aborted = async () => {
      const { signal } = controller;
      for await (const text of generator.stream("a", { maxNewTokens: 400, signal, stopTokens: [] })) {
        count += text.length;
        controller.abort(new RangeError("enough"));
      }
    };
    found.aborted = await thrown(aborted);
    found.early = await thrown(() => generator("a", { signal: controller.signal }));
    found.short = count < 200;
    found.timed = await thrown(() =>
      generator("a", { maxNewTokens: 500, stopTokens: [], signal: AbortSignal.timeout(30) }),
    );
    found.wrong = {
      option: await thrown(() => generator("a", { max_new_tokens: 3 })),
      temperature: await thrown(() => generator("a", { temperature: -1 })),
      tokens: await thrown(() => generator([100000])),
      empty: await thrown(() => generator([])),
      several: await thrown(() => generator.stream(["a", "b"])),
    };
    generator.dispose();
    found.wrong.disposed = await thrown(() => generator("a"));
    return found;
  },

  async encoders({ pipeline }, { models }) {
    const extractor = await pipeline("feature-extraction", `${models}/embedder`);
    const unit = await pipeline("feature-extraction", `${models}/embedder`, {
      pooling: "cls",
      normalize: true,
    });
    const vectors = await extractor(TEXTS);
    const one = await extractor(TEXTS[1]);
    const classifier = await pipeline("text-classification", `${models}/classifier/`);
    const filler = await pipeline("fill-mask", `${models}/masked`);
    const onnx = await pipeline("text-classification", `${models}/onnx-classifier`);
    const found = {
      shapes: [vectors.shape, one.shape, vectors.dtype],
      vectors: await vectors.tolist(),
      one: await one.tolist(),
      cls: await (await unit(TEXTS)).tolist(),
      labels: classifier.labels,
      classes: await classifier(TEXTS),
      best: await classifier(TEXTS[0], { topK: 1 }),
      mask: filler.maskToken,
      filled: await filler(`the ${filler.maskToken} sat on ${filler.maskToken} .`, { topK: 3 }),
      onnx: await onnx(TEXTS),
      wrong: {
        mask: await thrown(() => filler("the cat")),
        count: await thrown(() => classifier("a", { topK: 0 })),
        name: await thrown(() => classifier("a", { topk: 1 })),
        none: await thrown(() => extractor("a", { topK: 1 })),
        pooling: await thrown(() => pipeline("feature-extraction", `${models}/embedder`, { pooling: "x" })),
        task: await thrown(() => pipeline("fill-mask", `${models}/embedder`)),
        option: await thrown(() => pipeline("fill-mask", `${models}/masked`, { pooling: "cls" })),
        onnx: await thrown(() => pipeline("text-generation", `${models}/onnx-classifier/model.onnx`)),
      },
      open: await openFiles(models),
    };
    for (const model of [extractor, unit, classifier, filler, onnx]) model.dispose();
    return found;
  },

  async images({ pipeline, Tensor }, host) {
    const { models } = host;
    const pixels = pixelsOf(host);
    const classifier = await pipeline("image-classification", `${models}/images`);
    const zeroShot = await pipeline("zero-shot-image-classification", `${models}/clip`);
    const detector = await pipeline("object-detection", `${models}/detector`);
    const labels = ["cat", "dog", "red mat"];
    const hypothesisTemplate = "the {} .";
    const tensor = Tensor.fromImage(pixels, { channels: 3 });
    const found = {
      classes: await classifier(pixels),
      tensor: await classifier([tensor, pixels], { topK: 1 }),
      zeroShot: await zeroShot(pixels, labels, { hypothesisTemplate }),
      two: await zeroShot([pixels, pixels], labels.slice(0, 2), { hypothesisTemplate }),
      objects: await detector(pixels, { threshold: 0.3 }),
      file: await detector(pixels, { threshold: 1 }),
      wrong: {
        template: await thrown(() => zeroShot(pixels, labels, { hypothesisTemplate: "a" })),
        kind: await thrown(() => classifier(3)),
        family: await thrown(() => pipeline("object-detection", `${models}/images`)),
      },
    };
    if (typeof document !== "undefined") {
      const canvas = new OffscreenCanvas(SIZE, SIZE);
      canvas.getContext("2d").putImageData(new globalThis.ImageData(pixels.data, SIZE, SIZE), 0, 0);
      const blob = await canvas.convertToBlob({ type: "image/png" });
      const url = URL.createObjectURL(blob);
      found.drawn = [await classifier(canvas), await classifier(blob)];
      URL.revokeObjectURL(url);
      found.wrong.undecodable = await thrown(() => classifier(new Blob([new Uint8Array(9)])));
    } else found.wrong.undecodable = await thrown(() => classifier(new Blob([new Uint8Array(9)])));
    for (const model of [classifier, zeroShot, detector]) model.dispose();
    return found;
  },

  async speech({ pipeline }, { models }) {
    const recognizer = await pipeline("automatic-speech-recognition", `${models}/speech`);
    const found = {
      seconds: recognizer.seconds,
      one: await recognizer(sound(16000)),
      two: (await recognizer([sound(16000), sound(16000)])).map(({ tokens }) => tokens),
      english: (await recognizer(sound(16000), { language: "en" })).tokens,
      long: (await recognizer(Float32Array.from([...sound(16000), ...sound(8000, 7)]))).tokens,
      wrong: {
        language: await thrown(() => recognizer(sound(100), { language: "xx" })),
        option: await thrown(() => recognizer("nowhere.wav", { stop: "a" })),
        samples: await thrown(() => recognizer("nowhere.wav")),
        kind: await thrown(() => recognizer(3)),
        signal: await thrown(() =>
          recognizer(sound(100), { signal: AbortSignal.abort(new RangeError("no")) }),
        ),
      },
    };
    recognizer.dispose();
    return found;
  },

  /** One model from everywhere: the same tokens. */
  async limits({ pipeline }, host) {
    const index = JSON.parse(
      new TextDecoder().decode(await fetchBytes(host, "parts/model.safetensors.index.json")),
    );
    const names = new Set(Object.values(index.weight_map));
    const sizes = await Promise.all(
      [...names].map(async (n) => (await fetchBytes(host, `parts/${n}`)).length),
    );
    const weights = sizes.reduce((a, b) => a + b);
    const { url, close } = await addressOf(host.models);
    const load = async (options) => {
      const generator = await pipeline("text-generation", `${url}/parts`, { cache: false, ...options });
      const { tokens } = await generator(PROMPTS[1], { maxNewTokens: 6 });
      generator.dispose();
      return tokens;
    };
    const found = {
      parts: [sizes.length, Math.max(...sizes) < weights - 1],
      enough: await load({ maxBytes: 2 * weights, timeout: 60 }),
      weights: await thrown(() => load({ maxBytes: weights - 1 })),
      file: await thrown(() => load({ maxBytes: 10 })),
      time: await thrown(() => load({ timeout: 1e-6 })),
      none: await thrown(() => load({ maxBytes: 0 })),
    };
    close();
    return found;
  },

  async sources({ pipeline }, host) {
    const { models } = host;
    const options = { maxNewTokens: 6 };
    const tokensOf = async (source, more) => {
      const generator = await pipeline("text-generation", source, more);
      const { tokens } = await generator(PROMPTS[1], options);
      generator.dispose();
      return tokens;
    };
    const names = ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"];
    const files = {};
    for (const name of names) files[name] = await fetchBytes(host, `talker/${name}`);
    const asFiles = names.map((name) => new globalThis.File([files[name]], name));
    const [q4, part] = ["q4/model.gguf", "q8-parts/model-00002-of-00003.gguf"];
    const gguf = async (source, more) => {
      const progress = [];
      const generator = await pipeline("text-generation", source, {
        ...more,
        onProgress: ({ fraction }) => progress.push(fraction),
      });
      const { tokens } = await generator([5, 6, 7], options);
      generator.dispose();
      return [tokens, progress.at(-1)];
    };
    const bytes = await fetchBytes(host, q4);
    return {
      talker: {
        folder: await tokensOf(`${models}/talker`),
        weights: await tokensOf(`${models}/talker/model.safetensors`),
        parts: await tokensOf(`${models}/parts`),
        record: await tokensOf(files),
        files: await tokensOf(asFiles),
        url: await tokensOf(
          typeof document === "undefined"
            ? new URL(`file://${models}/talker`)
            : new URL(`${models}/talker`, document.baseURI),
        ),
        file: await tokensOf(`${models}/talker`, { file: "model.safetensors" }),
      },
      packed: await tokensOf(`${models}/talker`, { quantize: "int8", dtype: "float16" }),
      q4: {
        address: await gguf(`${models}/${q4}`),
        bytes: await gguf(bytes),
        buffer: await gguf(bytes.slice().buffer),
        blob: await gguf(new Blob([bytes])),
        file: await gguf(`${models}/q4`, { file: "model.gguf" }),
      },
      parts: await gguf(`${models}/${part}`),
      wrong: {
        missing: await thrown(() => pipeline("text-generation", `${models}/nowhere`)),
        file: await thrown(() => pipeline("text-generation", `${models}/talker`, { file: "other.gguf" })),
        cut: await thrown(() => pipeline("text-generation", bytes.slice(0, bytes.length >> 1))),
        damaged: await thrown(() =>
          pipeline("text-generation", { ...files, "config.json": new Blob(["{"]) }),
        ),
        kind: await thrown(() => pipeline("text-generation", 3)),
        task: await thrown(() => pipeline("summarization", `${models}/talker`)),
        option: await thrown(() => pipeline("text-generation", `${models}/talker`, { max_batch: 2 })),
        signal: await thrown(() =>
          pipeline("text-generation", `${models}/talker`, {
            signal: AbortSignal.abort(new RangeError("no")),
          }),
        ),
        during: await thrown(() => {
          const controller = new AbortController();
          return pipeline("text-generation", `${models}/talker`, {
            signal: controller.signal,
            onProgress: () => controller.abort(new RangeError("stop")),
          });
        }),
      },
    };
  },
};
