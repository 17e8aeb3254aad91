import assert from "node:assert/strict";
import { test } from "node:test";

import { recordsOf } from "../../wasm_runtime/src/api/datasets/csv_records";
import { parseCSV } from "../src/csv";

/** The fields of the records of a text that arrives in pieces of `size` bytes. */
async function fields(text: string, size = 1000, delimiter?: string): Promise<(readonly string[])[]> {
  const bytes = new TextEncoder().encode(text);
  const pieces = async function* (): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < bytes.length; i += size) yield await Promise.resolve(bytes.subarray(i, i + size));
  };
  const out = [];
  for await (const record of recordsOf({ pieces: pieces() }, parseCSV, delimiter, "test")) {
    assert.equal(record.number, out.length + 1);
    out.push(record.fields);
  }
  return out;
}

// What Python's module csv gives.
const CASES = [
  [
    "a,b\n1,2\n3,4\n",
    [
      ["a", "b"],
      ["1", "2"],
      ["3", "4"],
    ],
  ],
  [
    "a,b\r\n1,2\r\n\r\n3,4",
    [
      ["a", "b"],
      ["1", "2"],
      ["3", "4"],
    ],
  ],
  [
    '"x, y","say ""hi"""\n"two\nlines",é\n',
    [
      ["x, y", 'say "hi"'],
      ["two\nlines", "é"],
    ],
  ],
  [
    '"two\r\nlines",""\r\n,\r\n',
    [
      ["two\r\nlines", ""],
      ["", ""],
    ],
  ],
  [
    "\ufeffa;b\n1;2\n",
    [
      ["a", "b"],
      ["1", "2"],
    ],
  ],
  [
    "a\tb\n1\t2\n",
    [
      ["a", "b"],
      ["1", "2"],
    ],
  ],
  ["one\n1\n2\n", [["one"], ["1"], ["2"]]],
  ["a,b\n1\n1,2,3\n", [["a", "b"], ["1"], ["1", "2", "3"]]],
  [
    "a,b\r1,2\r",
    [
      ["a", "b"],
      ["1", "2"],
    ],
  ],
  ["", []],
] as const;

for (const [text, expected] of CASES) {
  test(`${JSON.stringify(text)} has its records, in whatever pieces it arrives`, async () => {
    for (const size of [1, 2, 3, 7, 1000]) assert.deepEqual(await fields(text, size), expected, String(size));
  });
}

test("a delimiter that is given is used", async () => {
  assert.deepEqual(await fields("a,b|c\n1|2\n", 1000, "|"), [
    ["a,b", "c"],
    ["1", "2"],
  ]);
});

test("damaged quotes are errors with the number of the record", async () => {
  await assert.rejects(fields('a,b\n1,2\n"x,3\n'), {
    name: "ArgumentError",
    message: /^test: record 3: Quoted field unterminated/,
  });
  await assert.rejects(fields('a,b\n"x" y,3\n'), { message: /^test: record 2: Trailing quote/ });
});
