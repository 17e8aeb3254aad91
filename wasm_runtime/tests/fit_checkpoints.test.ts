import assert from "node:assert/strict";
import { test } from "node:test";

import { CheckpointFolder } from "../src/api/fit_checkpoints";
import type { Host } from "../src/api/sources";
import { FileCache } from "../src/cache/file_cache";
import { StoredFiles } from "../src/cache/stored_files";

const nameOf = (step: number): string => `step-${String(step).padStart(9, "0")}.safetensors`;

/** A folder in memory, and the checkpoints in it. */
function folderOf(
  names: readonly string[],
  keep?: number,
): { folder: CheckpointFolder; files: Map<string, Uint8Array> } {
  const files = new Map(names.map((name) => [name, new Uint8Array([1])]));
  const host: Host = {
    cache: new FileCache(() => Promise.resolve(new StoredFiles(() => Promise.resolve(undefined)))),
    open: () => Promise.reject(new Error("no files")),
    folder: () => ({
      list: () => Promise.resolve([...files.keys()]),
      read: (name) => Promise.resolve(new Uint8Array(files.get(name) ?? [])),
      write: (name, bytes) => Promise.resolve(void files.set(name, bytes)),
      remove: (name) => Promise.resolve(void files.delete(name)),
    }),
  };
  return {
    folder: new CheckpointFolder(host, { folder: "run", ...(keep !== undefined && { keep }) }),
    files,
  };
}

test("the newest checkpoint is found, and other files stay as they are", async () => {
  const { folder, files } = folderOf([nameOf(3), "notes.txt", nameOf(20), nameOf(4)], 2);
  files.set(nameOf(20), new Uint8Array([7]));
  assert.deepEqual([...((await folder.newest()) ?? [])], [7]);
  await folder.write(nameOf(21), new Uint8Array([8]));
  assert.deepEqual([...files.keys()].sort(), ["notes.txt", nameOf(20), nameOf(21)].sort());
  assert.equal(await folderOf(["notes.txt"]).folder.newest(), undefined);
});

test("a run begins in a folder without later steps, and removes what was not finished", async () => {
  const left = `${nameOf(5)}.b5242b4f-59d7-4051-ae03-b74a107125f6`;
  const { folder, files } = folderOf([nameOf(4), left]);
  await folder.begin(4);
  assert.deepEqual([...files.keys()], [nameOf(4)]);
  await assert.rejects(folder.begin(3), {
    name: "ArgumentError",
    message: /steps after 3, got run with step-000000004\.safetensors: go on from there by resume: true/,
  });
});
