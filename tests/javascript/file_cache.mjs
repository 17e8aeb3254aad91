/**
 * The cache of files in Node, and in Chromium with each of its stores: `node file_cache.mjs node|origin|caches PACKAGE MODEL`
 * prints what a program saw. The server is of another origin than the page.
 */

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { launchChromium } from "../../web/chromium.mjs";
import { cases } from "./file_cache_cases.mjs";
import { servePackage } from "./server.mjs";

const [host, folder, model] = process.argv.slice(2);
const body = readFileSync(model);
const digest = createHash("sha256").update(body).digest("hex");
const ETAG = '"1"';
/** Where the download breaks off: in the second block. */
const BREAK = 5_000_000;

let asked = [];
let breaks = [];

/** The model, in ranges; "/break": it breaks off, and cannot be continued at once; "/seen": what was asked for. */
function answer({ method, url, headers }, response) {
  const allowed = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Content-Range",
    "Cross-Origin-Resource-Policy": "cross-origin",
  };
  if (url === "/seen") {
    response.writeHead(200, allowed).end(JSON.stringify(asked));
    asked = [];
    return;
  }
  if (url === "/break") {
    breaks = [BREAK, 0];
    response.writeHead(200, allowed).end();
    return;
  }
  const { range, "if-range": ifRange, "if-none-match": ifNoneMatch } = headers;
  asked.push([method, range ?? null, ifRange ?? ifNoneMatch ?? null]);
  if (url !== "/model.pgrd" || method !== "GET") {
    response.writeHead(404, allowed).end();
    return;
  }
  const all = { ...allowed, ETag: ETAG };
  if (ifNoneMatch === ETAG) {
    response.writeHead(304, all).end();
    return;
  }
  const start = Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
  const part = range && { "Content-Range": `bytes ${start}-${body.length - 1}/${body.length}` };
  response.writeHead(range ? 206 : 200, { ...all, ...part, "Content-Length": body.length - start });
  const sent = breaks.shift();
  if (sent === undefined) response.end(body.subarray(start));
  else response.write(body.subarray(start, start + sent), () => setTimeout(() => response.destroy(), 100));
}

const files = createServer(answer);
await new Promise((resolve) => files.listen(0, "127.0.0.1", resolve));
const url = `http://127.0.0.1:${files.address().port}`;

async function inNode() {
  const home = mkdtempSync(join(tmpdir(), "polygrad-"));
  process.env.XDG_CACHE_HOME = home;
  try {
    const runtime = await import(join(folder, "node_modules/polygrad/dist/runtime.js"));
    const first = await cases.first(runtime, url, digest);
    const stored = readdirSync(join(home, "polygrad/files")).length;
    const command = [fileURLToPath(new URL("file_cache_again.mjs", import.meta.url)), folder, url];
    const { stdout } = await promisify(execFile)(process.execPath, command);
    const second = JSON.parse(stdout);
    return { first, second, stored, left: readdirSync(join(home, "polygrad/files")).length };
  } finally {
    rmSync(home, { recursive: true });
  }
}

async function inPage() {
  const policy = `default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self' ${url}`;
  const server = await servePackage(folder, { headers: { "Content-Security-Policy": policy } });
  const browser = await launchChromium();
  try {
    const page = await browser.newPage();
    // Without this method pages cannot write files: so it is in older versions of Safari.
    if (host === "caches") {
      await page.addInitScript(() => delete globalThis.FileSystemFileHandle.prototype.createWritable);
    }
    const run = async (name) => {
      await page.goto(`${server.url}/tests/page.html`);
      return page.evaluate(
        async ([name, ...args]) => {
          const { cases } = await import("/tests/file_cache_cases.mjs");
          return cases[name](await import("/package/polygrad-runtime.mjs"), ...args);
        },
        [name, url, digest],
      );
    };
    const count = () =>
      page.evaluate(async () => {
        const root = await navigator.storage.getDirectory();
        const folder = await root.getDirectoryHandle("polygrad-files", { create: true });
        const names = [];
        for await (const name of folder.keys()) names.push(name);
        return [names.length, (await caches.keys()).length];
      });
    const first = await run("first");
    const stored = await count();
    const second = await run("second");
    return { first, second, stored, left: await count() };
  } finally {
    await browser.close();
    server.close();
  }
}

const result = await (host === "node" ? inNode() : inPage());
files.closeAllConnections();
files.close();
console.log(JSON.stringify({ ...result, url, length: body.length }));
