#!/usr/bin/env node
/**
 * A small static server for the pages here, for tests and for trying things out.
 *
 * It sends the headers that make a page cross-origin isolated, and a Content-Security-Policy as strict as
 * polygrad allows: no eval, nothing from elsewhere. Files go out in the compressed forms that the build has put
 * beside them, and a browser that has a file already is told so.
 */

import { createReadStream, existsSync, realpathSync, statSync } from "node:fs";
import { createServer } from "node:http";
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
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
  ".zip": "application/zip",
};

const HEADERS = {
  "Cache-Control": "no-cache",
  "Content-Security-Policy": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'",
  "Cross-Origin-Embedder-Policy": "require-corp",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/**
 * Policies of single files. The playground's editor makes its style sheet itself. The worker that runs what is typed
 * into it compiles text, which is eval; a worker has the policy it is served with, so the page's stays strict.
 */
const POLICIES = {
  "/playground/index.html":
    "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self' 'unsafe-inline'",
  "/playground/runner.mjs": "default-src 'self'; script-src 'self' 'wasm-unsafe-eval' 'unsafe-eval'",
};

/** Files whose names change with their content, so that a browser need never ask again. */
const IMMUTABLE = /-[0-9a-f]{12}\.zip$/;

/** Compressed forms that the build puts beside a file, the best first. */
const ENCODINGS = [
  ["br", ".br"],
  ["gzip", ".gz"],
];

/** What is served where: the longest prefix wins. */
const MOUNTS = {
  "/": HERE,
  "/examples/": join(ROOT, "examples"),
  "/playground/": join(HERE, "build/playground"),
};

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

/** The encodings a request accepts: `gzip, br;q=0` is gzip alone. */
function accepted(request) {
  const offers = (request.headers["accept-encoding"] ?? "")
    .split(",")
    .map((offer) => offer.trim().split(";"));
  return offers.filter(([, q = "q=1"]) => Number(q.trim().slice(2)) > 0).map(([name]) => name);
}

/** The form of `file` to send: `{path, headers}`. A form that is older than the file is of another one. */
function choose(file, request) {
  const names = accepted(request);
  const date = (path) => (existsSync(path) ? statSync(path).mtimeMs : -1);
  const [encoding, suffix = ""] =
    ENCODINGS.find(([name, suffix]) => names.includes(name) && date(file + suffix) >= date(file)) ?? [];
  const { size, mtimeMs } = statSync(file + suffix);
  const headers = {
    "Content-Type": TYPES[extname(file)] ?? "application/octet-stream",
    "Content-Length": size,
    ETag: `"${mtimeMs.toString(36)}-${size.toString(36)}"`,
    Vary: "Accept-Encoding",
    ...(encoding && { "Content-Encoding": encoding }),
    ...(IMMUTABLE.test(file) && { "Cache-Control": "public, max-age=31536000, immutable" }),
  };
  return { path: file + suffix, headers };
}

/**
 * Serve on the local interface; `{url, close}`. Port 0 takes any that is free; `mounts` (prefix to folder or file)
 * and `headers` come on top of those here, a `wheel` is served as `dist/polygrad.whl`. `onSend(path, bytes)` is told
 * of every body.
 */
export async function startServer({ port = 0, wheel, mounts = {}, headers = {}, onSend } = {}) {
  const table = { ...MOUNTS, ...(wheel && { "/dist/polygrad.whl": wheel }), ...mounts };
  const common = { ...HEADERS, ...headers };
  const server = createServer((request, response) => {
    const asked = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    const path = asked === "/" ? "/demo.html" : asked.replace(/\/$/, "/index.html");
    const file = locate(table, path);
    if (path === "/favicon.ico") {
      response.writeHead(204, common).end(); // browsers ask for it unasked
      return;
    }
    if (file === undefined) {
      response.writeHead(404, common).end(`no ${path}\n`);
      return;
    }
    const form = choose(file, request);
    const policy = POLICIES[path] && { "Content-Security-Policy": POLICIES[path] };
    const sent = { ...common, ...policy, ...form.headers };
    if (request.headers["if-none-match"] === sent.ETag) {
      delete sent["Content-Length"];
      response.writeHead(304, sent).end();
      return;
    }
    onSend?.(path, sent["Content-Length"]);
    response.writeHead(200, sent);
    createReadStream(form.path).pipe(response);
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
  const started = existsSync(join(HERE, "build/playground")) ? `${url}/playground/\n` : "";
  console.log(`${started}${url}/demo.html`);
}
