/** The signatures of `tests/pgrd`: this reader gives the verdicts that Python's gives. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { FetchError, ProgramError, SignatureError } from "../src/errors";
import { loadersOf } from "../src/loaders";
import { once } from "../src/pieces";
import { signaturePlace, signedHead } from "../src/signatures";
import type { ModelOptions, OpenedFile } from "../src/source";

interface Case {
  readonly signature: string;
  readonly verdict: "good" | "whole" | "refused";
}

// relative to build/tests/wasm_runtime/tests
const FOLDER = new URL("../../../../tests/pgrd/", import.meta.url);
const { file, public_key, cases } = JSON.parse(readFileSync(new URL("signatures.json", FOLDER), "utf-8")) as {
  file: string;
  public_key: string;
  cases: Case[];
};
const MODEL = new Uint8Array(readFileSync(new URL(file, FOLDER)));
const OTHER = new Uint8Array(readFileSync(new URL("good/captured.pgrd", FOLDER)));
const SIGNATURE = Buffer.from(cases.find(({ verdict }) => verdict === "good")?.signature ?? "", "base64");

/** Loaders on files by their names; `opened`: the names that were asked for. */
function loaders(files: Record<string, Uint8Array>, length = 7) {
  const opened: string[] = [];
  const { load } = loadersOf<string | Uint8Array, ModelOptions>({
    hostOf: () => ({}),
    open: (source): Promise<OpenedFile> => {
      const data = typeof source === "string" ? files[source] : source;
      if (typeof source === "string") opened.push(source);
      if (data === undefined) return Promise.reject(new FetchError("no file", { status: 404 }));
      async function* pieces(whole: Uint8Array): AsyncGenerator<Uint8Array> {
        for (let i = 0; i < whole.length; i += length) yield* once(whole.subarray(i, i + length));
      }
      return Promise.resolve({ pieces: pieces(data), length: data.length });
    },
  });
  return { load, opened };
}

for (const [number, { signature, verdict }] of cases.entries()) {
  test(`the verdict on signature ${number}`, async () => {
    const files = { "m.pgrd": MODEL, "m.pgrd.minisig": Buffer.from(signature, "base64") };
    const { load, opened } = loaders(files);
    const loaded = load("m.pgrd", { publicKey: public_key });
    if (verdict === "good") assert.equal((await loaded).inputs.length, 1);
    else await assert.rejects(loaded, SignatureError);
    assert.equal(opened[0], "m.pgrd.minisig");
  });
}

test("another file, and another byte of the file, are refused", async () => {
  const refuses = async (data: Uint8Array, type: typeof SignatureError | typeof ProgramError) =>
    assert.rejects(loaders({}).load(data, { publicKey: public_key, signature: SIGNATURE }), type);
  await refuses(OTHER, SignatureError);
  await refuses(new Uint8Array(), SignatureError);
  for (let at = 0; at < MODEL.length; at += 29) {
    const changed = MODEL.slice();
    changed[at] = (changed[at] ?? 0) ^ 4;
    await refuses(changed, at < 44 ? SignatureError : ProgramError);
  }
  await assert.rejects(loaders({}).load(OTHER, { signature: SIGNATURE }), /^RangeError: load: signature/);
});

test("nothing is loaded without a signature", async () => {
  const { load, opened } = loaders({ "m.pgrd": MODEL });
  await assert.rejects(load("m.pgrd", { publicKey: public_key }), (error: unknown) => {
    assert(error instanceof SignatureError && error.cause instanceof FetchError);
    return error.message === "load: expected a signature beside the file, got none";
  });
  assert.deepEqual(opened, ["m.pgrd.minisig"]);
  await assert.rejects(load(MODEL, { publicKey: public_key }), SignatureError);
});

test("a key is its text, or the lines of its file", async () => {
  for (const key of [public_key, `untrusted comment: minisign public key 1\n${public_key}\n`]) {
    assert.match(await signedHead(SIGNATURE, key), /^50475244/);
  }
  for (const key of ["", "RW", public_key.slice(4), SIGNATURE.toString()]) {
    await assert.rejects(
      signedHead(SIGNATURE, key),
      /^RangeError: load: publicKey: expected one of minisign/,
    );
  }
});

test("an engine without Ed25519 says so", async (t) => {
  t.mock.method(crypto.subtle, "importKey", () => Promise.reject(new DOMException("", "NotSupportedError")));
  await assert.rejects(
    signedHead(SIGNATURE, public_key),
    /SignatureError: signature: expected an engine with Ed25519/,
  );
});

test("a signature is beside its file", () => {
  assert.equal(signaturePlace("a/m.pgrd"), "a/m.pgrd.minisig");
  assert.equal(signaturePlace(new URL("https://a.test/m.pgrd?v=1#x")), "https://a.test/m.pgrd.minisig?v=1#x");
  assert.equal(signaturePlace(MODEL), undefined);
});
