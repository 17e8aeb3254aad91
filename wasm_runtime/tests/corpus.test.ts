/** The files of `tests/pgrd`: this reader gives the verdicts that Python's gives. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ProgramError } from "../src/errors";
import { STEP } from "../src/files";
import { memoryOf, openModel, type OpenedModel } from "../src/loading";
import { loadersOf } from "../src/loaders";
import { loadModel } from "../src/model";
import { once } from "../src/pieces";
import type { ModelOptions } from "../src/source";

interface Verdict {
  readonly inputs?: Readonly<Record<string, number | number[]>>;
  readonly outputs?: Readonly<Record<string, (number | null)[]>>;
  readonly reads?: true;
  readonly refused?: "magic" | "version" | "digest" | "damaged";
  readonly kind?: string;
}

// relative to build/tests/wasm_runtime/tests
const FOLDER = new URL("../../../../tests/pgrd/", import.meta.url);
const VERDICTS = Object.entries(
  JSON.parse(readFileSync(new URL("verdicts.json", FOLDER), "utf-8")) as Record<string, Verdict>,
);
const REASONS = {
  magic: /expected bytes starting/,
  version: /expected version [\d or]+, got \d+: (export it again|use a newer polygrad)/,
  digest: /SHA-256/,
  damaged: /./,
};

const fileOf = (name: string): Uint8Array => new Uint8Array(readFileSync(new URL(name, FOLDER)));

/** A file in memory, in pieces of a length. */
function read(data: Uint8Array, { kind }: Verdict, length = data.length): Promise<OpenedModel> {
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < data.length; i += length) yield await Promise.resolve(data.subarray(i, i + length));
  }
  const isBundle = String.fromCharCode(...data.subarray(0, 4)) === "PGRB";
  return openModel(pieces(), kind ?? (isBundle ? "corpus" : STEP), {});
}

for (const [name, verdict] of VERDICTS) {
  test(`the verdict on ${name}`, async () => {
    const data = fileOf(name);
    for (const length of [data.length, 100]) {
      if (verdict.refused !== undefined) {
        const pattern = REASONS[verdict.refused];
        await assert.rejects(
          read(data, verdict, length),
          (e) => e instanceof ProgramError && pattern.test(e.message),
        );
        continue;
      }
      const opened = await read(data, verdict, length).catch((error: unknown) => {
        // a file for a GPU is read before the GPU is asked for
        assert.match(String(error), /^DeviceError: load: expected a GPU/);
        return undefined;
      });
      assert.equal(opened === undefined, name.startsWith("good/grid"));
    }
    if (verdict.outputs === undefined || verdict.kind !== undefined) return;
    const outputs = await (await loadModel(data)).run(verdict.inputs);
    for (const [key, numbers] of Object.entries(verdict.outputs)) {
      const found = [...(outputs[key]?.data ?? [])];
      assert.deepEqual(
        found.map((n, i) => (numbers[i] === null ? null : n)),
        numbers,
      );
    }
  });
}

test("every byte of a good file is checked", async () => {
  for (const [name, verdict] of VERDICTS.filter(([name]) => /^good\/(?!grid)/.test(name))) {
    const data = fileOf(name);
    for (let at = 0; at < data.length; at += Math.max(1, Math.floor(data.length / 100))) {
      const changed = data.slice();
      changed[at] = (changed[at] ?? 0) ^ 1;
      await assert.rejects(read(changed, verdict), ProgramError, `${name} at ${at}`);
    }
  }
});

test("a model of more bytes than are allowed is refused before memory is taken", async () => {
  const nbytes = 8 + 8 + 4 + 64; // x, y, scale, the arena
  const opened = await openModel(fileOf("good/chain.pgrd"), STEP, { maxMemory: nbytes });
  assert.equal(memoryOf(opened.programs.programs), nbytes);
  const two = new Map(
    [...opened.programs.programs].flatMap(([, p]) => [["a", p] as const, ["b", p] as const]),
  );
  assert.equal(memoryOf(two), 2 * (8 + 8) + 4 + 64); // what they share counts once
  const { load } = loadersOf<string, ModelOptions>({
    hostOf: () => ({}),
    open: (name) => Promise.resolve({ pieces: once(fileOf(name)), length: undefined }),
  });
  assert.equal((await load("good/chain.pgrd", { maxMemory: nbytes })).inputs.length, 1);
  await assert.rejects(
    load("good/chain.pgrd", { maxMemory: nbytes - 1 }),
    /^OutOfMemoryError: load: expected a model of up to 83 bytes, got one of 84$/,
  );
});
