#!/usr/bin/env node
/**
 * Libraries in pages of one headless Chromium: a JSON request a line on standard input, an answer a line on
 * standard output, as `bench/worker.py`. Each request names its `library`, `threads` and `device`; a page is
 * opened for each three at their first request, in a context of its own, or for each `page` named, until a request to `close` it.
 */

import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));

// The peers start workers from blobs, and tfjs makes functions of text.
const POLICY =
  "default-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob: data:; worker-src 'self' blob:";

const [models] = process.argv.slice(2);
const server = await startServer({
  mounts: {
    "/bench/": HERE,
    "/libraries/": join(HERE, "../libraries/"),
    "/peers/": join(HERE, "../node_modules/"),
    "/models/": models,
  },
  headers: { "Content-Security-Policy": POLICY },
});
const browser = await launchChromium();
const pages = new Map();

async function open(library, threads, device) {
  const context = await browser.newContext();
  // What jax-js takes for the number of its workers, and the others for their limit.
  await context.addInitScript(
    (n) => Object.defineProperty(globalThis.navigator, "hardwareConcurrency", { value: n }),
    threads,
  );
  const page = await context.newPage();
  page.setDefaultTimeout(120_000);
  if (process.env.BENCH_DEBUG) page.on("console", (message) => console.error(library, message.text()));
  const failure = new Promise((_, reject) => {
    page.once("pageerror", reject);
    page.once("crash", () => reject(new Error("the page crashed")));
  });
  failure.catch(() => undefined);
  await page.goto(`${server.url}/bench/page.html?library=${library}&threads=${threads}&device=${device}`);
  const ready = page.waitForFunction(() => globalThis.bench !== undefined && globalThis.crossOriginIsolated);
  await Promise.race([ready, failure]);
  return { page, failure };
}

async function serve(request) {
  const { library, threads, device, page: own } = request;
  const key = own ?? `${library} ${threads} ${device}`;
  if (request.op === "close") {
    const { page } = await pages.get(key);
    pages.delete(key);
    await page.context().close();
    return {};
  }
  if (!pages.has(key)) pages.set(key, open(library, threads, device));
  const { page, failure } = await pages.get(key);
  const work = page.evaluate(({ op, ...request }) => globalThis.bench[op](request), request);
  return Promise.race([work, failure]);
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await serve(JSON.parse(line)).catch((error) => ({ error: error.message.split("\n")[0] }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();
server.close();
process.exit(); // pages may have kept connections open
