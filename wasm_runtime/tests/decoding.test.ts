import assert from "node:assert/strict";
import { test } from "node:test";

import { ProgramError } from "../src/errors";
import { Decoder, type DecoderEntry } from "../src/text/decoding";

const sequence = (...decoders: DecoderEntry[]): DecoderEntry => ({ type: "Sequence", decoders });
const fuse: DecoderEntry = { type: "Fuse" };
const replace = (old: string, content: string): DecoderEntry => ({
  type: "Replace",
  pattern: { String: old },
  content,
});

/** The text after each token, and at the end. */
function textsOf(entry: DecoderEntry | null, tokens: readonly string[], cleansUp = false): string[] {
  const decoder = new Decoder(entry, cleansUp);
  return [...tokens.map((token) => decoder.feed(token)), decoder.finish()];
}

// The texts, joined, are those of the library tokenizers 0.23.
for (const [name, entry, tokens, texts] of [
  ["no decoder", null, ["a", "b", "c"], ["a", " b", " c", ""]],
  ["ByteLevel", { type: "ByteLevel" }, ["Ġ", "Ã", "©x", "Ã"], [" ", "", "éx", "", "\ufffd"]],
  [
    "ByteFallback",
    sequence({ type: "ByteFallback" }, fuse),
    ["a", "<0xC3>", "<0xA9>", "b", "<0xC3>", "<0x41>", "c", "<0xC3>"],
    ["a", "", "", "éb", "", "", "\ufffd\ufffdc", "", "\ufffd"],
  ],
  [
    "WordPiece",
    { type: "WordPiece", prefix: "##", cleanup: true },
    ["do", "not", "play", "##ing", "!", "it", "'s"],
    ["do", " not", " play", "ing", "!", " it", "'s", ""],
  ],
  ["WordPiece without cleanup", { type: "WordPiece", prefix: "##" }, ["a", "##b", "."], ["a", "b", " .", ""]],
  [
    "Metaspace",
    { type: "Metaspace", replacement: "▁", prepend_scheme: "always" },
    ["▁a", "▁b", "c▁"],
    ["a", " b", "c ", ""],
  ],
  [
    "Metaspace that prepends nothing",
    { type: "Metaspace", replacement: "▁", prepend_scheme: "never" },
    ["▁a", "▁b"],
    [" a", " b", ""],
  ],
  ["BPEDecoder", { type: "BPEDecoder", suffix: "</w>" }, ["a", "b</w>", "c</w>"], ["", "a", "b ", "c"]],
  [
    "Llama's",
    sequence(replace("▁", " "), { type: "ByteFallback" }, fuse, { type: "Strip", content: " ", start: 1 }),
    ["▁▁a", "▁b"],
    [" a", " b", ""],
  ],
  ["Strip", { type: "Strip", content: "x", start: 1, stop: 1 }, ["xxax", "xa", "ax"], ["xa", "a", "a", ""]],
  ["Strip of nothing", { type: "Strip", content: "x" }, ["xax"], ["xax", ""]],
  [
    "Strip of the whole text",
    sequence(fuse, { type: "Strip", content: "x", start: 3, stop: 2 }),
    ["xx", "xxa", "x", "xx", "b", "xx", "x"],
    ["", "xa", "", "x", "xxb", "", "x", ""],
  ],
  ["Replace of one character", sequence(fuse, replace("a", "b")), ["a", "bca"], ["b", "bcb", ""]],
  ["Replace of several", sequence(fuse, replace("ab", "c")), ["a", "bc", "ab"], ["", "", "", "ccc"]],
] as const) {
  test(`text is given as soon as it is certain: ${name}`, () => {
    assert.deepEqual(textsOf(entry, tokens), texts);
  });
}

test("text that is cleaned up waits for what may still change it", () => {
  const tokens = ["a", ".", "do", "n't", "b", "'", "c", "d"];
  const texts = textsOf(null, tokens, true);
  assert.equal(texts.join(""), "a. don't b'c d");
  assert.deepEqual(texts.slice(0, 4), ["", "", "a.", ""]);
});

test("a decoder that there is not is refused by name", () => {
  assert.throws(
    () => new Decoder({ type: "Future" }, false),
    (error) => error instanceof ProgramError && error.message.includes("got Future: use a newer polygrad"),
  );
});
