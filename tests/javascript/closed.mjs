/** Closes a session, or its page, in the middle of a long step: `node closed.mjs closedSession|closedPage PACKAGE`. */

import { readdirSync } from "node:fs";
import { createRequire } from "node:module";

import { launchChromium } from "../../web/chromium.mjs";
import { servePackage } from "./server.mjs";

const [kind, folder] = process.argv.slice(2);

/** A long step in a worker, which has begun: the promise of its end. */
async function begin(pg) {
  const { Tensor, TinyJit } = pg;
  const x = Tensor.full([768, 768], 1 / 768)
    .contiguous()
    .realize();
  const step = TinyJit((count) => {
    let y = count;
    for (let i = 0; i < 30; i++) y = y.matmul(x).contiguous();
    return y;
  });
  for (let i = 0; i < 2; i++) await step(x).sum().item();
  const { signal } = new AbortController();
  const run = step.run([x], { signal });
  run.catch(() => undefined);
  await new Promise((resolve) => setTimeout(resolve, 100));
  return { run };
}

const CASES = {
  async closedSession() {
    const { create } = createRequire(`${folder}/`)("polygrad");
    const before = readdirSync("/proc/self/task").length;
    const pg = await create({ worker: true });
    const { run } = await begin(pg);
    pg.close();
    const rejected = await run.then(
      () => "resolved",
      ({ name }) => name,
    );
    for (let i = 0; i < 500 && readdirSync("/proc/self/task").length > before + 4; i++) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return { rejected, threads: readdirSync("/proc/self/task").length <= before + 4 }; // of V8's, for all workers
  },

  async closedPage() {
    const server = await servePackage(folder);
    const browser = await launchChromium();
    const client = await browser.newBrowserCDPSession();
    const workers = async () => {
      const { targetInfos } = await client.send("Target.getTargets", { filter: [{}] });
      return targetInfos.filter(({ type }) => type === "worker").length;
    };
    const open = async () => {
      const page = await browser.newPage();
      await page.goto(`${server.url}/tests/page.html`);
      return page;
    };
    /** The names of all that the origin keeps in files, and its databases. */
    const kept = async (page) =>
      page.evaluate(async () => {
        const names = (await indexedDB.databases()).map(({ name }) => name);
        for await (const name of (await navigator.storage.getDirectory()).keys()) names.push(name);
        return names.sort();
      });
    try {
      const page = await open();
      await page.evaluate(`globalThis.begin = ${begin}`);
      await page.evaluate(async () => {
        await globalThis.begin(await globalThis.polygrad.create({ worker: true }));
      });
      const filesBefore = await kept(page);
      const during = await workers();
      await page.close();
      for (let i = 0; i < 500 && (await workers()) > 0; i++) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      const after = await workers();
      const other = await open();
      const again = await other.evaluate(async () => {
        const pg = await globalThis.polygrad.create({ worker: true });
        return pg.Tensor.ones(6).sum().item();
      });
      return { during, after, again, filesBefore, files: await kept(other) };
    } finally {
      await browser.close();
      server.close();
    }
  },
};

console.log(JSON.stringify(await CASES[kind]()));
process.exit(0);
