/**
 * Drives pages that load the packed package from a CDN: `node cdn.mjs chromium|firefox PACKAGE CASE [FILE]` prints what it saw.
 * The page is of one origin, and everything of polygrad's of another.
 */

import { createServer } from "node:http";
import { readFileSync } from "node:fs";

import { launch } from "./browsers.mjs";
import { serveAsCdn } from "./cdn_server.mjs";

/** Policies of a page, for scripts of `cdn`. */
const POLICY = {
  without: (cdn) => `script-src 'self' ${cdn} 'wasm-unsafe-eval'; worker-src 'self'`,
  partly: (cdn) => `script-src 'self' ${cdn} 'wasm-unsafe-eval'; worker-src blob:`,
  with: (cdn) =>
    `default-src 'self'; connect-src ${cdn}; script-src ${cdn} 'wasm-unsafe-eval'; worker-src blob: ${cdn}`,
};

const ISOLATED = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

/** A site with one page, and the exported model `file`. */
async function serveSite(file, { html = "", headers = {} }) {
  const server = createServer((request, response) => {
    if (request.url === "/model.pgrd") return void response.writeHead(200).end(readFileSync(file));
    if (request.url !== "/") return void response.writeHead(request.url === "/favicon.ico" ? 204 : 404).end();
    response.writeHead(200, { "Content-Type": "text/html; charset=utf-8", ...headers });
    response.end(`<!doctype html>\n<meta charset="utf-8" />\n<body>\n${html}</body>\n`);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/`,
    close: () => server.closeAllConnections() || server.close(),
  };
}

/** Opens a page of a site; `{seen, lines, complaints}` with what `visit`, which runs in the page, returns. */
async function open({ browser, file }, site, visit, arg) {
  const { url, close } = await serveSite(file, site);
  const page = await browser.newPage();
  const [lines, complaints] = [[], []];
  page.on("console", (message) => (message.type() === "error" ? complaints : lines).push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  try {
    await page.goto(url);
    return { seen: await page.evaluate(visit, arg), lines, complaints };
  } finally {
    await page.close();
    close();
  }
}

/** Keeps what the page's scripts write to the console. */
const KEEP_LINES = "lines = []; console.log = (text) => lines.push(String(text));";

/** In the page: starts by the module at `address` in each mode; parts of Python that come later are fetched, too. */
async function byModule({ address, modes = [false, true] }) {
  const { create } = await import(address);
  const seen = [];
  for (const worker of modes) {
    const pg = await create({ worker });
    const sum = await pg.Tensor.rand(64, 64).matmul(pg.Tensor.rand(64, 64)).mul(0).add(2).sum().item();
    const later = await pg.python("import html.parser, polygrad.onnx; html.parser.unescape('&lt;')");
    seen.push([sum, later, await pg.getNumThreads()]);
    pg.close();
  }
  return seen;
}

/** In the page: what the worker of the module at `address` says when it fails, and what runs without one. */
async function refused({ address }) {
  const { create } = await import(address);
  const worker = await create({ worker: true }).then(
    () => "it started",
    (error) => `${error.name}: ${error.message}`,
  );
  const { Tensor, close } = await create();
  const sum = await Tensor.ones(3).sum().item();
  close();
  return { worker, sum };
}

/** In the page: by the global that a script tag defines. */
async function byTag() {
  const seen = [];
  for (const worker of [false, true]) {
    const pg = await globalThis.polygrad.create({ worker });
    seen.push(await new pg.Tensor([1, 2]).mul(3).tolist());
    pg.close();
  }
  return seen;
}

const CASES = {
  /** The addresses of the module, the shortest and one of its file. */
  async module(context) {
    const { url, version } = context.cdn;
    const seen = {};
    for (const path of ["polygrad/+esm", `polygrad@${version}/dist/browser/polygrad.mjs`]) {
      seen[path] = await open(context, {}, byModule, { address: `${url}/npm/${path}` });
    }
    return seen;
  },

  /** The addresses of the script, with Python in the page, too. */
  async tag(context) {
    const { url } = context.cdn;
    const seen = {};
    for (const path of [
      "/npm/polygrad",
      "/npm/polygrad@0.1",
      "/polygrad",
      "/npm/polygrad@0/dist/browser/polygrad.js",
    ]) {
      seen[path] = await open(context, { html: `<script src="${url}${path}"></script>` }, byTag);
    }
    return seen;
  },

  /** Python in a page that is one script tag and the program. */
  async python(context) {
    const html = `<script src="${context.cdn.url}/npm/polygrad"></script>
      <script type="text/python" data-polygrad data-worker data-target="out" id="program">
        from polygrad import Tensor
        print(Tensor([1.0, 2.0]).sum().item())
      </script>
      <pre id="out"></pre>`;
    return open(context, { html }, async () => {
      const out = document.getElementById("out");
      while (!out.textContent.includes("\n")) await new Promise((resolve) => setTimeout(resolve, 50));
      return out.textContent;
    });
  },

  /** A page that may share memory has threads, which are workers of the other origin's script. */
  async isolated(context) {
    const address = `${context.cdn.url}/npm/polygrad/+esm`;
    return open(context, { headers: ISOLATED }, byModule, { address });
  },

  /** Policies that allow what is needed, and one that forbids the worker. */
  async policy(context) {
    const { url } = context.cdn;
    const address = `${url}/npm/polygrad/+esm`;
    const headers = (policy) => ({ "Content-Security-Policy": policy(url) });
    return {
      allowed: await open(context, { headers: headers(POLICY.with) }, byModule, { address }),
      forbidden: await open(context, { headers: headers(POLICY.without) }, refused, { address }),
      partly: await open(context, { headers: headers(POLICY.partly) }, refused, { address }),
      threads: await open(context, { headers: { ...headers(POLICY.without), ...ISOLATED } }, byModule, {
        address,
        modes: [false],
      }),
    };
  },

  /** A page as the guides print it, but for the address of the CDN: the first line that it writes. */
  async guide(context) {
    const html = readFileSync(context.file, "utf8").replaceAll("https://cdn.jsdelivr.net", context.cdn.url);
    return open(context, { html: `<script>${KEEP_LINES}</script>${html}` }, async () => {
      while (!(globalThis.lines.length > 0)) await new Promise((resolve) => setTimeout(resolve, 50));
      return globalThis.lines[0];
    });
  },

  /** An exported model, without Python. */
  async runtime(context) {
    const address = `${context.cdn.url}/npm/polygrad@${context.cdn.version}/runtime/+esm`;
    return open(
      context,
      { headers: ISOLATED },
      async ({ address }) => {
        const { load } = await import(address);
        const model = await load("/model.pgrd");
        const { output } = await model.run({ x: new Float32Array([1, 2, 3]) });
        return Array.from(output.data);
      },
      { address },
    );
  },
};

const [name, folder, chosen, file] = process.argv.slice(2);
const cdn = await serveAsCdn(folder);
const browser = await launch(name);
try {
  const seen = await CASES[chosen]({ browser, file, cdn });
  console.log(JSON.stringify({ version: cdn.version, seen, requests: cdn.requests }));
} finally {
  await browser.close();
  cdn.close();
}
