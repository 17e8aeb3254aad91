/**
 * Drives pages of a static host that have polygrad's service worker:
 * `node service_worker.mjs chromium|firefox SITE CASE [PACKAGE | HTML]` prints what it saw.
 */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

import { launch } from "./browsers.mjs";
import { serveAsCdn } from "./cdn_server.mjs";
import { serveStatic } from "./static_host.mjs";

const WAIT = 90_000;

/** A page that computes with polygrad from `address`, and says so in `document.body.dataset.seen`. */
const computing = (attributes, address) => `<!doctype html>
  <script src="polygrad-service-worker.js" ${attributes}></script>
  <body><script type="module">
    import { create } from "${address}";

    const seen = { isolated: crossOriginIsolated, threads: [], sums: [] };
    for (const worker of [false, true]) {
      const pg = await create({ worker });
      const product = pg.Tensor.ones(64, 64).matmul(pg.Tensor.ones(64, 64));
      seen.sums.push(await product.sum().item());
      seen.sums.push(await pg.python("import html.parser, polygrad.onnx; html.parser.unescape('&lt;')"));
      seen.threads.push(await pg.getNumThreads());
      pg.close();
    }
    document.body.dataset.seen = JSON.stringify(seen);
  </script></body>`;

/** A page with the service worker and nothing else. */
const empty = (attributes) => `<!doctype html>
  <script src="polygrad-service-worker.js" ${attributes}></script><body></body>`;

/** What `read` returns, in the page, once it is not null; a reload meanwhile makes it start again. */
async function poll(page, read, arg) {
  const end = Date.now() + WAIT;
  while (Date.now() < end) {
    const found = await page.evaluate(read, arg).catch(() => null);
    if (found !== null) return found;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`expected an answer in ${WAIT} ms, got none`);
}

const computed = (page) =>
  poll(page, () => {
    const { seen } = document.body.dataset;
    return navigator.serviceWorker.controller && seen !== undefined ? JSON.parse(seen) : null;
  });

/** Waits until all that the page has loaded is kept. */
const settled = (page) =>
  poll(page, async () => {
    const [name] = await caches.keys();
    const kept = (await (await caches.open(name)).keys()).map(({ url }) => url);
    const loaded = performance.getEntriesByType("resource").map(({ name }) => name);
    const files = loaded.filter((url) => url.startsWith("http") && !url.endsWith("/favicon.ico"));
    return files.length > 0 && files.every((url) => kept.includes(url)) ? kept.length : null;
  });

async function open({ browser, site }, html) {
  await writeFile(join(site, "index.html"), html);
  const host = await serveStatic(site);
  const page = await browser.newPage();
  const lines = [];
  page.on("console", (message) => lines.push(message.text()));
  await page.goto(host.url);
  return { page, host, lines };
}

const loads = ({ paths }) => paths.filter((path) => path.endsWith("/index.html")).length;

