import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "node:worker_threads";

import { InternalError } from "../src/errors";
import { WasmHost } from "../src/host";
import { BARRIER, PARALLEL, type LaunchList } from "../src/launches";
import type { ThreadMessage } from "../src/thread";
import { COUNTER_LINES, FIRST_BUFFER, PARTS_PER_THREAD } from "../src/shared_words";
import { threadBound, ThreadPool } from "../src/thread_pool";
import { kernelModule } from "./modules";

function startWorker(): Worker {
  const worker = new Worker(new URL("./thread_worker.mjs", import.meta.url));
  worker.unref();
  return worker;
}

/** Wait until all threads of `host` have seen what they were sent. */
async function allReady(host: WasmHost): Promise<void> {
  for (let n = 0; host.ready < host.threads; n++) {
    assert.ok(n < 1000, `${host.ready} of ${host.threads} threads are ready`);
    await sleep(5);
  }
}

const get = (i: number): number[] => [0x20, i];
const LOAD = [0x28, 2, 0];
const STORE = [0x36, 2, 0];
const SHIFT = [0x41, 2, 0x74]; // shifted left by 2
const ADD = 0x6a;

/** out[0] = x */
const SET = kernelModule("set", 2, [...get(0), ...get(1), ...STORE], true);
/** (out, in, thread, threads): out[thread] = in[0] + threads */
const SPREAD = kernelModule(
  "spread",
  4,
  [...get(0), ...get(2), ...SHIFT, ADD, ...get(1), ...LOAD, ...get(3), ADD, ...STORE],
  true,
);
/** (out, in, thread): out[thread] = in[thread] */
const COPY = kernelModule(
  "copy",
  3,
  [...get(0), ...get(2), ...SHIFT, ADD, ...get(1), ...get(2), ...SHIFT, ADD, ...LOAD, ...STORE],
  true,
);
/** (out, a, b): out[0] = a[0] + b[0] */
const SUM = kernelModule("sum", 3, [...get(0), ...get(1), ...LOAD, ...get(2), ...LOAD, ADD, ...STORE], true);
/** (thread): traps in thread 1 */
const TRAP = kernelModule("boom", 1, [...get(0), 0x41, 1, 0x46, 0x04, 0x40, 0x00, 0x0b], true);

/** (out, part): adds 1 to out[part] */
const COUNT = kernelModule(
  "count",
  2,
  [...get(0), ...get(1), ...SHIFT, ADD, 0x41, 1, 0xfe, 0x1e, 2, 0, 0x1a],
  true,
);
/** Traps when parameter `n` has been counted up to 2**28. */
const limited = (n: number): number[] => [
  ...[...get(n), 0x41, 1, ADD, 0x22, n],
  ...[0x41, 0x80, 0x80, 0x80, 0x80, 1, 0x4a, 0x04, 0x40, 0x00, 0x0b],
];
/**
 * (out, part, thread, n): out[part] = thread + 1. Thread 0 waits until the other has begun, which waits until seven
 * calls have ended.
 */
const HELD_UP = kernelModule(
  "held_up",
  4,
  [
    ...[...get(2), 0x04, 0x40],
    ...[...get(0), 0x41, 1, 0xfe, 0x17, 2, 68],
    ...[0x03, 0x40, ...limited(3), ...get(0), 0xfe, 0x10, 2, 64, 0x41, 7, 0x48, 0x0d, 0, 0x0b],
    0x05,
    ...[0x03, 0x40, ...limited(3), ...get(0), 0xfe, 0x10, 2, 68, 0x45, 0x0d, 0, 0x0b],
    0x0b,
    ...[...get(0), 0x41, 1, 0xfe, 0x1e, 2, 64, 0x1a],
    ...[...get(0), ...get(1), ...SHIFT, ADD, ...get(2), 0x41, 1, ADD, ...STORE],
  ],
  true,
);

/** x, threads -> base + 128: the sum of the first two words that two parallel kernels passed on. */
function chain(host: WasmHost): LaunchList {
  const kernels = [
    host.kernel("set", SET),
    host.kernel("spread", SPREAD),
    host.kernel("copy", COPY),
    host.kernel("sum", SUM),
  ];
  const plan = [
    ...[0, 0, 2, 0, 0, 1, 0], // set(base, x)
    ...[1, PARALLEL | BARRIER, 4, 0, 32, 0, 0, 2, 0, 3, 0], // spread(base + 32, base, thread, threads)
    ...[2, PARALLEL | BARRIER, 3, 0, 64, 0, 32, 2, 0], // copy(base + 64, base + 32, thread)
    ...[3, BARRIER, 3, 0, 128, 0, 64, 0, 68], // sum(base + 128, base + 64, base + 68)
  ];
  return host.launches(kernels, Uint32Array.from(plan), 2);
}

function word(host: WasmHost, address: number): number {
  return new Int32Array(host.memory.buffer, address, 1)[0] ?? 0;
}

