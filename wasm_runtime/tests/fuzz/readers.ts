/** The readers of files from others, with good files of each, and what each may throw. */

import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

import { InternalError, PolygradError } from "../../src/errors";
import { readAnyHead } from "../../src/files";
import { settingsOf } from "../../src/generation/settings";
import { openModel } from "../../src/loading";
import { PieceReader } from "../../src/pieces";
import { readEntries, writeEntries } from "../../src/safetensors";
import { signedHead } from "../../src/signatures";
import { parseJson } from "../../src/strict_json";
import { ModelTokenizer } from "../../src/text/tokenizer";

export interface Reader {
  readonly files: readonly Uint8Array[];
  read(data: Uint8Array): unknown;
  /** Make the checksums of a changed file right, so that reading goes on behind them. */
  seal?(data: Uint8Array): Uint8Array;
  /** Errors beside polygrad's own that it may throw. */
  readonly throws?: readonly (new () => Error)[];
}

// relative to the checkout, where scripts/test.mjs and scripts/fuzz.mjs start
const FOLDER = new URL("tests/pgrd/", pathToFileURL(`${process.cwd()}/`));
const { public_key: KEY, cases } = JSON.parse(readFileSync(new URL("signatures.json", FOLDER), "utf-8")) as {
  public_key: string;
  cases: readonly { readonly signature: string }[];
};
const textOf = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

function exportedFiles(): Uint8Array[] {
  const folder = new URL("good/", FOLDER);
  const files = readdirSync(folder).filter((name) => name.endsWith(".pgrd"));
  return files.map((name) => readFileSync(new URL(name, folder))).filter(({ length }) => length < 20_000);
}

/** The SHA-256 of a header follows its length. */
function sealed(data: Uint8Array): Uint8Array {
  const out = Buffer.from(data);
  if (out.length < 44) return out;
  const header = out.subarray(44, 44 + out.readUInt32LE(8));
  createHash("sha256").update(header).digest().copy(out, 12);
  return out;
}

/** Pieces of some lengths. */
async function* pieces(data: Uint8Array): AsyncGenerator<Uint8Array> {
  const length = 1 + (data.length % 701);
  for (let i = 0; i < data.length; i += length) yield await Promise.resolve(data.subarray(i, i + length));
}

const TOKENIZER = {
  tokenizer: {
    added_tokens: [
      {
        id: 4,
        content: "<s>",
        special: true,
        lstrip: false,
        rstrip: true,
        single_word: false,
        normalized: false,
      },
      {
        id: 5,
        content: "New",
        special: false,
        lstrip: false,
        rstrip: false,
        single_word: true,
        normalized: true,
      },
    ],
    decoder: {
      type: "Sequence",
      decoders: [
        { type: "Replace", pattern: { String: "\u2581" }, content: " " },
        { type: "ByteFallback" },
        { type: "Fuse" },
        { type: "Strip", content: " ", start: 1, stop: 0 },
        { type: "WordPiece", prefix: "##", cleanup: true },
        { type: "ByteLevel" },
      ],
    },
    model: { type: "BPE", vocab: { a: 0, b: 1, ab: 2, "<0x0A>": 3 }, merges: ["a b", ["b", "a"]] },
  },
  special: { bos_token: "<s>" },
  templates: { default: "{{ messages }}" },
  cleans_up: true,
  single: [
    { ids: [4], sequence: null },
    { ids: [], sequence: 0 },
  ],
  javascript: { model: { type: "BPE", unk_token: null }, normalizer: null, pre_tokenizer: null },
};
const LIBRARY = {
  openWords: () => ({
    normalize: (text: string) => text.toLowerCase(),
    encode: (text: string) => [text.length % 4],
  }),
  renderTemplate: (template: string) => template,
};

function useTokenizer(data: Uint8Array): void {
  const tokenizer = new ModelTokenizer(data, LIBRARY);
  tokenizer.encode("ab <s> New York");
  tokenizer.decode([0, 3, 1, 2, 4, 5, 7]);
}

const SETTINGS = {
  ...{ capacity: 64, vocabulary: 6, chunks: [1, 8], stop_tokens: [4], max_new_tokens: 10 },
  sampling: { temperature: 0.5, top_k: 5 },
};

export const READERS: Readonly<Record<string, Reader>> = {
  "exported files": {
    files: exportedFiles(),
    seal: sealed,
    read: async (data) => {
      const { kind } = await readAnyHead(new PieceReader(pieces(data)));
      await openModel(pieces(data), kind, { maxMemory: 2 ** 24 });
    },
  },
  safetensors: {
    files: [
      writeEntries(
        new Map([
          ["a", { dtype: "float32", shape: [2, 3], data: new Uint8Array(24) }],
          ["b", { dtype: "int8", shape: [], data: new Uint8Array(1) }],
          ["c", { dtype: "float16", shape: [0, 4], data: new Uint8Array() }],
        ]),
      ),
    ],
    read: readEntries,
  },
  JSON: {
    files: [TOKENIZER, SETTINGS, [1, -2, "é", { a: [null, true] }]].map(textOf),
    read: (data) => parseJson(data, true),
    throws: [SyntaxError, TypeError, RangeError],
  },
  "JSON of integers": {
    files: [TOKENIZER, [1, -2, "é", { a: [null, true] }]].map(textOf),
    read: (data) => parseJson(data),
    throws: [SyntaxError, TypeError, RangeError],
  },
  signatures: {
    files: cases.map(({ signature }) => Buffer.from(signature, "base64")),
    read: (data) => signedHead(data, KEY),
  },
  "tokenizer.json": { files: [textOf(TOKENIZER)], read: useTokenizer },
  settings: {
    files: [textOf(SETTINGS)],
    read: (data) => {
      const value = JSON.parse(Buffer.from(data).toString()) as unknown;
      if (Object.getPrototypeOf(value ?? 0) !== Object.prototype) throw new SyntaxError("refused before");
      return settingsOf(value as Record<string, unknown>);
    },
    throws: [SyntaxError],
  },
};

/** Whether a file is read, and what is wrong with how it is; empty if nothing. */
export async function verdict(reader: Reader, data: Uint8Array): Promise<{ isRead: boolean; wrong: string }> {
  const start = process.cpuUsage();
  let isRead = true;
  let wrong = "";
  try {
    await reader.read(data);
  } catch (error) {
    isRead = false;
    const isOurs = error instanceof PolygradError && !(error instanceof InternalError);
    const isAllowed = isOurs || (reader.throws ?? []).some((kind) => error instanceof kind);
    if (!isAllowed) wrong = error instanceof Error ? (error.stack ?? String(error)) : String(error);
  }
  const { user, system } = process.cpuUsage(start);
  if (wrong === "" && user + system > 1e6) wrong = `${(user + system) / 1e6} s for ${data.length} bytes`;
  return { isRead, wrong };
}
