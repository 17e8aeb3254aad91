import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { loadPyodide } from "pyodide";
import createModule from "pyodide/pyodide.asm.mjs";

import type { EmscriptenModule } from "../src/pyodide_types";
import { packSnapshot, restoring, takeSnapshot } from "../src/snapshot";

const INITIAL_BYTES = 30 * 2 ** 20; // of Pyodide's memory

// Under source maps it does not find its own folder.
const indexURL = fileURLToPath(new URL(".", import.meta.resolve("pyodide")));

type Config = Parameters<typeof loadPyodide>[0];

test("a memory that has grown is restored, zeros and all", async () => {
  const first = await loadPyodide({ indexURL });
  first.runPython("big = bytearray(48 << 20); big[-1] = 7; hole = bytearray(1 << 20); name = 'kept'");
  const snapshot = takeSnapshot(first);
  assert.ok(snapshot !== undefined && snapshot.length > INITIAL_BYTES + (16 << 20));
  const packed = packSnapshot(snapshot);
  assert.ok(packed.length < snapshot.length - (40 << 20), "pages of zeros are not kept");
  const options = restoring(Promise.resolve(packed), Promise.resolve(true), Promise.resolve(createModule));
  const second = await loadPyodide({ indexURL, ...options } as unknown as Config);
  assert.equal(second.runPython("f'{len(big)} {sum(big)} {sum(hole)} {name}'"), "50331648 7 0 kept");
  assert.equal(first.runPython("name"), "kept");
});

test("what is not whole fails before anything comes of it", async () => {
  const module = { HEAPU8: Uint8Array.of(1, 2, 3), growMemory: () => 1 } as unknown as EmscriptenModule;
  const create = Promise.resolve(() => Promise.resolve(module));
  const options = restoring(Promise.resolve(new Uint8Array(100)), Promise.resolve(false), create);
  await assert.rejects(options.createPyodideModule({ preRun: [] }), /the snapshot is damaged/);
  assert.deepEqual(module.HEAPU8, Uint8Array.of(1, 2, 3));
});

test("a Python that holds a JavaScript object has no snapshot", async () => {
  const pyodide = await loadPyodide({ indexURL });
  pyodide.registerJsModule("thing", {});
  assert.equal(takeSnapshot(pyodide), undefined);
});
