/**
 * Many visits of one page, and many sessions in workers of one page: `node long_lives.mjs reloads|sessions COUNT` prints
 * what each left, for `test_long_lives.py`.
 */

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

const [what, count] = process.argv.slice(2);
const server = await startServer();
const browser = await launchChromium();
const context = await browser.newContext();
await context.route("**/long_lives.html", (route) =>
  route.fulfill({ contentType: "text/html", body: "<!doctype html><title>long lives</title>" }),
);
const page = await context.newPage();
const session = await context.newCDPSession(page);
await session.send("Performance.enable");
await session.send("HeapProfiler.enable");
const target = await browser.newBrowserCDPSession();

/** Starts polygrad, in a worker or on the page's thread, computes, and closes the session. */
const live = (worker) =>
  page.evaluate(async (worker) => {
    const { create } = await import("/dist/polygrad.mjs");
    const pg = await create({ worker, threads: 1 });
    const x = pg.Tensor.ones(256, 256);
    const sum = await x.matmul(x).sum().item();
    pg.close();
    return sum;
  }, worker);

/** What is there after a collection of garbage: bytes of the page's heap, workers, and bytes that the origin stores. */
async function left() {
  for (let i = 0; i < 100 && page.workers().length > 0; i++) await page.waitForTimeout(100);
  await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  const { processInfo } = await target.send("SystemInfo.getProcessInfo");
  return {
    heap: metrics.find(({ name }) => name === "JSHeapUsedSize").value,
    workers: page.workers().length,
    processes: processInfo.length,
    stored: await page.evaluate(async () => (await navigator.storage.estimate()).usage),
  };
}

try {
  const seen = [];
  await page.goto(`${server.url}/long_lives.html`);
  for (let i = 0; i < Number(count); i++) {
    if (what === "reloads") await page.reload();
    const sum = await live(what === "sessions");
    seen.push({ sum, ...(await left()) });
  }
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
  server.close();
}
