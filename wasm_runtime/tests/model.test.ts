import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";

import { ProgramError } from "../src/errors";
import type { TensorInput } from "../src/input";
import { LoadedPrograms } from "../src/loading";
import { loadModel, type Model } from "../src/model";
import { sharedPool, threadCount } from "../src/pools";
import { readProgram } from "../src/program";
import type { Progress } from "../src/progress";
import { readEntries, writeEntries, type Entry } from "../src/safetensors";
import { collect, openSource, type ByteSource, type ReadOptions } from "../src/source";
import { CHAIN, CHAIN_DRIVER, kernelModule, PARALLEL_KERNEL, programBytes } from "./modules";

const refused = (work: Promise<unknown>, pattern: RegExp): Promise<void> =>
  assert.rejects(work, (e) => e instanceof ProgramError && pattern.test(e.message));

/** y[1] = (x[1] + n) * 2, where x is an input of shape [1, 2]. */
const chain = (): Promise<Model> => loadModel(programBytes());

const BUFFERS = CHAIN.buffers.map((b) => (b.role === "input" ? { ...b, role: "state" as const } : b));
const bytesIn = (array: ArrayBufferView): Uint8Array =>
  new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
const entry = (values: readonly number[], changes: Partial<Entry> = {}): Entry => ({
  dtype: "int32",
  shape: [1, 2],
  data: bytesIn(Int32Array.from(values)),
  ...changes,
});
const holding = (values: ReadonlyMap<string, Entry>): Uint8Array =>
  programBytes({ buffers: BUFFERS, values: writeEntries(values) });

test("a model says what it takes and runs by names, in every form of data", async () => {
  const model = await chain();
  assert.deepEqual(model.inputs, [{ name: "x", dtype: "int32", shape: [1, 2] }]);
  assert.deepEqual(model.outputs, [{ name: "y", dtype: "int32", shape: [2] }]);
  const forms: TensorInput[] = [
    Int32Array.of(0, 5),
    { data: Int32Array.of(0, 5), shape: [1, 2] },
    [[0, 5]],
    [[false, 5n]],
    new Int32Array([7, 0, 5]).subarray(1),
  ];
  for (const x of forms) {
    const { y } = await model.run({ x, n: 3 });
    assert.ok(y?.data instanceof Int32Array);
    assert.deepEqual([y.data[1], y.shape, y.dtype], [16, [2], "int32"]);
  }
});

test("what does not fit is refused by name, and nothing has run", async () => {
  const model = await chain();
  await model.run({ x: Int32Array.of(0, 1), n: 1 });
  const x = Int32Array.of(0, 1);
  for (const [inputs, pattern] of [
    [{}, /run: expected the inputs x, n, got none/],
    [{ x, n: 1, z: x }, /expected the inputs x, n, got x, n, z/],
    [{ x }, /variable n from -10 to 10, got none/],
    [{ x, n: 11 }, /variable n from -10 to 10, got 11/],
    [{ x: Int32Array.of(1), n: 1 }, /x: expected shape \[1, 2\].*got 1 elements/],
    [{ x: { data: x, shape: [2, 1] }, n: 1 }, /x: expected shape \[1, 2\].*got \[2, 1\]/],
    [{ x: { data: x, shape: [1, 3] }, n: 1 }, /x: expected shape/],
    [{ x: Float32Array.of(0, 1), n: 1 }, /x: expected int32 in a Int32Array, got Float32Array/],
    [{ x: [[0, 1.5]], n: 1 }, /x: expected elements that int32 holds, got 1.5/],
    [{ x: [[0, 2 ** 31]], n: 1 }, /x: expected elements that int32 holds, got 2147483648/],
    [{ x: [[0], [1, 2]], n: 1 }, /x: expected arrays of 1 at depth 1, got 2/],
    [{ x: [0, 1], n: 1 }, /x: expected shape \[1, 2\]/],
    [{ x: null as unknown as TensorInput, n: 1 }, /x: expected a typed array, nested arrays/],
  ] satisfies [Record<string, TensorInput>, RegExp][]) {
    await refused(model.run(inputs), pattern);
  }
});

test("a Variable is told by a shape or a length, or given by its name", async () => {
  const variables = [{ name: "n", lo: 1, hi: 2 }];
  const buffers = CHAIN.buffers.map((b) => (b.role === "scratch" ? b : { ...b, shape: ["n"] }));
  const model = await loadModel(programBytes({ variables, buffers }));
  for (const x of [Int32Array.of(0, 5), [0, 5], { data: Int32Array.of(0, 5), shape: [2] }]) {
    assert.deepEqual((await model.run({ x })).y?.data[1], 14);
  }
  const { y } = await model.run({ x: [3] }); // the element before stays
  assert.deepEqual([y?.shape, y?.data.length], [[1], 1]);
  await refused(model.run({ x: [1, 2, 3] }), /variable n from 1 to 2, got 3/);
  await refused(model.run({ x: [1, 2], n: 1 }), /x: expected shape \[n\] with n = 1, got \[2\]/);
});

