import assert from "node:assert/strict";
import { test } from "node:test";

import { kindOf, recall, remember, type ByteStore } from "../src/store";

function mapStore(): ByteStore & { map: Map<string, Uint8Array<ArrayBuffer>> } {
  const map = new Map<string, Uint8Array<ArrayBuffer>>();
  return {
    map,
    find: (key) => {
      const found = map.get(key);
      return Promise.resolve(found && { length: found.length, read: () => Promise.resolve(found) });
    },
    set: (key, bytes) => Promise.resolve(void map.set(key, bytes)),
  };
}

test("what is remembered is recalled", async () => {
  const store = mapStore();
  await remember(store, "k", Uint8Array.of(1, 2, 3));
  assert.deepEqual(await recall(store, "k"), Uint8Array.of(1, 2, 3));
  assert.equal(await recall(store, "other"), undefined);
});

test("what was damaged is lost", async () => {
  const store = mapStore();
  await remember(store, "k", Uint8Array.of(1, 2, 3));
  const entry = store.map.get("k") ?? new Uint8Array();
  for (const damaged of [entry.slice(0, -1), entry.slice(0, 10), Uint8Array.from(entry).fill(9, 34)]) {
    store.map.set("k", damaged);
    assert.equal(await recall(store, "k"), undefined);
  }
});

test("the kind of a key goes to its first dash, so that no kind begins another", () => {
  assert.equal(kindOf("bytecode-314.0.7-a-b"), "bytecode-");
  assert.ok(!"bytecodes-1".startsWith(kindOf("bytecode-1")));
});
