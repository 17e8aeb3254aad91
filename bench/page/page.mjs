/**
 * One library in one page: `page.html?library=NAME&threads=N` offers `bench.prepare` and `bench.sample`.
 *
 * A library's module exports `start(threads)`, which resolves to `make(kind, sizes)`, which resolves to
 * `{step, finish, check, dispose}`: `step` starts one execution (and may return a promise), `finish` waits for all
 * that were started, `check` gives the numbers to compare and is called once, first.
 */

const query = new URL(document.URL).searchParams;
const { start } = await import(`./${query.get("library")}.mjs`);
const make = await start(Number(query.get("threads")));
const programs = {};

/** Seconds per step, of as many steps as take about `seconds`. */
async function sample({ step, finish }, seconds) {
  for (let steps = 1; ;) {
    const begin = performance.now();
    for (let i = 0; i < steps; i++) {
      const pending = step();
      if (pending instanceof Promise) await pending;
    }
    await finish?.();
    const taken = (performance.now() - begin) / 1000;
    if (taken >= 0.5 * seconds) return taken / steps;
    steps = Math.max(steps + 1, Math.floor(steps * Math.min(20, seconds / Math.max(taken, 1e-6))));
  }
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
      return { check: await program.check(), threads: program.threads };
    }),
  sample: ({ slot, seconds }) => answer(async () => ({ value: await sample(programs[slot], seconds) })),
};
