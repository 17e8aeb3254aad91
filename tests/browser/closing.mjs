/**
 * Closes pages, and kills browsers, in the middle of things, for `test_closing.py`: `node closing.mjs CASE FOLDER` prints
 * what the next visits saw. FOLDER takes browsers' profiles.
 */

import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { launchProfile } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

const [what, folder] = process.argv.slice(2);
const WAIT = { timeout: 90_000 };
const WRITING = "closing: a snapshot is being written";

await mkdir(folder, { recursive: true });
await writeFile(join(folder, "blank.html"), "<!doctype html><title>blank</title>");
const server = await startServer({ mounts: { "/playground/blank.html": join(folder, "blank.html") } });
const address = `${server.url}/playground/`;

/** End a browser as a crash would. */
async function kill(context) {
  const session = await context.browser().newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const closed = new Promise((resolve) => context.once("close", resolve));
  process.kill(processInfo.find(({ type }) => type === "browser").id, "SIGKILL");
  await closed;
}

/** What a page starts from, and whether it computes; then what it has stored, and whether that is whole. */
async function visit(context) {
  const page = await context.newPage();
  await page.goto(`${address}blank.html`);
  const seen = await page.evaluate(async () => {
    const { create } = await import("./polygrad/polygrad.mjs");
    const stages = [];
    const onProgress = ({ stage }) => {
      if (stages.at(-1) !== stage) stages.push(stage);
    };
    const pg = await create({ worker: true, baseURL: "polygrad", onProgress });
    const x = new pg.Tensor([1, 2, 3]);
    return { stages, value: await x.mul(2).sum().item() };
  });
  const entries = () =>
    page.evaluate(async () => {
      const settled = (request) =>
        new Promise((resolve, reject) => {
          request.onsuccess = () => resolve(request.result);
          request.onerror = () => reject(request.error);
        });
      const database = await settled(indexedDB.open("polygrad", 1));
      const table = database.transaction("bytes").objectStore("bytes");
      // snapshots; kernels, which come before them in the alphabet, have checksums of their own
      const snapshots = globalThis.IDBKeyRange.lowerBound("kernel-\uffff");
      const [keys, blobs] = await Promise.all([
        settled(table.getAllKeys(snapshots)),
        settled(table.getAll(snapshots)),
      ]);
      database.close();
      const isWhole = async (blob) => {
        const bytes = new Uint8Array(await blob.arrayBuffer());
        const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes.subarray(32)));
        return bytes.length > 32 && digest.every((byte, i) => byte === bytes[i]);
      };
      return Promise.all(keys.map(async (key, i) => ({ key, whole: await isWhole(blobs[i]) })));
    });
  while ((await entries()).length === 0) await sleep(50); // it is stored once the page has started
  const stored = await entries();
  await page.close();
  return { ...seen, stored };
}

/** Go away when the first snapshot is on its way to the disk, `delay` milliseconds later. */
async function leaveWhileWriting(profile, leave, delay) {
  const context = await launchProfile(profile);
  await context.route("**/polygrad-worker.mjs", async (route) => {
    const response = await route.fetch();
    const headers = response.headers();
    for (const name of ["content-encoding", "content-length"]) delete headers[name];
    const spy = `{
      const { put } = IDBObjectStore.prototype;
      IDBObjectStore.prototype.put = function (...args) {
        const request = put.apply(this, args);
        if (args[1].startsWith("snapshot-")) console.log(${JSON.stringify(WRITING)});
        return request;
      };
    }`;
    await route.fulfill({ response, headers, body: `${await response.text()}\n${spy}` });
  });
  const page = await context.newPage();
  const writing = page.waitForEvent("console", {
    predicate: (message) => message.text() === WRITING,
    ...WAIT,
  });
  await page.goto(`${address}#digits`);
  await writing;
  await sleep(delay);
  if (leave === "kill") {
    await kill(context);
  } else {
    await page.close();
    await context.close();
  }
  const next = await launchProfile(profile);
  const visits = [await visit(next), await visit(next)];
  await next.close();
  return { leave, delay, visits };
}

/** Go away while a model trains, by closing the page and by killing the browser, and train again. */
async function leaveWhileTraining(profile) {
  const training = async (context) => {
    const page = await context.newPage();
    await page.goto(`${address}#digits`);
    await page.locator("#digits-note", { hasText: /epoch/ }).waitFor(WAIT);
    return page;
  };
  const context = await launchProfile(profile);
  await (await training(context)).close();
  await training(context);
  await kill(context);
  const next = await launchProfile(profile);
  const page = await training(next);
  await page.locator("#digits-note", { hasText: /^trained|Error/ }).waitFor(WAIT);
  const note = await page.locator("#digits-note").innerText();
  const after = await visit(next);
  await next.close();
  return { note, after };
}

try {
  const seen =
    what === "training"
      ? await leaveWhileTraining(join(folder, "training"))
      : [
          await leaveWhileWriting(join(folder, "closed"), "close", 0),
          await leaveWhileWriting(join(folder, "killed"), "kill", 0),
          await leaveWhileWriting(join(folder, "killed later"), "kill", 40),
        ];
  console.log(JSON.stringify(seen));
} finally {
  server.close();
}