const CASES = {
  /** The page and its worker have threads, after one reload; later visits need none. */
  async isolate(context) {
    const { page, host, lines } = await open(context, computing("data-isolate", "./polygrad/polygrad.mjs"));
    const seen = await computed(page);
    const first = loads(host);
    await page.goto(host.url);
    const later = await computed(page);
    host.close();
    const failed = await page.goto(host.url).then(
      () => false,
      () => true,
    );
    return { seen, later, loads: [first, loads(host)], failed, lines };
  },

  /** Once visited, the page works without a server. */
  async offline(context) {
    const attributes = "data-isolate data-offline";
    const { page, host } = await open(context, computing(attributes, "./polygrad/polygrad.mjs"));
    const seen = await computed(page);
    await settled(page);
    host.close();
    await page.goto(host.url);
    return { seen, later: await computed(page) };
  },

  /** The same with all of polygrad from a CDN. */
  async cdn(context) {
    const cdn = await serveAsCdn(context.argument);
    const address = `${cdn.url}/npm/polygrad@${cdn.version}/+esm`;
    const { page, host } = await open(context, computing("data-isolate data-offline", address));
    const seen = await computed(page);
    await settled(page);
    host.close();
    cdn.close();
    // What a CDN sends may be in the browser's own cache, too.
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Network.clearBrowserCache");
    await page.goto(host.url);
    return { seen, later: await computed(page) };
  },

  /** A page in a frame of a page that is not isolated: one reload, and a word why. */
  async frame(context) {
    await writeFile(join(context.site, "framed.html"), empty("data-isolate"));
    const { page, host, lines } = await open(context, '<!doctype html><iframe src="framed.html"></iframe>');
    while (!lines.some((line) => line.includes("a page in a frame never is"))) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
    const framed = host.paths.filter((path) => path.endsWith("/framed.html")).length;
    host.close();
    return { framed, lines: await page.evaluate(() => document.readyState).then(() => lines) };
  },

  /** A page in a frame that the attribute sandbox cuts off from its service worker computes all the same. */
  async sandbox(context) {
    const cdn = await serveAsCdn(context.argument);
    const framed = `<script type='module'>
      import { create } from '${cdn.url}/npm/polygrad@${cdn.version}/+esm';
      try {
        const { Tensor } = await create();
        console.log('sum', await Tensor.ones(3).sum().item());
      } catch (error) {
        console.log('sum', String(error));
      }
    </script>`;
    const frame = `<iframe sandbox="allow-scripts" srcdoc="${framed}"></iframe>`;
    const { host, lines } = await open(context, `<!doctype html>${frame}`);
    while (!lines.some((line) => line.startsWith("sum"))) {
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    host.close();
    cdn.close();
    return lines.filter((line) => line.startsWith("sum"));
  },

  /** Which answers are kept. */
  async kept(context) {
    const [old, release] = ["polygrad-0123456789ab.zip", "polygrad-ba9876543210.zip"];
    const others = ["photos-0123456789ab.zip", "photos-ba9876543210.zip"];
    const files = { "a.txt": "a", "b.no-store.txt": "b", [old]: "old", [release]: "new" };
    for (const name of others) files[name] = "of the site";
    for (const [name, text] of Object.entries(files)) await writeFile(join(context.site, name), text);
    const { page, host } = await open(context, empty("data-offline"));
    const seen = await poll(
      page,
      async ([old, release, ...others]) => {
        if (navigator.serviceWorker.controller === null) return null;
        const read = async (path, options) => (await fetch(path, options)).text();
        const [name] = await caches.keys();
        const kept = async () =>
          (await (await caches.open(name)).keys())
            .map(({ url }) => url.replace(/.*\//, ""))
            .filter((file) => file !== "" && !file.startsWith("polygrad-service"));
        const until = async (file) => {
          while (!(await kept()).includes(file)) await new Promise((resolve) => setTimeout(resolve, 20));
          return kept();
        };
        await read("b.no-store.txt");
        await read("missing.txt");
        await read("a.txt?part", { headers: { Range: "bytes=0-0" } });
        await read("a.txt?once", { cache: "no-store" });
        await read("a.txt?post", { method: "POST" });
        await read(old);
        const before = await until(old);
        await read(release);
        await until(release);
        for (const name of others) {
          await read(name);
          await until(name);
        }
        await read("a.txt");
        const after = await until("a.txt");
        return { before, after };
      },
      [old, release, ...others],
    );
    host.close();
    const failed = await page.evaluate(() => fetch("missing.txt").then(String, ({ name }) => name));
    const text = await page.evaluate(async () => (await fetch("a.txt")).text());
    return { ...seen, failed, text };
  },

  /** Settings arrive beside a query of the script's own, and a page that answers a form is isolated without a reload. */
  async query(context) {
    const html = empty("data-isolate").replace("worker.js", "worker.js?v=2");
    const { page, host } = await open(context, `${html}<form method="post"></form>`);
    await poll(page, () => (globalThis.crossOriginIsolated ? true : null));
    const script = await page.evaluate(() => navigator.serviceWorker.controller.scriptURL);
    const loaded = loads(host);
    await page.locator("form").evaluate((form) => form.submit()); // it waits for the form
    await poll(page, () => (performance.getEntriesByType("navigation")[0].type === "navigate" ? true : null));
    await new Promise((resolve) => setTimeout(resolve, 500));
    const isolated = await page.evaluate(() => globalThis.crossOriginIsolated);
    host.close();
    return { query: new URL(script).search, isolated, loads: loads(host) - loaded };
  },

  /** What is said of a script tag that asks for nothing, for a policy that does not exist, and of a module. */
  async mistaken(context) {
    const lines = [];
    for (const attributes of ["", 'data-isolate="always"', 'data-isolate type="module"']) {
      const seen = await open(context, empty(attributes));
      while (seen.lines.length === 0) await new Promise((resolve) => setTimeout(resolve, 50));
      lines.push(seen.lines[0]);
      seen.host.close();
    }
    return lines;
  },

  /** A page as a guide prints it: the last line that it writes. */
  async guide(context) {
    const html = await readFile(context.argument, "utf8");
    const { page, host, lines } = await open(context, html);
    await poll(page, () => (navigator.serviceWorker.controller ? true : null));
    const count = lines.length;
    while (lines.length === count) await new Promise((resolve) => setTimeout(resolve, 50));
    host.close();
    return lines.at(-1);
  },
};

const [name, site, chosen, argument] = process.argv.slice(2);
await mkdir(site, { recursive: true });
const browser = await launch(name);
try {
  console.log(JSON.stringify(await CASES[chosen]({ browser, site, argument })));
} finally {
  await browser.close();
}
