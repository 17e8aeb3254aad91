import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ProgramError } from "../src/errors";
import { readAnyHead } from "../src/files";
import { PieceReader } from "../src/pieces";
import { checkVerdicts } from "./headers";
import { CHAIN, programBytes } from "./modules";

const GOLDEN = new URL("../../../../tests/golden/bundle_header.txt", import.meta.url);
const [HEX = ""] = readFileSync(GOLDEN, "utf-8").split("\n");
const BUNDLE = Uint8Array.from(HEX.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));

/** The head of a whole file. */
async function read(data: Uint8Array): Promise<Awaited<ReturnType<typeof readAnyHead>>> {
  const reader = new PieceReader(data);
  const head = await readAnyHead(reader);
  for await (const { length } of reader.stream(head.values, 4)) assert.ok(length > 0);
  await reader.end();
  return head;
}

/** The bundle with another header, text of JSON. */
function withHeader(change: (text: string) => string): Uint8Array {
  const length = new DataView(BUNDLE.buffer).getUint32(8, true);
  const text = new TextEncoder().encode(change(new TextDecoder().decode(BUNDLE.subarray(12, 12 + length))));
  const prefix = BUNDLE.slice(0, 12);
  new DataView(prefix.buffer).setUint32(8, text.length, true);
  return Uint8Array.from([...prefix, ...text, ...BUNDLE.subarray(12 + length)]);
}

test("a bundle is read as Python wrote it", async () => {
  const { kind, programs, files, settings, zeros, values } = await read(BUNDLE);
  assert.deepEqual([kind, [...programs.keys()], [...files.keys()]], ["a-kind", ["a", "b"], ["f.json"]]);
  assert.deepEqual([settings, zeros, values], [{ n: 3 }, ["cache"], 6]);
});

test("this reader accepts and refuses the same headers of bundles as Python's", async () => {
  await checkVerdicts("bundle_header.txt", read);
});

test("what a header says of sizes is believed when the bytes arrive", async () => {
  for (const length of ["4294967296", "9007199254740991"]) {
    const data = withHeader((text) => text.replace(/"length":\d+/, `"length":${length}`));
    await assert.rejects(
      read(data),
      (e) => e instanceof ProgramError && e.message.includes("file is damaged"),
    );
  }
  const data = BUNDLE.slice();
  new DataView(data.buffer).setUint32(8, 0xffffffff, true);
  await assert.rejects(read(data), (e) => e instanceof ProgramError);
});

test("names are used once", async () => {
  const data = withHeader((text) => text.replace('"name":"b"', '"name":"a"'));
  await assert.rejects(read(data), /expected a header with programs and files/);
});

test("memory of one name has one size, whatever its Variables are", async () => {
  /** A Program whose state x has shape [n], and memory of so many elements. */
  const program = (size: number): Uint8Array => {
    const x = { role: "state", size, shape: ["n"] } as const;
    return programBytes({
      variables: [{ name: "n", lo: 1, hi: size }],
      buffers: CHAIN.buffers.map((spec) => (spec.name === "x" ? { ...spec, ...x } : spec)),
    });
  };
  const bundle = (...programs: Uint8Array[]): Uint8Array => {
    const sections = programs.map(({ length }, i) => ({ name: String(i), length }));
    const header = { kind: "k", settings: {}, programs: sections, files: [], values: 0, zeros: ["x"] };
    const text = new TextEncoder().encode(JSON.stringify(header));
    const prefix = BUNDLE.slice(0, 12);
    new DataView(prefix.buffer).setUint32(8, text.length, true);
    return Uint8Array.from([prefix, text, ...programs].flatMap((part) => [...part]));
  };
  assert.equal((await read(bundle(program(4), program(4)))).programs.size, 2);
  await assert.rejects(
    read(bundle(program(4), program(2))),
    /x: expected int32 \["n"\] of 4 elements as before/,
  );
});
