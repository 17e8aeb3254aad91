#!/usr/bin/env node
/**
 * A small static server for the pages here, for tests and for trying things out.
 *
 * It sends the headers that make a page cross-origin isolated, and a Content-Security-Policy as strict as
 * polygrad allows: no eval, nothing from elsewhere.
 */

import { createReadStream, existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { dirname, extname, join, sep } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = dirname(HERE);

const TYPES = {
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript",
  ".json": "application/json",
  ".map": "application/json",
  ".mjs": "text/javascript",
  ".py": "text/x-python; charset=utf-8",
  ".wasm": "application/wasm",
};

const HEADERS = {
  "Cache-Control": "no-cache",
  "Content-Security-Policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** The newest polygrad wheel of the repository's `dist/`. */
export function findWheel() {
  const folder = join(ROOT, "dist");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const wheels = names.filter((name) => name.startsWith("polygrad-") && name.endsWith(".whl"));
  const dated = wheels
    .map((name) => join(folder, name))
    .map((path) => ({ path, date: statSync(path).mtimeMs }));
  const newest = dated.sort((a, b) => a.date - b.date).at(-1);
  if (newest === undefined) throw new Error(`expected a wheel in ${folder}, got none: make wheel`);
  return newest.path;
}

/** What is served where: the longest prefix wins. */
function ownMounts(wheel) {
  const pyodide = dirname(createRequire(import.meta.url).resolve("pyodide/package.json"));
  return {
    "/": HERE,
    "/dist/polygrad.whl": wheel,
    "/dist/pyodide/": pyodide,
    "/examples/": join(ROOT, "examples"),
  };
}

/** The file for a URL's path, or undefined when nothing there is meant to be served. */
function locate(table, path) {
  const prefix = Object.keys(table)
    .filter((key) => (key.endsWith("/") ? path.startsWith(key) : path === key))
    .sort((a, b) => b.length - a.length)[0];
  if (prefix === undefined) return undefined;
  const file = join(table[prefix], path.slice(prefix.length));
  if (!existsSync(file) || !statSync(file).isFile()) return undefined;
  const inside = realpathSync(file) === realpathSync(table[prefix]);
  return inside || realpathSync(file).startsWith(realpathSync(table[prefix]) + sep) ? file : undefined;
}

/**
 * Serve on the local interface; `{url, close}`. Port 0 takes any that is free; `mounts` (prefix to folder) and
 * `headers` come on top of those here.
 */
export async function startServer({ port = 0, wheel = findWheel(), mounts = {}, headers = {} } = {}) {
  const table = { ...ownMounts(wheel), ...mounts };
  const sent = { ...HEADERS, ...headers };
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    const file = locate(table, path === "/" ? "/demo.html" : path);
    if (path === "/favicon.ico") {
      response.writeHead(204, sent).end(); // browsers ask for it unasked
      return;
    }
    if (file === undefined) {
      response.writeHead(404, sent).end(`no ${path}\n`);
      return;
    }
    const type = TYPES[extname(file)] ?? "application/octet-stream";
    response.writeHead(200, { ...sent, "Content-Type": type, "Content-Length": statSync(file).size });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject).listen(port, "127.0.0.1", resolve);
  });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startServer({ port: Number(process.argv[2] ?? 8000) });
  console.log(`${url}/demo.html`);
}
