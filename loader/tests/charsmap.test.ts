import assert from "node:assert/strict";
import { test } from "node:test";

import { Charsmap } from "../src/charsmap";

const encoder = new TextEncoder();

/** A table of replacements in base64. In the double array every node has 256 units of its own. */
function tableOf(replacements: Readonly<Record<string, string>>): string {
  const units: number[] = [256 << 10];
  const texts: number[] = [];
  const nodes = new Map([["", 256]]); // the first unit of a prefix's successors
  const unitAt = (place: number): number => units[place] ?? 0;
  for (const [text, replacement] of Object.entries(replacements)) {
    let first = 256;
    let prefix = "";
    for (const byte of encoder.encode(text)) {
      const place = first ^ byte;
      prefix += `${byte} `;
      first = nodes.get(prefix) ?? 256 * (nodes.size + 1);
      nodes.set(prefix, first);
      units[place] = (unitAt(place) & (1 << 8)) | byte | ((place ^ first) << 10);
      if (prefix.split(" ").length > encoder.encode(text).length) {
        units[place] = unitAt(place) | (1 << 8);
        units[first] = 0x80000000 | texts.length;
      }
    }
    texts.push(...encoder.encode(replacement), 0);
  }
  const words = Uint32Array.from({ length: 256 * (nodes.size + 1) }, (_, i) => unitAt(i));
  const bytes = [...new Uint8Array(Uint32Array.of(4 * words.length).buffer), ...new Uint8Array(words.buffer)];
  return Buffer.from([...bytes, ...texts]).toString("base64");
}

test("characters and clusters of up to 5 bytes are replaced by the shortest prefix that the table has", () => {
  const charsmap = new Charsmap(
    tableOf({ "①": "1", ﬁ: "fi", "e\u0301": "é", n: "N", か: "ka", "か\u3099": "ga", "\u200b": "" }),
  );
  for (const [text, expected] of [
    ["a①ﬁ", "a1fi"],
    ["e\u0301e", "ée"],
    ["n\u0303n", "NN"], // a cluster of 3 bytes, whose prefix goes for all of it
    ["か", "ka"],
    ["か\u3099", "ka\u3099"], // 6 bytes
    ["x\u200by", "xy"],
    ["\0①", "\x001"],
    ["", ""],
  ] as const) {
    assert.equal(charsmap.normalize(text), expected);
  }
});

test("a table that is shorter than it says is refused", () => {
  const table = Buffer.from(tableOf({ a: "b" }), "base64");
  const damaged = [table.subarray(0, 3), table.subarray(0, 1000), Buffer.from([2, 0, 0, 0, 1, 1])];
  for (const bytes of damaged) {
    assert.throws(() => new Charsmap(bytes.toString("base64")), /a damaged precompiled_charsmap/);
  }
});
