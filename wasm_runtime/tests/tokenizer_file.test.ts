/** Tokenizers of exported models: a damaged one is an error that names the part. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { readTokenizerFile } from "../src/text/tokenizer_file";

const GOOD = {
  tokenizer: { added_tokens: [], decoder: null, model: { type: "BPE", vocab: { a: 0 }, merges: ["a a"] } },
  ...{ special: {}, templates: {}, cleans_up: false, single: [{ ids: [], sequence: 0 }] },
  javascript: { model: { type: "BPE" }, normalizer: null, pre_tokenizer: null },
};
const read = (file: unknown) => readTokenizerFile(Buffer.from(JSON.stringify(file)));

test("a good file is read as it is", () => {
  assert.deepEqual(read(GOOD), GOOD);
});

test("the part that is wrong is named", () => {
  for (const [name, wrong] of Object.entries({
    tokenizer: { ...GOOD.tokenizer, decoder: { type: "Strip", content: " ", start: -1, stop: 0 } },
    special: { bos: 3 },
    templates: null,
    cleans_up: "yes",
    single: [{ ids: [0.5], sequence: null }],
  })) {
    const expected = new RegExp(`^ProgramError: tokenizer: ${name} is missing, or is not what it has to be`);
    assert.throws(() => read({ ...GOOD, [name]: wrong }), expected);
    assert.throws(() => read({ ...GOOD, [name]: undefined }), expected);
  }
});

test("a decoder that is not known yet is left to whoever uses it, and sequences end", () => {
  const decoded = (decoder: object) => read({ ...GOOD, tokenizer: { ...GOOD.tokenizer, decoder } });
  decoded({ type: "Newer" });
  let deep: object = { type: "Fuse" };
  for (let i = 0; i < 17; i++) deep = { type: "Sequence", decoders: [deep] };
  assert.throws(() => decoded(deep), /tokenizer is missing/);
});
