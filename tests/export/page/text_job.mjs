/** Loads an exported model and gives what it makes of each case; an error is its name and message. */

/** Python's names as JavaScript's. */
const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

const optionsOf = (given) => {
  const options = Object.fromEntries(Object.entries(given).map(([name, value]) => [camel(name), value]));
  return { ...options, ...(options.seed !== undefined && { seed: BigInt(options.seed) }) };
};

const messageOf = (error) => `${error.name}: ${error.message}`;

async function answer(model, { prompt, options = {}, abortAfter }) {
  const controller = new AbortController();
  const settings = { ...optionsOf(options), signal: controller.signal };
  const isChat = typeof prompt !== "string" && typeof prompt[0] === "object";
  const out = { text: "", tokens: [], finishReason: null, pieces: 0 };
  try {
    const pieces = isChat ? model.chat(prompt, settings) : model.generate(prompt, settings);
    for await (const { text, tokens, finishReason } of pieces) {
      out.text += text;
      out.tokens.push(...tokens);
      out.finishReason = finishReason ?? null;
      if (++out.pieces === abortAfter) controller.abort(new Error("enough"));
    }
  } catch (error) {
    out.error = messageOf(error);
  }
  return out;
}

export async function doJob(
  { runtime, tokenizers },
  { loader, source, withText = true, cases = [], texts = [] },
) {
  const progress = [];
  const options = { onProgress: ({ loaded }) => progress.push(loaded), ...(withText && { tokenizers }) };
  const started = performance.now();
  let model;
  try {
    model = await runtime[loader](source, options);
  } catch (error) {
    return { error: messageOf(error) };
  }
  const milliseconds = performance.now() - started;
  const answers = [];
  for (const one of cases) answers.push(await answer(model, one));
  const out = { milliseconds, loaded: progress.at(-1), answers };
  try {
    if (loader === "loadTextEncoder") out.values = (await model.embed(texts)).map((row) => [...row]);
    if (loader === "loadTextClassifier") out.values = await model.classify(texts);
  } catch (error) {
    out.error = messageOf(error);
  }
  return out;
}
