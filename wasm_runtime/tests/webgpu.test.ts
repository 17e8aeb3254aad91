import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";

import { sleepWhile } from "../../node/src/gpu";
import type { KernelSpec, Program } from "../src/program";
import { BindGroups } from "../src/webgpu/bind_groups";
import { WebGPUDevice, type Source } from "../src/webgpu/device";
import { GpuMemory, GpuProgram } from "../src/webgpu/loaded";
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

const wgsl = (name: string, ...variables: string[]): KernelSpec => ({
  ...{ name, variables, code: new TextEncoder().encode(name), n_buffers: 2, language: "wgsl" },
  ...{ writes: [1], parallel: false, workgroup: [4, 1, 1], subgroup: 0 },
});

/** y = f(x) through scratch, by two kernels with Variables of their own, and y once more. */
const THREE_LAUNCHES: Program = {
  ...{ device: "WEBGPU", target: "test", threads: 1, shared_memory: false, arena: 768 },
  buffers: [
    { size: 8, dtype: "float32", role: "input", offset: -1, name: "x", shape: [8] },
    { size: 65, dtype: "float32", role: "scratch", offset: 256, name: "", shape: null },
    { size: 100, dtype: "float32", role: "output", offset: -1, name: "y", shape: [100] },
  ],
  kernels: [wgsl("first", "n"), wgsl("second", "m", "n")],
  launches: [
    { kernel: 0, bindings: [0, 1].map((buffer) => ({ buffer, offset: 0 })), grid: [2, 1, 1], barrier: false },
    {
      kernel: 1,
      bindings: [1, 2].map((buffer) => ({ buffer, offset: 256 })),
      grid: ["n", 2, 3],
      barrier: false,
    },
    {
      kernel: 0,
      bindings: [0, 2].map((buffer) => ({ buffer, offset: 0 })),
      grid: [1, 1, "m"],
      barrier: false,
    },
  ],
  variables: [
    { name: "n", lo: 1, hi: 9 },
    { name: "m", lo: 1, hi: 9 },
  ],
  driver: new Uint8Array(),
  values: new Uint8Array(),
};

const ADAPTER = {
  name: "test",
  features: [],
  storageBuffers: 8,
  invocations: 64,
  bindingBytes: 1024,
  subgroup: 0,
};

test("the launches of a Program are steps of one submit, and its Variables are in the uniform buffer", async () => {
  const made = new Map<number, number>();
  let first = 0;
  let steps: Uint32Array = new Uint32Array();
  let names: string[] = [];
  let written: [number, Uint8Array] | undefined;
  const submitted: unknown[] = [];
  const device = {
    adapter: ADAPTER,
    lost: "the test is over",
    createBuffer: (number: number, nbytes: number) => void made.set(number, nbytes),
    compiled(from: number, sources: readonly Source[]) {
      [first, names] = [from, sources.map(({ text }) => text)];
      return Promise.resolve();
    },
    prepare: (_: number, given: Uint32Array) => (steps = given),
    write: (number: number, _: number, bytes: Uint8Array) => (written = [number, bytes]),
    submit: (_: number, table?: Uint32Array, grids?: Uint32Array) =>
      submitted.push([table && [...table], grids && [...grids]]),
  } as unknown as WebGPUDevice;
  const memory = await GpuMemory.create([THREE_LAUNCHES], device);
  const program = await GpuProgram.load(THREE_LAUNCHES, device, memory);
  const [x = 0, scratch, y = 0, arena = 0, uniform = 0] = memory.buffersOf(THREE_LAUNCHES);
  assert.equal(scratch, 0);
  assert.deepEqual(
    [x, y, arena, uniform].map((number) => made.get(number)),
    [256, 512, 768, 512],
  );
  assert.deepEqual(names, ["first", "second"]);
  const range = (entry: number, offset: number, nbytes: number): object => ({ entry, offset, nbytes });
  assert.deepEqual(readSteps(steps), [
    {
      ...{ kind: "dispatch", pipeline: first, grid: 0 },
      ranges: [range(0, 0, 32), range(3, 256, 272), range(4, 0, 256)],
    },
    {
      ...{ kind: "dispatch", pipeline: first + 1, grid: 3 },
      ranges: [range(3, 512, 16), range(2, 256, 144), range(4, 256, 256)],
    },
    {
      ...{ kind: "dispatch", pipeline: first, grid: 6 },
      ranges: [range(0, 0, 32), range(2, 0, 400), range(4, 0, 256)],
    },
  ]);
  program.execute({ n: 5, m: 7 });
  program.execute({ m: 7, n: 5 });
  const table = [x, 0, y, arena, uniform];
  assert.deepEqual(submitted, [
    [table, [2, 1, 1, 5, 2, 3, 1, 1, 7]],
    [undefined, undefined],
  ]);
  assert.equal(written?.[0], uniform);
  const words = new Int32Array(written[1].buffer);
  const constants = [0x7f800000, 0x7fc00000, 0, 0]; // infinity, NaN, zeros
  assert.deepEqual([...words.subarray(0, 6)], [...constants, 5, 0]);
  assert.deepEqual([...words.subarray(64, 71)], [...constants, 7, 5, 0]);
});

