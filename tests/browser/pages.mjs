/** Drives the pages in Chromium for `test_pages.py`: `node pages.mjs CASE [WHEEL [not-isolated]]` prints what it saw. */

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

/** A page, and all that it complained about. */
async function open(browser, url) {
  const page = await browser.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(url);
  return { page, complaints };
}

const CASES = {
  /** The script tag, the module, and isolation. */
  async load(browser, url) {
    const { page, complaints } = await open(browser, `${url}/run.html`);
    const result = await page.evaluate(async () => {
      const byTag = await window.polygrad.load({ env: { A: "b" } });
      const module = await import("/dist/polygrad.mjs");
      const again = await module.load({ wheelUrl: "dist/polygrad.whl", indexURL: "dist/pyodide/" });
      await byTag.runPythonAsync("import polygrad, os; await __import__('asyncio').sleep(0)");
      let failed;
      await module.load({ wheelUrl: "nowhere.whl" }).catch((error) => (failed = error.message));
      return {
        isolated: window.crossOriginIsolated,
        environment: byTag.runPython("os.environ['A']"),
        version: again.runPython("import polygrad; polygrad.__version__"),
        host: byTag.runPython(
          "from polygrad.runtime.wasm.device import WasmRuntime; WasmRuntime().allocate(1)",
        ),
        failed,
        exported: Object.keys(window.polygrad).sort(),
      };
    });
    return { ...result, complaints: complaints.filter((text) => !text.includes("404")) };
  },

  /** Starts, one after the other: from bytecode, from a snapshot, and with the snapshot damaged. */
  async starts(browser, url) {
    const { page, complaints } = await open(browser, `${url}/run.html`);
    /** What is stored beside kernels: the keys, and how long the first entry is, one bit of which `damage` flips. */
    const stored = (damage) =>
      page.evaluate(async (damage) => {
        const settled = (request) => new Promise((done) => (request.onsuccess = () => done(request.result)));
        const database = await settled(indexedDB.open("polygrad"));
        const table = () => database.transaction("bytes", "readwrite").objectStore("bytes");
        const keys = (await settled(table().getAllKeys())).filter((key) => !key.startsWith("kernel-"));
        const bytes = new Uint8Array(await (await settled(table().get(keys[0]))).arrayBuffer());
        if (damage) {
          bytes[bytes.length >> 1] ^= 1;
          await settled(table().put(new Blob([bytes]), keys[0]));
        }
        database.close();
        return { keys, size: bytes.length };
      }, damage);
    const start = () =>
      page.evaluate(async () => {
        const stages = [];
        const python = await window.polygrad.load({ onProgress: ({ stage }) => stages.push(stage) });
        const value = python.runPython("from polygrad import Tensor; Tensor([1.0, 2.0, 3.0]).sum().item()");
        const rest = python.runPython("import html.parser; html.parser.unescape('&lt;')");
        await python.kept;
        return { origin: python.origin, value, rest, stages };
      });
    const result = { first: await start(), kept: await stored(false) };
    await page.reload();
    result.second = await start();
    await stored(true);
    await page.reload();
    result.damaged = await start();
    result.mended = await start();
    result.worker = await page.evaluate(async () => {
      const stages = [];
      const python = await window.polygrad.loadWorker({ onProgress: ({ stage }) => stages.push(stage) });
      const value = await python.runPython("from polygrad import Tensor; Tensor([1.0, 2.0]).sum().item()");
      const rest = await python.runPython("import html.parser; html.parser.unescape('&lt;')");
      return { value, rest, stages };
    });
    return { ...result, complaints };
  },

  /**
   * Kernels kept between visits: two pages compile the same at once, then a visit finds them, then all are damaged, then
   * there is no room for any.
   */
  async kernels(browser, url) {
    const context = await browser.newContext();
    const pages = await Promise.all([context.newPage(), context.newPage()]);
    const complaints = [];
    for (const page of pages) page.on("pageerror", (error) => complaints.push(String(error)));
    const [page] = pages;
    const visit = (page, worker) =>
      page.evaluate(async (worker) => {
        const python = await window.polygrad[worker ? "loadWorker" : "load"]();
        const code = [
          "from polygrad import Tensor; from polygrad.engine.stats import stats",
          "value = (Tensor.ones(3, 4).contiguous() @ Tensor.ones(4, 5).contiguous() + Tensor.arange(5)).sum().item()",
          "[value, stats.kernels_compiled, stats.kernels_found]",
        ].join("\n");
        const found = await python.runPython(code);
        const seen = worker ? found : found.toJs();
        // Those of this visit are written a little later.
        for (let i = 0; i < 50 && seen[1] > 0 && !(await window.storedKernels()).length; i++) {
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        return seen;
      }, worker);
    const open = (page) =>
      page.goto(`${url}/run.html`).then(() =>
        page.evaluate(() => {
          const settled = (request) =>
            new Promise((done) => (request.onsuccess = () => done(request.result)));
          /** The records of kernels; those that `change` gives are written in their place. */
          window.storedKernels = async (change) => {
            const database = await settled(indexedDB.open("polygrad"));
            const table = database.transaction("bytes", "readwrite").objectStore("bytes");
            const range = window.IDBKeyRange.bound("kernel-", "kernel-\uffff");
            const [keys, values] = await Promise.all([
              settled(table.getAllKeys(range)),
              settled(table.getAll(range)),
            ]);
            for (const [i, key] of keys.entries())
              if (change) await settled(table.put(change(values[i]), key));
            database.close();
            return keys;
          };
        }),
      );
    await Promise.all(pages.map(open));
    const result = { together: await Promise.all(pages.map((page) => visit(page, false))) };
    result.found = await visit(page, false);
    result.worker = await visit(page, true);
    result.kept = await page.evaluate(async () => {
      const counts = { kernels: 0, programs: 0 };
      await window.storedKernels((bytes) => {
        const isProgram = new window.TextDecoder("latin1").decode(bytes).includes("PGRD"); // which Programs begin with
        counts[isProgram ? "programs" : "kernels"]++;
        return bytes.fill(7, 40);
      });
      return counts;
    });
    await open(page);
    result.damaged = await visit(page, false);
    await page.waitForTimeout(1000);
    result.mended = await visit(page, false);
    await page.evaluate(() => window.storedKernels(() => "no bytes at all"));
    await page.evaluate(() => {
      window.IDBObjectStore.prototype.put = () => {
        throw new window.DOMException("full", "QuotaExceededError");
      };
    });
    result.full = [await visit(page, false), await visit(page, false)];
    await context.close();
    return { ...result, complaints };
  },

  /** A worker: same calls, results as copies, errors, output, and a page that goes on meanwhile. */
  async worker(browser, url) {
    const { page, complaints } = await open(browser, `${url}/run.html`);
    const result = await page.evaluate(async () => {
      const pieces = [];
      const options = { stdout: (text) => pieces.push(text), isatty: true };
      const python = await window.polygrad.loadWorker(options);
      await python.writeFile(
        "/home/pyodide/s.py",
        new TextEncoder().encode("import sys; sys.exit(len(sys.argv))"),
      );
      let ticks = 0;
      const timer = setInterval(() => ticks++, 10);
      await python.runPython("import time; time.sleep(0.5)");
      clearInterval(timer);
      await python.runPython("print('one', end='\\r', flush=True); print('two')");
      let error;
      await python.runPython("import polygrad; polygrad.dtype.to_dtype('int3')").catch((e) => (error = e));
      const result = {
        sum: await python.runPython("20 + 22"),
        list: await python.runPythonAsync("[1, 'a', None]"),
        status: await python.runScript("/home/pyodide/s.py", ["a", "b"]),
        host: await python.runPython(
          "from polygrad.runtime.wasm.device import WasmRuntime; WasmRuntime().allocate(1)",
        ),
        text: pieces.join(""),
        error: error.message.includes("DTypeError: dtype: expected one of"),
        ticks,
      };
      const endless = python.runPython("while True: pass");
      setTimeout(() => python.terminate(), 100);
      await endless.catch((e) => (result.terminated = e.message));
      return result;
    });
    return { ...result, complaints };
  },

  /** Without isolation, and where the caller wants no threads. */
  async alone(browser, url) {
    const { page, complaints } = await open(browser, `${url}/run.html`);
    const result = await page.evaluate(async () => {
      const python = await window.polygrad.load({ threads: 1 });
      let refused;
      if (window.crossOriginIsolated) {
        await window.polygrad.load({ threads: 0 }).catch((error) => (refused = error.message));
      }
      const code = [
        "from polygrad import Device, Tensor, get_num_threads",
        "x = (Tensor.ones(256, 256).contiguous() @ Tensor.ones(256, 256).contiguous()).sum().item()",
        "[x, get_num_threads(), Device['WASM'].host.threads, 'threads' in Device['WASM'].features]",
      ];
      const plain = await window.polygrad.load();
      return {
        isolated: window.crossOriginIsolated,
        single: python.runPython(code.join("\n")).toJs(),
        plain: plain.runPython(code.join("\n")).toJs(),
        refused,
      };
    });
    return { ...result, complaints };
  },

  /** The demo page, from the click to the figures. */
  async demo(browser, url) {
    const { page, complaints } = await open(browser, `${url}/demo.html`);
    await page.locator("#epochs").fill("20");
    await page.locator("#train:enabled").click({ timeout: 60_000 });
    await page.locator("#status", { hasText: /^(done|failed)$/ }).waitFor({ timeout: 120_000 });
    const text = (id) => page.locator(`#${id}`).textContent();
    const inked = await page.locator("#curve").evaluate((canvas) => {
      const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
      return data.some((value) => value > 0);
    });
    return {
      status: await text("status"),
      errors: await text("errors"),
      accuracy: parseFloat(await text("accuracy")),
      speed: parseFloat(await text("speed")),
      progress: await page.locator("#progress").evaluate((bar) => bar.value),
      inked,
      complaints,
    };
  },
};

/** What makes a page share no memory with its workers. */
const NOT_ISOLATED = {
  "Cross-Origin-Opener-Policy": "unsafe-none",
  "Cross-Origin-Embedder-Policy": "unsafe-none",
};

const [name, wheel, isolation] = process.argv.slice(2);
const server = await startServer({
  ...(wheel && { wheel }),
  ...(isolation === "not-isolated" && { headers: NOT_ISOLATED }),
});
const browser = await launchChromium();
try {
  console.log(JSON.stringify(await CASES[name](browser, server.url)));
} finally {
  await browser.close();
  server.close();
}