test("every thread runs its share, and barriers order launches, run after run", async () => {
  const host = new WasmHost({ pool: new ThreadPool(2, startWorker) });
  const calls = chain(host);
  await allReady(host);
  for (let x = 0; x < 2000; x++) {
    calls.bases.set([FIRST_BUFFER, x]);
    calls.run();
    assert.equal(word(host, FIRST_BUFFER + 128), 2 * (x + 2));
  }
});

test("every part is done once, however many launches follow a barrier, run after run", async () => {
  const host = new WasmHost({ pool: new ThreadPool(3, startWorker) });
  const kernel = host.kernel("count", COUNT);
  const launches = 2 * COUNTER_LINES + 5;
  const plan = Array.from({ length: launches }, () => [0, PARALLEL, 2, 0, 0, 3, 0]).flat();
  const calls = host.launches([kernel], Uint32Array.from(plan), 1);
  calls.bases[0] = FIRST_BUFFER;
  await allReady(host);
  for (let n = 1; n <= 200; n++) {
    calls.run();
    const parts = new Int32Array(host.memory.buffer, FIRST_BUFFER, 3 * PARTS_PER_THREAD);
    assert.deepEqual([...parts], Array<number>(parts.length).fill(n * launches));
  }
  host.threads = 1;
  calls.run();
  assert.equal(word(host, FIRST_BUFFER), 201 * launches);
  assert.equal(word(host, FIRST_BUFFER + 4), 200 * launches);
});

test("a thread that is held up holds up one part, the others are taken from it", async () => {
  const host = new WasmHost({ pool: new ThreadPool(2, startWorker) });
  const kernel = host.kernel("held_up", HELD_UP);
  const plan = [0, PARALLEL, 4, 0, 0, 3, 0, 1, 0, 4, 0];
  const calls = host.launches([kernel], Uint32Array.from(plan), 1);
  calls.bases[0] = FIRST_BUFFER;
  await allReady(host);
  calls.run();
  const parts = new Int32Array(host.memory.buffer, FIRST_BUFFER, 2 * PARTS_PER_THREAD);
  assert.deepEqual([...parts], [1, 1, 1, 1, 2, 1, 1, 1]);
});

test("the memory grows while the threads are there", async () => {
  const host = new WasmHost({ pool: new ThreadPool(3, startWorker) });
  const calls = chain(host);
  await allReady(host);
  for (const base of [FIRST_BUFFER, 1 << 20, 1 << 26, 1 << 30]) {
    assert.ok(host.grow(base + 65536) >= base + 65536);
    calls.bases.set([base, 40]);
    calls.run();
    assert.equal(word(host, base + 128), 2 * (40 + 3));
    assert.equal(word(host, base + 64 + 8), 43);
  }
});

test("threads that are not asked for, not ready, or not to be had are done without", async () => {
  const host = new WasmHost({ pool: new ThreadPool(2, startWorker) });
  const calls = chain(host);
  await allReady(host);
  host.threads = 1;
  calls.bases.set([FIRST_BUFFER, 7]);
  calls.run();
  assert.equal(word(host, FIRST_BUFFER + 64), 8);

  const silent = new WasmHost({ pool: new ThreadPool(2, () => ({ postMessage: () => undefined })) });
  const alone = chain(silent);
  assert.equal(silent.ready, 1);
  alone.bases.set([FIRST_BUFFER, 7]);
  alone.run();
  assert.equal(word(silent, FIRST_BUFFER + 64), 8);
});

test("a trap in another thread is an InternalError, and the next run is whole", async () => {
  const host = new WasmHost({ pool: new ThreadPool(2, startWorker) });
  const kernels = [host.kernel("boom", TRAP), host.kernel("set", SET)];
  const plan = [...[0, PARALLEL, 1, 1, 0], ...[1, BARRIER, 2, 0, 64, 0, 1]];
  const boom = host.launches(kernels, Uint32Array.from(plan), 1);
  const calls = chain(host);
  await allReady(host);
  for (let n = 0; n < 3; n++) {
    assert.throws(
      () => {
        boom.run();
      },
      (e) => e instanceof InternalError && e.message.includes("kernel boom: trapped in another thread"),
    );
    calls.bases.set([FIRST_BUFFER, n]);
    calls.run();
    assert.equal(word(host, FIRST_BUFFER + 128), 2 * (n + 2));
  }
});

test("lists that nobody holds are forgotten by the threads too", async () => {
  const counts = { add: 0, drop: 0, start: 0 };
  const pool = new ThreadPool(2, () => ({
    postMessage: ({ kind }: ThreadMessage) => {
      counts[kind]++;
    },
  }));
  const host = new WasmHost({ pool });
  (() => {
    for (let n = 0; n < 1000; n++) chain(host).run();
  })();
  assert.equal(counts.add, 1000);
  for (let n = 0; n < 100 && counts.drop < 1000; n++) {
    globalThis.gc?.();
    await sleep(10);
  }
  assert.ok(counts.drop >= 999, `${counts.drop} were dropped`);
});

test("kernels are divided for as many threads as there are processors, 2 to 8", () => {
  assert.deepEqual([1, 2, 6, 64].map(threadBound), [2, 2, 6, 8]);
});
