import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

import { CompileError, InternalError, ProgramError } from "../src/errors";
import { detectFeatures } from "../src/features";
import { WasmHost } from "../src/host";
import { moduleCount } from "../src/modules";
import { ADD_KERNEL, kernelModule, TRAP_KERNEL } from "./modules";

const word = (host: WasmHost, address: number): number | undefined =>
  new Int32Array(host.memory.buffer, address, 1)[0];

test("the memory grows to what is asked, keeps its bytes, and refuses more than 4 GiB", () => {
  const host = new WasmHost();
  host.view(100, 3).set([1, 2, 3]);
  assert.equal(host.grow(10), 65536);
  assert.equal(host.grow(65537), 131072);
  assert.deepEqual([...host.view(100, 3)], [1, 2, 3]);
  assert.equal(host.grow(2 ** 32 + 1), 0);
  assert.equal(host.memory.buffer.byteLength, 131072);
});

test("a shared memory is the largest that the system reserves room for", (t) => {
  const { Memory } = WebAssembly;
  const asked: number[] = [];
  let room = 16384;
  t.mock.method(WebAssembly, "Memory", function ({ maximum = NaN, ...rest }: WebAssembly.MemoryDescriptor) {
    asked.push(maximum);
    if (maximum > room && asked.length < 10) throw new RangeError("no room");
    return new Memory({ ...rest, maximum: 1024 });
  });
  assert.ok(new WasmHost({ shared: true }).memory.buffer instanceof SharedArrayBuffer);
  assert.deepEqual(asked.splice(0), [65536, 32768, 16384]);
  room = 0;
  assert.throws(() => new WasmHost({ shared: true }), /no room/);
  assert.deepEqual(asked, [65536, 32768, 16384, 8192, 4096, 2048, 1024, 512]);
});

test("a list of calls takes its arguments from bases and offsets, modulo 2**32", () => {
  const host = new WasmHost();
  const add = host.kernel("add", ADD_KERNEL);
  const calls = host.launches(
    [add],
    Uint32Array.of(0, 0, 3, 0, 0, 0, 4, 1, 2 ** 32 - 1, 0, 0, 3, 0, 8, 0, 0, 1, 1),
    2,
  );
  host.view(68, 1)[0] = 40;
  calls.bases.set([64, 3]);
  calls.run();
  assert.equal(word(host, 64), 42);
  assert.equal(word(host, 72), 46);
});

test("kernels get all their arguments in order, also more than have a case of their own", () => {
  for (let n = 1; n <= 12; n++) {
    const host = new WasmHost();
    // store argument i at word i from the first argument on
    const stores = Array.from({ length: n }, (_, i) => [0x20, 0, 0x20, i, 0x36, 2, 4 * i]).flat();
    const kernel = host.kernel("k", kernelModule("k", n, stores));
    const plan = Uint32Array.from([0, 0, n, ...Array.from({ length: n }, (_, i) => [i, 0]).flat()]);
    const calls = host.launches([kernel], plan, n);
    const args = Array.from({ length: n }, (_, i) => 64 + i);
    calls.bases.set(args);
    calls.run();
    assert.deepEqual([...new Int32Array(host.memory.buffer, 64, n)], args);
  }
});

test("the same bytes are one kernel, other hosts share its module", () => {
  const host = new WasmHost();
  const kernel = host.kernel("add", ADD_KERNEL);
  assert.equal(host.kernel("add", ADD_KERNEL.slice()), kernel);
  const other = new WasmHost().kernel("add", ADD_KERNEL);
  assert.notEqual(other, kernel);
  assert.equal(other.module, kernel.module);
});

test("a module that nothing uses is forgotten", async () => {
  const before = moduleCount();
  (() => {
    new WasmHost().kernel("gone", kernelModule("gone", 0, [0x01]));
  })();
  assert.equal(moduleCount(), before + 1);
  for (let i = 0; i < 50 && moduleCount() > before; i++) {
    globalThis.gc?.();
    await sleep(10);
  }
  assert.ok(moduleCount() <= before);
});

test("what is no kernel is a CompileError that names it", () => {
  const host = new WasmHost();
  assert.throws(
    () => host.kernel("add", Uint8Array.of(1, 2)),
    (e) => e instanceof CompileError && e.message.includes("kernel add"),
  );
  assert.throws(() => host.kernel("other", ADD_KERNEL), CompileError);
});

test("a call with the wrong number of arguments is refused when the list is made", () => {
  const host = new WasmHost();
  const add = host.kernel("add", ADD_KERNEL);
  assert.throws(() => host.launches([add], Uint32Array.of(0, 0, 1, 0, 0), 1), ProgramError);
  assert.throws(() => host.launches([], Uint32Array.of(0, 0, 0), 1), ProgramError);
});

test("a trap is an InternalError that names the kernel", () => {
  const host = new WasmHost();
  const calls = host.launches([host.kernel("boom", TRAP_KERNEL)], Uint32Array.of(0, 0, 0), 0);
  assert.throws(
    () => {
      calls.run();
    },
    (e) => e instanceof InternalError && e.message.startsWith("internal: kernel boom"),
  );
});

test("every engine that polygrad runs on has SIMD", () => {
  assert.ok(detectFeatures().includes("simd"));
});

/** What one of the programs beside this file prints, on an engine that is started with these flags. */
function printed(name: string, flags: readonly string[]): string {
  const program = fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));
  return execFileSync(process.execPath, [...flags, program], { encoding: "utf8" }).trim();
}

function featuresWith(...flags: string[]): string {
  return printed("print_features", flags);
}

test(
  "relaxed SIMD is no feature of an engine whose multiply-add rounds twice",
  { skip: process.arch !== "x64" && "only x64 has processors without a fused multiply-add" },
  () => {
    assert.match(featuresWith(), /^simd relaxed-simd/);
    assert.doesNotMatch(featuresWith("--no-enable-fma3"), /relaxed-simd/);
  },
);

test("the dot product of bytes is a feature where the compiler that runs first computes it", () => {
  assert.match(featuresWith("--no-liftoff"), /relaxed-dot$/);
  // V8 11 overwrites the addend in its baseline compiler.
  const isRight = !process.version.startsWith("v20.");
  assert.equal(featuresWith("--liftoff-only").endsWith("relaxed-dot"), isRight);
});

test("a module with dot products runs where they are right, or where the host repairs them", () => {
  const isRight = !process.version.startsWith("v20.");
  const right = { isUnchanged: true, isWrong: false, result: 67 };
  const [before, after] = JSON.parse(printed("print_dots", [])) as (typeof right)[];
  assert.deepEqual(after, right);
  if (isRight) assert.deepEqual(before, right);
  else {
    const { result, ...rest } = before ?? right;
    assert.deepEqual(rest, { isUnchanged: true, isWrong: true });
    assert.match(String(result), /^CompileError: load: expected an engine whose dot products/);
  }
});
