#!/usr/bin/env node
/**
 * Two visits of one library's page: `run.mjs LIBRARY MODELS` prints `{first, later, script, bytes, product}` as JSON.
 *
 * The browser is started anew for each, over a profile that is empty at first. `bytes` is what the first visit would
 * get over a network, each file in the better of its Brotli form and itself.
 */

import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants } from "node:zlib";

import { launchProfile } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const PEERS = join(HERE, "../node_modules/");
const ARCHIVES = join(HERE, "../../web/dist/python/");

// The peers start workers from blobs, and tfjs makes functions of text.
const POLICY =
  "default-src 'self' 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval' blob: data:; worker-src 'self' blob:";

const [library, models] = process.argv.slice(2);
const sent = new Map();
const stdlib = (await readdir(ARCHIVES)).find((name) => /^stdlib-\w+\.zip$/.test(name));
const server = await startServer({
  mounts: { "/startup/": HERE, "/peers/": PEERS, "/models/": models, "/stdlib.zip": join(ARCHIVES, stdlib) },
  headers: { "Content-Security-Policy": POLICY },
  onSend: (path, bytes) => sent.set(path, bytes),
});
const profile = await mkdtemp(join(tmpdir(), "polygrad-startup-"));

async function visit() {
  const browser = await launchProfile(profile);
  try {
    const page = await browser.newPage();
    await page.goto(`${server.url}/startup/visit.html?library=${library}`);
    await page.waitForFunction(() => globalThis.visit !== undefined, undefined, { timeout: 120_000 });
    const seen = await page.evaluate(async () => {
      const { seconds, script, product, error, after } = globalThis.visit;
      await after;
      return { seconds, script, product, error };
    });
    if (seen.error) throw new Error(seen.error);
    await page.waitForTimeout(1000); // a browser writes its caches when it has nothing else to do
    return seen;
  } finally {
    await browser.close();
  }
}

/** What the peers' packages would be, served as well as our own files are. */
async function compressed(path) {
  const bytes = await readFile(join(PEERS, path));
  const params = { [constants.BROTLI_PARAM_QUALITY]: 9, [constants.BROTLI_PARAM_LGWIN]: 24 };
  return Math.min(bytes.length, (await promisify(brotliCompress)(bytes, { params })).length);
}

let status = 0;
try {
  const first = await visit();
  const files = [...sent].filter(([path]) => !path.startsWith("/startup/"));
  let bytes = 0;
  for (const [path, length] of files) {
    bytes += path.startsWith("/peers/") ? await compressed(path.slice("/peers/".length)) : length;
  }
  const later = await visit();
  const figures = { first: first.seconds, later: later.seconds, script: later.script, bytes };
  console.log(JSON.stringify({ ...figures, product: later.product }));
} catch (error) {
  console.error(error.message.split("\n")[0]);
  status = 1;
} finally {
  server.close();
  await rm(profile, { recursive: true, force: true });
}
process.exit(status);