test("state stays in the model, is read and written by name, saved and loaded", async () => {
  const model = await loadModel(holding(new Map([["x", entry([0, 5])]])));
  assert.deepEqual(model.inputs, []);
  const double = async (): Promise<unknown> => (await model.run({ n: 1 })).y?.data[1];
  assert.equal(await double(), 12);
  const x = model.parameter("x");
  assert.deepEqual([x.name, x.dtype, x.shape], ["x", "int32", [1, 2]]);
  assert.deepEqual([...(await x.read()).data], [0, 5]);
  const saved = await model.save();
  await x.write([[0, 7]]);
  assert.equal(await double(), 16);
  await model.load(saved);
  assert.equal(await double(), 12);
  await refused(x.write(Int32Array.of(1, 2, 3)), /x: expected shape/);
  assert.throws(() => model.parameter("w"), /parameter: expected one of x, got w/);
  await refused(model.load(writeEntries(new Map())), /values: x: expected int32 \[1, 2\], got nothing/);
});

test("values that are damaged or of another model are refused", async () => {
  for (const [values, pattern] of [
    [new Map(), /x: expected int32 \[1, 2\], got nothing/],
    [new Map([["x", entry([0, 5], { dtype: "uint32" })]]), /expected int32 \[1, 2\], got uint32/],
    [new Map([["x", entry([0, 5], { shape: [2] })]]), /got int32 \[2\]/],
    [
      new Map([
        ["x", entry([0, 5])],
        ["y", entry([0, 5])],
      ]),
      /y: expected nothing/,
    ],
  ] as [Map<string, Entry>, RegExp][]) {
    await refused(loadModel(holding(values)), pattern);
  }
  const bare = programBytes({ buffers: BUFFERS, values: new TextEncoder().encode("no safetensors") });
  await refused(loadModel(bare), /safetensors: expected a header of/);
  const unnamed = CHAIN.buffers.map((b) => ({ ...b, name: "" }));
  await refused(loadModel(programBytes({ buffers: unnamed })), /every input to have a name/);
});

test("safetensors come back as they were written, and damage is refused", () => {
  const entries = new Map<string, Entry>([
    ["a", entry([1, 2])],
    ["b.c", { dtype: "bfloat16", shape: [], data: Uint8Array.of(1, 2) }],
    ["empty", { dtype: "int64", shape: [0, 3], data: new Uint8Array() }],
  ]);
  const good = writeEntries(entries);
  assert.deepEqual(readEntries(good), entries);
  for (let end = 0; end < good.length; end++) {
    assert.throws(() => readEntries(good.subarray(0, end)), ProgramError);
  }
  const file = (header: unknown): Uint8Array => {
    const text = new TextEncoder().encode(JSON.stringify(header));
    return Uint8Array.from([text.length, 0, 0, 0, 0, 0, 0, 0, ...text, 0, 0, 0, 0]);
  };
  assert.deepEqual([...readEntries(file({ __metadata__: { a: "b" } }))], []);
  for (const [header, pattern] of [
    [[], /JSON object/],
    [{ a: { dtype: "F32", shape: [1] } }, /data_offsets/],
    [{ a: { dtype: "F9", shape: [1], data_offsets: [0, 4] } }, /F9/],
    [{ a: { dtype: "F32", shape: [-1], data_offsets: [0, 4] } }, /shape/],
    [{ a: { dtype: "F32", shape: [2], data_offsets: [0, 4] } }, /expected 8 bytes, got 0..4/],
    [{ a: { dtype: "F32", shape: [2], data_offsets: [0, 8] } }, /got 0..8 of 4/],
    [{ a: null }, /expected dtype/],
  ] as const) {
    assert.throws(() => readEntries(file(header)), pattern);
  }
});

const bytesOf = async (source: ByteSource, options: ReadOptions = {}): Promise<Uint8Array> =>
  collect(openSource(source, "load", options.signal), options);

test("a response is read in pieces, with progress, and a failure is an error", async () => {
  const data = programBytes();
  const seen: Progress[] = [];
  const response = new Response(data.slice(), { headers: { "content-length": String(data.length) } });
  const bytes = await bytesOf(response, { onProgress: (event) => seen.push(event) });
  assert.deepEqual(bytes, data);
  const { length } = data;
  assert.deepEqual(seen.at(-1), { stage: "download", fraction: 1, loaded: length, total: length });
  assert.deepEqual(await bytesOf(data.slice().buffer), data);
  await assert.rejects(bytesOf(new Response("", { status: 404 })), /FetchError: .*got status 404/);
});

