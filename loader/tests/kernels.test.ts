import assert from "node:assert/strict";
import { test } from "node:test";

import { KernelCache, MAX_BYTES, type KernelStorage } from "../src/kernels";
import type { PyProxy } from "../src/pyodide_types";

type Bytes = Uint8Array<ArrayBuffer>;

/** What Python hands over. */
const fromPython = (bytes: Uint8Array): PyProxy => ({ toJs: () => bytes }) as unknown as PyProxy;

class MapStorage implements KernelStorage {
  readonly map = new Map<string, Bytes>();
  saves = 0;
  full = false;

  load(): Promise<ReadonlyMap<string, Bytes>> {
    return Promise.resolve(new Map(this.map));
  }

  save(_build: string, added: ReadonlyMap<string, Bytes>, removed: readonly string[]): Promise<boolean> {
    this.saves++;
    if (this.full) return Promise.resolve(false);
    for (const key of removed) this.map.delete(key);
    for (const [key, bytes] of added) this.map.set(key, bytes);
    return Promise.resolve(true);
  }
}

test("kernels of one task are written together, as copies, and found at the next visit", async () => {
  const storage = new MapStorage();
  const first = await KernelCache.open(storage, "build");
  assert.equal(first.find("a"), undefined);
  const bytes = Uint8Array.of(1, 2);
  first.keep("a", fromPython(bytes));
  bytes[0] = 9;
  first.keep("b", fromPython(Uint8Array.of(3)));
  assert.deepEqual(first.find("a"), Uint8Array.of(1, 2));
  await first.saved();
  assert.deepEqual([storage.saves, [...storage.map.keys()]], [1, ["a", "b"]]);
  const second = await KernelCache.open(storage, "build");
  assert.deepEqual(second.find("a"), Uint8Array.of(1, 2));
  second.keep("c", fromPython(Uint8Array.of(4)));
  await second.saved();
  assert.deepEqual([...storage.map.keys()], ["a", "b", "c"]);
});

test("what is too much goes, the unused first", async () => {
  const storage = new MapStorage();
  const third = Math.floor(MAX_BYTES / 3);
  for (const key of ["old", "used", "older"]) storage.map.set(key, new Uint8Array(third));
  const cache = await KernelCache.open(storage, "build");
  assert.ok(cache.find("used"));
  cache.keep("new", fromPython(new Uint8Array(third)));
  await cache.saved();
  assert.deepEqual([...storage.map.keys()], ["used", "older", "new"]);
  for (const key of ["x", "y", "z", "huge"]) cache.keep(key, fromPython(new Uint8Array(third)));
  await cache.saved();
  assert.deepEqual([...storage.map.keys()], ["y", "z", "huge"]);
});

test("a database that refuses is asked once, and kernels are found all the same", async () => {
  const storage = new MapStorage();
  storage.full = true;
  const cache = await KernelCache.open(storage, "build");
  cache.keep("a", fromPython(Uint8Array.of(1)));
  await cache.saved();
  cache.keep("b", fromPython(Uint8Array.of(2)));
  await cache.saved();
  assert.deepEqual(
    [storage.saves, cache.find("a"), cache.find("b")],
    [1, Uint8Array.of(1), Uint8Array.of(2)],
  );
});
