import assert from "node:assert/strict";
import { test } from "node:test";

import { ProgramError } from "../src/errors";
import { gridSize, type GridSize } from "../src/grid";
import { readProgram } from "../src/program";
import { loadProgram } from "../src/runner";
import { checkVerdicts } from "./headers";
import { CHAIN, CHAIN_DRIVER, DOUBLE_KERNEL, kernelModule, PARALLEL_KERNEL, programBytes } from "./modules";

const refused = (work: Promise<unknown>, pattern: RegExp): Promise<void> =>
  assert.rejects(work, (e) => e instanceof ProgramError && pattern.test(e.message));
const fails = (run: () => unknown, pattern: RegExp): void => {
  assert.throws(run, (e) => e instanceof ProgramError && pattern.test(e.message));
};

test("a Program is read as it was written", async () => {
  const program = await readProgram(programBytes());
  assert.deepEqual(program.buffers, CHAIN.buffers);
  assert.deepEqual(program.launches, CHAIN.launches);
  assert.deepEqual(program.variables, CHAIN.variables);
  assert.deepEqual([...(program.kernels[1]?.code ?? [])], [...DOUBLE_KERNEL]);
});

test("bytes that are no Program of this version are refused", async () => {
  const good = programBytes();
  await refused(readProgram(new Uint8Array(0)), /expected bytes starting PGRD/);
  await refused(readProgram(new TextEncoder().encode("not a program at all")), /got "not "/);
  await refused(readProgram(programBytes({}, 10)), /version 9, got 10: use a newer polygrad/);
  await refused(readProgram(good.subarray(0, 40)), /damaged/);
  await refused(readProgram(good.subarray(0, good.length - 1)), /damaged/);
  await refused(readProgram(Uint8Array.from([...good, 0])), /damaged/);
});

test("it runs, again and again, with scratch, offsets and a variable", async () => {
  const program = await loadProgram(programBytes());
  for (const [x, n] of [
    [5, 3],
    [5, -10],
    [1 << 20, 7],
  ] as const) {
    const [out] = program.run([Int32Array.of(0, x)], { n });
    assert.ok(out instanceof Int32Array);
    assert.equal(out[1], (x + n) * 2);
  }
});

test("a captured Program is one call of its driver, which holds its kernels", async () => {
  const kernels = CHAIN.kernels.map((kernel) => ({ ...kernel, code: new Uint8Array() }));
  const data = programBytes({ kernels, driver: CHAIN_DRIVER });
  assert.deepEqual([...(await readProgram(data)).driver], [...CHAIN_DRIVER]);
  await refused(readProgram(data.subarray(0, data.length - 1)), /damaged/);
  const program = await loadProgram(data);
  for (const [x, n] of [
    [5, 3],
    [7, -10],
  ] as const) {
    const [out] = program.run([Int32Array.of(0, x)], { n });
    assert.deepEqual(out?.[1], (x + n) * 2);
  }
});

test("a Program made for threads runs on one, its memory shared with nobody", async () => {
  const at = (offset: number): number[] => [0x20, 0, 0x28, 2, offset];
  const fill = [...at(4), 0x20, 0, 0x28, 2, 0, 0x28, 2, 0, 0x20, 1, 0x6a, 0x20, 2, 0x6a, 0x36, 2, 0];
  const driver = kernelModule("run", 3, fill, true); // out[0] = in[0] + thread + threads
  const buffers = [CHAIN.buffers[0], CHAIN.buffers[2]].flatMap((b) => b ?? []);
  const parts = { threads: 2, shared_memory: true, buffers, variables: [] };
  const captured = { ...parts, kernels: [PARALLEL_KERNEL], launches: [], driver };
  const program = await loadProgram(programBytes(captured));
  assert.equal(program.run([Int32Array.of(41, 0)])[0]?.[0], 42);

  const copy = kernelModule("copy", 4, [0x20, 0, 0x20, 1, 0x28, 2, 0, 0x20, 3, 0x6a, 0x36, 2, 0], true);
  const kernels = [{ ...PARALLEL_KERNEL, name: "copy", code: copy }];
  const bindings = [1, 0].map((buffer) => ({ buffer, offset: 0 }));
  const eager = await loadProgram(
    programBytes({ ...parts, kernels, launches: [{ kernel: 0, bindings, grid: null, barrier: false }] }),
  );
  assert.equal(eager.run([Int32Array.of(41, 0)])[0]?.[0], 42);
});

test("state is written and read by buffer number", async () => {
  const buffers = CHAIN.buffers.map((b) => (b.role === "scratch" ? b : { ...b, role: "state" as const }));
  const program = await loadProgram(programBytes({ buffers }));
  program.write(0, Int32Array.of(0, 20));
  assert.deepEqual(program.run([], { n: 1 }), []);
  assert.deepEqual([...program.read(2)], [0, 42]);
});

