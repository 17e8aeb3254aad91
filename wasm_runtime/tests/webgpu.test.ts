import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import { sleepWhile } from "../../node/src/gpu";
import { BindGroups } from "../src/webgpu/bind_groups";
import { readSteps } from "../src/webgpu/steps";

test("steps are read from numbers, and numbers that are none are refused", () => {
  const range = (entry: number, offset: number, nbytes: number): object => ({ entry, offset, nbytes });
  assert.deepEqual(readSteps(Uint32Array.of(0, 7, 3, 2, 0, 0, 16, 4, 256, 256, 1, 0, 0, 16, 5, 0, 16)), [
    { kind: "dispatch", pipeline: 7, grid: 3, ranges: [range(0, 0, 16), range(4, 256, 256)] },
    { kind: "copy", source: range(0, 0, 16), target: range(5, 0, 16) },
  ]);
  assert.deepEqual(readSteps(new Uint32Array()), []);
  assert.throws(() => readSteps(Uint32Array.of(0, 7, 3, 1, 0)), /expected whole steps, got 5 numbers/);
  assert.throws(() => readSteps(Uint32Array.of(2)), /expected 0 or 1, got 2/);
});

test("a bind group is made once for the same ranges of the same buffers, and goes with a buffer", () => {
  const made: (readonly number[])[] = [];
  const groups = new BindGroups((buffers) => {
    made.push(buffers);
    return {} as GPUBindGroup;
  });
  const ranges = [
    { entry: 1, offset: 0, nbytes: 16 },
    { entry: 0, offset: 256, nbytes: 16 },
  ];
  const first = groups.get(ranges, Uint32Array.of(10, 20));
  assert.equal(groups.get(ranges, Uint32Array.of(10, 20)), first);
  assert.notEqual(groups.get(ranges, Uint32Array.of(20, 10)), first);
  groups.drop(20);
  assert.notEqual(groups.get(ranges, Uint32Array.of(10, 20)), first);
  groups.drop(99);
  assert.deepEqual(made, [
    [20, 10],
    [10, 20],
    [20, 10],
  ]);
  assert.equal(groups.made, 3);
});

test("a thread that waits for an answer sleeps on when it is woken without one", async () => {
  const words = new Int32Array(new SharedArrayBuffer(8));
  const worker = new Worker(
    `const words = require("node:worker_threads").workerData;
     Atomics.store(words, 1, 1);
     Atomics.notify(words, 1);
     const end = Date.now() + 100;
     while (Date.now() < end) Atomics.notify(words, 0);
     Atomics.store(words, 0, 7);
     Atomics.notify(words, 0);`,
    { eval: true, workerData: words },
  );
  sleepWhile(words, 1, 0);
  sleepWhile(words, 0, 0);
  assert.equal(Atomics.load(words, 0), 7);
  await worker.terminate();
});
