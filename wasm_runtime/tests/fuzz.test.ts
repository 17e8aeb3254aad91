/** A few damaged files for every reader, the same in each run; `npm run fuzz` tries more of them. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { InternalError, ProgramError } from "../src/errors";
import { changed, Random } from "./fuzz/changes";
import { READERS, verdict } from "./fuzz/readers";

const COUNT = 1000;

for (const [name, reader] of Object.entries(READERS)) {
  test(`${name}: good files are read`, async () => {
    assert(reader.files.length > 0);
    for (const data of reader.files) {
      const { isRead, wrong } = await verdict(reader, data);
      assert(isRead || name === "signatures" || name === "exported files"); // some are refused, or for a GPU
      assert.equal(wrong, "");
    }
  });

  test(`${name}: ${COUNT} damaged files give values or errors that say so`, async () => {
    const random = new Random(7);
    let readCount = 0;
    for (let i = 0; i < COUNT; i++) {
      const data = changed(reader.files, random);
      const { isRead, wrong } = await verdict(reader, i % 4 ? (reader.seal?.(data) ?? data) : data);
      assert.equal(wrong, "", `file ${i}: ${Buffer.from(data).toString("latin1")}`);
      if (isRead) readCount += 1;
    }
    assert(readCount > 0 && readCount < COUNT, `${readCount} were read`);
  });
}

test("the same seed makes the same files, another seed others", () => {
  const files = [Buffer.from('{"a": [1, 2, 3]}')];
  const several = (seed: number): string => {
    const random = new Random(seed);
    return Array.from({ length: 50 }, () => Buffer.from(changed(files, random)).toString("latin1")).join(
      "\n",
    );
  };
  assert.equal(several(1), several(1));
  assert.notEqual(several(1), several(2));
});

test("errors that are no verdict on a file are found", async () => {
  const failing = (error: Error) => ({
    files: [],
    read: () => {
      throw error;
    },
  });
  const data = new Uint8Array();
  assert.equal((await verdict(failing(new ProgramError("damaged")), data)).wrong, "");
  assert.match((await verdict(failing(new TypeError("x is undefined")), data)).wrong, /x is undefined/);
  assert.match((await verdict(failing(new InternalError("a bug")), data)).wrong, /internal: a bug/);
});