test("what a Program had on a GPU goes when it is collected", async () => {
  const [made, dropped] = [new Set<number>(), new Set<number>()];
  const device = {
    adapter: ADAPTER,
    lost: "",
    createBuffer: (number: number) => void made.add(number),
    compiled(first: number, sources: readonly Source[]) {
      for (let i = 0; i < sources.length; i++) made.add(first + i);
      return Promise.resolve();
    },
    prepare: (number: number) => made.add(number),
    destroyBuffer: (number: number) => dropped.add(number),
    dropPipeline: (number: number) => dropped.add(number),
    drop: (number: number) => dropped.add(number),
  } as unknown as WebGPUDevice;
  await (async () => {
    await GpuProgram.load(THREE_LAUNCHES, device, await GpuMemory.create([THREE_LAUNCHES], device));
  })();
  for (let i = 0; i < 50 && dropped.size < made.size; i++) {
    globalThis.gc?.();
    await sleep(10);
  }
  assert.equal(made.size, 4 + 2 + 1);
  assert.deepEqual([...dropped].sort(), [...made].sort());
});

/** A device on a GPU that accepts pipelines when `accept` is called, and what it has done. */
async function openFake(): Promise<{ device: WebGPUDevice; done: unknown[]; accept: () => void }> {
  const done: unknown[] = [];
  let accept: () => void = () => undefined;
  const noted =
    (name: string) =>
    (...args: unknown[]): void => {
      done.push([name, ...args]);
    };
  const pass = {
    setPipeline: noted("pipeline"),
    setBindGroup: noted("group"),
    dispatchWorkgroups: noted("dispatch"),
    end: noted("end"),
  };
  const gpu = {
    lost: new Promise(() => undefined),
    addEventListener: () => undefined,
    pushErrorScope: () => undefined,
    popErrorScope: () => Promise.resolve(null),
    createShaderModule: () => ({}),
    createBindGroupLayout: () => ({}),
    createBindGroup: ({ entries }: { entries: unknown }) => entries,
    createPipelineLayout: () => ({}),
    createComputePipelineAsync: ({ label }: { label: string }) =>
      new Promise((resolve) => {
        accept = () => {
          resolve(label);
        };
      }),
    createBuffer: ({ size }: { size: number }) => ({ size, destroy: noted("destroy") }),
    createCommandEncoder: () => ({
      beginComputePass: () => pass,
      copyBufferToBuffer: noted("copy"),
      finish: () => "list",
    }),
    queue: {
      writeBuffer: (_: unknown, offset: number) => done.push(["write", offset]),
      submit: noted("submit"),
    },
  };
  const adapter = { info: {}, limits: {}, features: new Set(), requestDevice: () => Promise.resolve(gpu) };
  const device = await WebGPUDevice.open({
    requestAdapter: () => Promise.resolve(adapter),
  } as unknown as GPU);
  assert(device);
  return {
    device,
    done,
    accept: () => {
      accept();
    },
  };
}

const KERNEL: Source = { name: "k", text: "", buffers: 1 };

test("calls that come while pipelines compile wait for them, in order", async () => {
  const { device, done, accept } = await openFake();
  const bytes = new Uint8Array(4);
  void device.createBuffer(1, 256);
  device.write(1, 0, bytes);
  const compiled = device.compiled(2, [KERNEL]);
  device.write(1, 4, bytes);
  device.destroyBuffer(1);
  assert.deepEqual(done.splice(0), [["write", 0]]);
  accept();
  await compiled;
  assert.deepEqual(done, [["write", 4], ["destroy"]]);
  assert.throws(() => {
    device.write(1, 8, bytes);
  }, /expected memory of this device, got 1/);
});

test("dispatches share a pass until a copy comes, and a pipeline as long as it stays", async () => {
  const { device, done, accept } = await openFake();
  for (const [number, size] of [
    [1, 256],
    [2, 512],
  ] as const) {
    void device.createBuffer(number, size);
  }
  const compiled = device.compiled(3, [KERNEL]);
  accept();
  await compiled;
  const dispatch = [0, 3, 0, 2, 0, 0, 16, 1, 256, 256];
  device.prepare(4, Uint32Array.of(...dispatch, ...dispatch, 1, 0, 0, 16, 1, 256, 16, ...dispatch));
  device.submit(4, Uint32Array.of(1, 2), Uint32Array.of(5, 6, 7));
  const named = (step: unknown): unknown => (Array.isArray(step) ? (step[0] as string) : step);
  const run = ["group", "dispatch"];
  assert.deepEqual(done.map(named), [
    ...["pipeline", ...run, ...run, "end", "copy"],
    ...["pipeline", ...run, "end", "submit"],
  ]);
  const steps = done as [unknown, ...unknown[]][];
  assert.deepEqual(steps[0], ["pipeline", "k"]);
  const entry = (binding: number, size: number, offset: number, nbytes: number): object => {
    const { buffer } =
      (steps[1]?.[2] as { resource: { buffer: { size: number } } }[])[binding]?.resource ?? {};
    assert.equal(buffer?.size, size);
    return { binding, resource: { buffer, offset, size: nbytes } };
  };
  assert.deepEqual(steps[1], ["group", 0, [entry(0, 256, 0, 16), entry(1, 512, 256, 256)]]);
  assert.deepEqual(steps[2], ["dispatch", 5, 6, 7]);
  assert.deepEqual(steps.at(-1), ["submit", ["list"]]);
  const { submits, dispatches, bindGroups } = device.counters;
  assert.deepEqual([submits, dispatches, bindGroups], [1, 3, 1]);
});
