/**
 * Pages whose storage refuses, is full, is shared, or is upgraded: `node storage.mjs CASE` prints what they saw, for
 * `test_storage.py`.
 */

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

const [what] = process.argv.slice(2);

/** Four megabytes in the format of safetensors: a weight of 2^20 floats that are 1. */
function weights() {
  const count = 2 ** 20;
  const header = JSON.stringify({
    w: { dtype: "F32", shape: [count], data_offsets: [0, 4 * count] },
  }).padEnd(128);
  const file = Buffer.alloc(8 + header.length + 4 * count);
  file.writeBigUInt64LE(BigInt(header.length));
  file.write(header, 8);
  for (let i = 0; i < count; i++) file.writeFloatLE(1, 8 + header.length + 4 * i);
  return file;
}

const server = await startServer();
const browser = await launchChromium();
let fetched = 0;

/** A tab, whose pages run `script` first. */
async function openTab(context, script) {
  const page = await context.newPage();
  page.complaints = [];
  page.on("pageerror", (error) => page.complaints.push(String(error)));
  if (script !== undefined) await page.addInitScript(script);
  await page.goto(`${server.url}/storage.html`);
  return page;
}

async function openContext() {
  const context = await browser.newContext();
  await context.route("**/storage.html", (route) =>
    route.fulfill({ contentType: "text/html", body: "<!doctype html><title>storage</title>" }),
  );
  const body = weights();
  await context.route("**/weights.safetensors", (route) => {
    fetched++;
    return route.fulfill({ body, headers: { ETag: '"1"', "Cache-Control": "max-age=3600" } });
  });
  return context;
}

/** What a session computes, by which way it started, and what it has of a file that it loads twice. */
async function use(page) {
  const before = fetched;
  const seen = await page.evaluate(async () => {
    const { create } = await import("/dist/polygrad.mjs");
    const stages = [];
    const began = performance.now();
    const pg = await create({ threads: 1, onProgress: ({ stage }) => stages.push(stage) });
    const seconds = (performance.now() - began) / 1000;
    const sums = [];
    for (let i = 0; i < 2; i++) {
      const { w } = await pg.state.safeLoad("/weights.safetensors");
      sums.push(await w.sum().item());
    }
    globalThis.pg = pg;
    const kept = (await pg.cache.list()).map(({ bytes, whole }) => [bytes, whole]);
    return { way: stages.includes("import") ? "bytecode" : "snapshot", sums, kept, seconds };
  });
  return { ...seen, fetched: fetched - before, complaints: page.complaints };
}

/** How many snapshots are stored, once the page had time to store one. */
async function snapshots(page, { wait = true } = {}) {
  return page.evaluate(async (wait) => {
    const settled = (request) =>
      new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
    for (let i = 0; ; i++) {
      const database = await settled(indexedDB.open("polygrad", 1));
      const keys = await settled(database.transaction("bytes").objectStore("bytes").getAllKeys());
      database.close();
      const count = keys.filter((key) => key.startsWith("snapshot-")).length;
      if (count > 0 || i > (wait ? 600 : 20)) return count;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }, wait);
}

const REFUSING = {
  /** As in private windows, and in frames with the attribute sandbox. */
  everything: () => {
    const refuse = () => {
      throw new globalThis.DOMException("The operation is insecure.", "SecurityError");
    };
    for (const name of ["indexedDB", "caches"]) Object.defineProperty(globalThis, name, { get: refuse });
    globalThis.StorageManager.prototype.getDirectory = async () => refuse();
    globalThis.LockManager.prototype.request = async () => refuse();
  },
  opening: () => {
    globalThis.IDBFactory.prototype.open = () => {
      throw new globalThis.DOMException("refused", "SecurityError");
    };
    globalThis.StorageManager.prototype.getDirectory = async () => {
      throw new globalThis.DOMException("refused", "SecurityError");
    };
    globalThis.CacheStorage.prototype.has = async () => {
      throw new globalThis.DOMException("refused", "SecurityError");
    };
  },
  /** Every request is made, and none succeeds. */
  writing: () => {
    globalThis.IDBObjectStore.prototype.put = () => {
      throw new globalThis.DOMException("full", "QuotaExceededError");
    };
    globalThis.FileSystemFileHandle.prototype.createWritable = async () => {
      throw new globalThis.DOMException("full", "QuotaExceededError");
    };
  },
};

const CASES = {
  async refused() {
    const seen = {};
    for (const [name, script] of Object.entries(REFUSING)) {
      const context = await openContext();
      seen[name] = await use(await openTab(context, script));
      await context.close();
    }
    return seen;
  },

  /** An origin that may store a megabyte, and later as much as it likes. */
  async full() {
    const context = await openContext();
    const page = await openTab(context);
    const session = await context.newCDPSession(page);
    const origin = server.url;
    await session.send("Storage.overrideQuotaForOrigin", { origin, quotaSize: 2 ** 20 });
    const full = await use(page);
    const stored = await snapshots(page, { wait: false });
    await session.send("Storage.overrideQuotaForOrigin", { origin });
    await page.reload();
    const roomy = await use(page);
    const later = await snapshots(page);
    await page.reload();
    return { full, stored, roomy, later, last: await use(page) };
  },

  /** Two tabs that start at once, over one storage. */
  async tabs() {
    const context = await openContext();
    const [one, two] = [await openTab(context), await openTab(context)];
    const together = await Promise.all([use(one), use(two)]);
    const stored = await snapshots(one);
    return { together, stored, third: await use(await openTab(context)) };
  },

  /** A later release of another layout upgrades the database while a tab of ours is open; then it is removed. */
  async upgrade() {
    const context = await openContext();
    const [ours, theirs] = [await openTab(context), await openTab(context)];
    await use(ours);
    await snapshots(ours);
    const change = (request) =>
      theirs.evaluate(async (request) => {
        const asked = request === 2 ? indexedDB.open("polygrad", 2) : indexedDB.deleteDatabase("polygrad");
        let wasBlocked = false;
        asked.onblocked = () => (wasBlocked = true);
        await new Promise((resolve, reject) => {
          asked.onsuccess = resolve;
          asked.onerror = () => reject(asked.error);
        });
        if (request === 2) asked.result.close();
        return wasBlocked;
      }, request);
    const blocked = [await change(2)];
    const goesOn = await ours.evaluate(() => new globalThis.pg.Tensor([1, 2, 3]).exp().log().sum().item());
    const older = await use(await openTab(context));
    blocked.push(await change("delete"));
    const page = await openTab(context);
    const anew = await use(page);
    const stored = await snapshots(page);
    return { blocked, goesOn, older, anew, stored, next: await use(await openTab(context)) };
  },

  /** A tab that does not let go of the database, and another that wants to delete it. */
  async held() {
    const context = await openContext();
    const [holder, page] = [await openTab(context), await openTab(context)];
    await holder.evaluate(async () => {
      const request = indexedDB.open("polygrad", 1);
      request.onupgradeneeded = () => request.result.createObjectStore("bytes");
      await new Promise((resolve) => (request.onsuccess = resolve));
      globalThis.held = request.result;
      const deletion = indexedDB.deleteDatabase("polygrad");
      await new Promise((resolve) => (deletion.onblocked = resolve));
    });
    const seen = await use(page);
    await holder.close(); // the deletion goes on
    return { seen, next: await use(await openTab(context)) };
  },
};

try {
  console.log(JSON.stringify(await CASES[what]()));
} finally {
  await browser.close();
  server.close();
}
