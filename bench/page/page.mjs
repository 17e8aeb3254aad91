/**
 * One library in one page: `page.html?library=NAME&threads=N&device=D` offers `bench.prepare` and `bench.sample`, and
 * of device WEBGPU `bench.gpu`.
 *
 * A library's module exports `start(threads, device)`, which resolves to `make(kind, sizes)`, which resolves to
 * `{step, finish, check, dispose}`: `step` starts one execution (and may return a promise), `finish` waits for all
 * that were started, `check` gives the numbers to compare and is called once, first. On WEBGPU each step is waited for
 * until the GPU is done, for there are libraries that do nothing before they are waited for.
 */

import { began, counted, finished } from "./gpu.mjs";

const query = new URL(document.URL).searchParams;
const { start } = await import(`./${query.get("library")}.mjs`);
const device = query.get("device");
const make = await start(Number(query.get("threads")), device);
const onGpu = device === "WEBGPU";
const programs = {};

/** Seconds per step, of as many steps as take about `seconds`. */
async function sample(program, seconds) {
  for (let steps = 1; ;) {
    const begin = performance.now();
    for (let i = 0; i < steps; i++) {
      const pending = program.step();
      if (pending instanceof Promise) await pending;
      if (onGpu) await done(program);
    }
    await done(program);
    const taken = (performance.now() - begin) / 1000;
    if (taken >= 0.5 * seconds) return taken / steps;
    steps = Math.max(steps + 1, Math.floor(steps * Math.min(20, seconds / Math.max(taken, 1e-6))));
  }
}

async function done({ finish }) {
  await finish?.();
  if (onGpu) await finished();
}

/**
 * Of so many steps: what the page did with the GPU in all; and how many milliseconds it was until all of a step was
 * submitted, and how many of these commands were recorded: means over `row` steps, between which nothing is waited for but
 * what the library itself waits for.
 */
async function onTheGpu(program, steps, row) {
  await done(program);
  counted();
  const found = { handed: [], recorded: [] };
  for (let i = 0; i < steps; i += row) {
    const sums = { handed: 0, recorded: 0 };
    for (let j = 0; j < row; j++) {
      const times = began();
      const pending = program.step();
      if (pending instanceof Promise) await pending;
      await program.finish?.();
      for (const [name, milliseconds] of Object.entries(times())) sums[name] += milliseconds / row;
    }
    for (const [name, mean] of Object.entries(sums)) found[name].push(mean);
    await finished();
  }
  return { ...counted(), ...found };
}

/** Errors are answers: the reason why a library was skipped. */
async function answer(work) {
  try {
    return await work();
  } catch (error) {
    return {
      error: String(error?.message ?? error)
        .trim()
        .split("\n")
        .at(-1),
    };
  }
}

globalThis.bench = {
  prepare: ({ slot, kind, sizes, name }) =>
    answer(async () => {
      programs[slot]?.dispose?.();
      delete programs[slot];
      const program = await make(kind, sizes, name);
      programs[slot] = program;
      const check = await program.check();
      await done(program);
      return { check, threads: program.threads };
    }),
  gpu: ({ slot, steps, row }) => answer(() => onTheGpu(programs[slot], steps, row)),
  calls: ({ slot }) => answer(() => programs[slot].calls()),
  sample: ({ slot, seconds }) => answer(async () => ({ value: await sample(programs[slot], seconds) })),
};