test("a model made for threads runs with those of a shared pool, and without", async () => {
  const at = (offset: number): number[] => [0x20, 0, 0x28, 2, offset];
  // thread t of the driver writes the number of threads to y[t]
  const fill = [...at(4), 0x20, 1, 0x41, 2, 0x74, 0x6a, 0x20, 2, 0x36, 2, 0];
  const driver = kernelModule("run", 3, fill, true);
  const buffers = [CHAIN.buffers[0], CHAIN.buffers[2]].flatMap((b) => b ?? []);
  const kernels = [PARALLEL_KERNEL];
  const parts = { buffers, kernels, launches: [], variables: [], threads: 2, shared_memory: true };
  const data = programBytes({ ...parts, driver });
  const start = (): Worker => {
    const worker = new Worker(new URL("./thread_worker.mjs", import.meta.url));
    worker.unref();
    return worker;
  };
  const x = Int32Array.of(0, 0);
  const alone = await loadModel(data);
  assert.deepEqual([...((await alone.run({ x })).y?.data ?? [])], [1, 0]);
  const pool = sharedPool(2, start);
  assert.equal(pool, sharedPool(2, start));
  const model = await loadModel(data, { pool: () => pool });
  for (let n = 0; model.threads < 2; n++) {
    assert.ok(n < 1000, "the thread does not come up");
    await sleep(5);
  }
  assert.deepEqual([...((await model.run({ x })).y?.data ?? [])], [2, 2]);
  assert.equal(sharedPool(1, start), undefined);
  assert.deepEqual([threadCount(undefined, 64), threadCount(3, 1)], [8, 3]);
  assert.throws(() => threadCount(0, 2), /expected threads from 1 to 64, got 0/);
});

test("a model arrives in pieces of any lengths, and its values with it", async () => {
  const data = holding(new Map([["x", entry([0, 5])]]));
  for (const length of [1, 7, 64, data.length]) {
    async function* pieces(): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < data.length; i += length) yield await Promise.resolve(data.subarray(i, i + length));
    }
    const model = await loadModel(pieces());
    assert.deepEqual((await model.run({ n: 3 })).y?.data[1], 16);
  }
});

test("a model that is too large is refused before its values arrive, and its source is closed", async () => {
  const size = 2 ** 31;
  const data = programBytes({
    buffers: CHAIN.buffers.map((b) => (b.name === "x" ? { ...b, size, shape: [size] } : b)),
  });
  let isClosed = false;
  async function* pieces(): AsyncGenerator<Uint8Array> {
    try {
      yield await Promise.resolve(data);
      assert.fail("more was read");
    } finally {
      isClosed = true;
    }
  }
  await assert.rejects(loadModel(pieces()), /OutOfMemoryError: .*expected a memory of \d+ bytes/);
  assert.equal(isClosed, true);
});

test("a Program whose code the engine refuses is compiled again when it is asked for again", async (t) => {
  const program = await readProgram(programBytes({ driver: CHAIN_DRIVER }));
  const programs = await LoadedPrograms.open([new Map([["step", program]])], {});
  const compile = t.mock.method(WebAssembly, "compile", () => Promise.reject(new Error("no memory")));
  const first = programs.get("step");
  assert.equal(programs.get("step"), first); // as long as it is not known to fail
  await assert.rejects(first, /CompileError: .*no memory/);
  compile.mock.restore();
  const loaded = await programs.get("step");
  assert.equal(await programs.get("step"), loaded);
  loaded.write(0, Int32Array.of(0, 5));
  loaded.execute({ n: 3 });
  assert.deepEqual((await loaded.read(2, 2))[1], 16);
});

test("the first target that the host runs is used", async () => {
  const wasm = await readProgram(programBytes());
  const gpu = { ...wasm, device: "WEBGPU" };
  const [onWasm, onGpu] = [new Map([["step", wasm]]), new Map([["step", gpu]])];
  const targets = [onGpu, new Map([["step", { ...wasm, device: "CPU" }]]), onWasm];
  assert.equal((await LoadedPrograms.open(targets, {})).programs, onWasm);
  assert.equal((await LoadedPrograms.open(targets, { device: "WASM" })).programs, onWasm);
  await assert.rejects(
    LoadedPrograms.open(targets, { device: "WEBGPU" }),
    /DeviceError: load: expected a GPU/,
  );
  await refused(
    LoadedPrograms.open(targets, { device: "METAL" }),
    /expected code for METAL, got code for WEBGPU and CPU and WASM/,
  );
  await refused(
    LoadedPrograms.open(targets.slice(0, 2), {}),
    /a device of this host, got code for WEBGPU and CPU: WEBGPU: DeviceError: .*; CPU: ProgramError: /,
  );
});
