import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ProgramError } from "../src/errors";
import { readAnyHead } from "../src/files";
import { checkedBlocks } from "../src/parts";
import { PieceReader } from "../src/pieces";
import { checkVerdicts } from "./headers";
import { CHAIN, concatenated, headerBytes, headerText, partOf, programBytes, withHeader } from "./modules";

const GOLDEN = new URL("../../../../tests/golden/bundle_header.txt", import.meta.url);
const [HEX = ""] = readFileSync(GOLDEN, "utf-8").split("\n");
const BUNDLE = Uint8Array.from(HEX.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));

/** The head of a whole file. */
async function read(data: Uint8Array): Promise<Awaited<ReturnType<typeof readAnyHead>>> {
  const reader = new PieceReader(data);
  const head = await readAnyHead(reader);
  for await (const { length } of checkedBlocks(reader, head.values, "values")) assert.ok(length > 0);
  await reader.end();
  return head;
}

/** The bundle with another text of its header. */
const changed = (change: (text: string) => string): Uint8Array =>
  withHeader(BUNDLE, change(headerText(BUNDLE)));

test("a bundle is read as Python wrote it", async () => {
  const { kind, targets, files, settings, zeros, values } = await read(BUNDLE);
  const names = targets.map((programs) => [...programs.keys()]);
  assert.deepEqual(
    [kind, names, [...files.keys()]],
    [
      "a-kind",
      [
        ["a", "b"],
        ["b", "a"],
      ],
      ["f.json"],
    ],
  );
  assert.deepEqual([settings, zeros, values.bytes], [{ n: 3 }, ["cache"], 6]);
});

test("this reader accepts and refuses the same headers of bundles as Python's", async () => {
  await checkVerdicts("bundle_header.txt", read);
});

test("what a header says of sizes is believed when the bytes arrive", async () => {
  for (const bytes of [2 ** 31, 2 ** 40]) {
    const sha256 = JSON.stringify(Array(bytes / 2 ** 22).fill("0".repeat(64)));
    const data = changed((text) =>
      text.replace(
        /"bytes":\d+,("name":"f.json"),"sha256":[^\]]*\]/,
        `"bytes":${bytes},$1,"sha256":${sha256}`,
      ),
    );
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
  const data = changed((text) => text.replaceAll('"name":"b"', '"name":"a"'));
  await assert.rejects(read(data), /no header with programs and files/);
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
    const settings = new TextEncoder().encode("{}");
    const header = {
      kind: "k",
      settings: partOf(settings),
      programs: programs.map((bytes, i) => ({ name: String(i), target: 0, ...partOf(bytes) })),
      files: [],
      values: partOf(new Uint8Array()),
      zeros: ["x"],
    };
    return concatenated([headerBytes("PGRB", 3, header), settings, ...programs]);
  };
  assert.equal((await read(bundle(program(4), program(4)))).targets[0]?.size, 2);
  await assert.rejects(
    read(bundle(program(4), program(2))),
    /x: expected int32 \["n"\] of 4 elements as before/,
  );
});