test("what does not fit is refused, with what was expected", async () => {
  const program = await loadProgram(programBytes());
  fails(() => program.run([], { n: 1 }), /expected 1 inputs, got 0/);
  fails(() => program.run([Int32Array.of(1)], { n: 1 }), /expected 2 x int32, 8 bytes, got 4 bytes/);
  fails(() => program.run([Int32Array.of(1, 2)], { n: 11 }), /variable n from -10 to 10, got 11/);
  fails(() => program.run([Int32Array.of(1, 2)]), /variable n from -10 to 10, got none/);
  fails(() => program.read(3), /expected 0 to 2, got 3/);
  await refused(loadProgram(programBytes({ device: "CPU" })), /expected a Program for WASM, got one for CPU/);
  const buffers = CHAIN.buffers.map((b) => ({ ...b, dtype: "complex64" }));
  await refused(loadProgram(programBytes({ buffers })), /complex64/);
});

test("a header that says what cannot be is refused", async () => {
  const [input, scratch, output] = CHAIN.buffers;
  const [launch] = CHAIN.launches;
  const [kernel] = CHAIN.kernels;
  assert.ok(input && scratch && output && launch && kernel);
  const bindings = launch.bindings;
  for (const parts of [
    { buffers: [{ ...input, role: "other" as "input" }, scratch, output] },
    { buffers: [{ ...input, shape: [3] }, scratch, output] },
    { buffers: [{ ...input, shape: ["m"] }, scratch, output] },
    { buffers: [input, { ...scratch, offset: 129 }, output] },
    { buffers: [input, scratch, { ...input }] },
    { launches: [{ ...launch, kernel: 2 }] },
    { launches: [{ ...launch, grid: [1, 1, 1] as const }] },
    { launches: [{ ...launch, bindings: bindings.slice(1) }] },
    { launches: [{ ...launch, bindings: bindings.map((b) => ({ ...b, buffer: 3 })) }] },
    { launches: [{ ...launch, barrier: 1 as unknown as boolean }] },
    { launches: [{ ...launch, barrier: undefined as unknown as boolean }] },
    { kernels: [{ ...kernel, writes: [2] }, kernel] },
    { kernels: [{ ...kernel, writes: undefined as unknown as number[] }, kernel] },
    { kernels: [{ ...kernel, parallel: true }, kernel] },
    { kernels: [{ ...kernel, parallel: undefined as unknown as boolean }, kernel] },
    { kernels: [{ ...kernel, variables: ["thread"] }, kernel] },
    { threads: 0 },
    { threads: 2 },
    { shared_memory: undefined as unknown as boolean },
  ]) {
    await refused(readProgram(programBytes(parts)), /damaged/);
  }
});

test("kernels in WGSL are read with their grids, and not run", async () => {
  const grid = [4, 2, 1] as const;
  const kernels = CHAIN.kernels.map((kernel) => ({
    ...kernel,
    language: "wgsl" as const,
    workgroup: [64, 1, 1] as const,
  }));
  const launches = CHAIN.launches.map((launch) => ({ ...launch, grid }));
  const data = programBytes({ kernels, launches });
  assert.deepEqual((await readProgram(data)).launches, launches);
  await refused(loadProgram(data), /kernel add: expected wasm, got wgsl: use a newer/);
  await refused(readProgram(programBytes({ kernels })), /damaged/);
});

test("this reader accepts and refuses the same headers as Python's", async () => {
  await checkVerdicts("program_header.txt", readProgram);
});

test("sizes of grids are what Python's integers are", () => {
  const variables = { n: 100 };
  for (const [size, expected] of [
    [7, 7],
    ["n", 100],
    [["IDIV", ["ADD", "n", 63], 64], 2],
    [["ADD", ["IDIV", -7, 2], 10], 6],
    [["MOD", -7, 3], 2],
    [["NEG", ["MAX", ["NEG", "n"], -64]], 64],
    [["SHR", ["ADD", "n", 7], 3], 13],
    [["SHL", ["SUB", "n", 99], 4], 16],
    [["SHR", ["SHL", 1, 52], 52], 1],
    [["AND", ["MUL", "n", 3], 255], 44],
  ] as const) {
    assert.equal(gridSize(size as GridSize, variables), expected);
  }
  fails(() => gridSize("m", variables), /expected a size of a grid, got "m"/);
});

test("sizes of grids that nothing can run are refused", () => {
  for (const size of [
    ["NEG", "n"],
    ["SHL", 1, 2 ** 40],
    ["SHL", "n", 52],
    ["SHR", "n", 53],
    ["SHR", 1, -1],
    ["IDIV", "n", 0],
    ["MOD", "n", 0],
    ["MUL", ["MUL", 2 ** 30, 2 ** 30], "n"],
    ["ADD", 2 ** 31, "n"],
  ] as const) {
    fails(() => gridSize(size, { n: 100 }), /expected a (size of a )?grid/);
  }
});
