/** Drives pages that use the JavaScript API: `node pages.mjs CASE PACKAGE` prints what it saw. */

import { launchChromium } from "../../web/chromium.mjs";
import { NOT_ISOLATED, servePackage } from "./server.mjs";

/** A page, what it wrote to the console, and what it complained about. */
async function open(browser, url) {
  const page = await browser.newPage();
  const [lines, complaints] = [[], []];
  page.on("console", (message) => {
    (message.type() === "error" ? complaints : lines).push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(url);
  return { page, lines, complaints };
}

const CASES = {
  /** Progress, one after the other, in this thread and in a worker; both forms of the script. */
  async start(browser, { url }) {
    const { page, complaints } = await open(browser, `${url}/tests/page.html`);
    const seen = await page.evaluate(async () => {
      const module = await import("/package/polygrad.mjs");
      const out = {};
      for (const [name, create, options] of [
        ["direct", globalThis.polygrad.create, {}],
        ["worker", module.create, { worker: true }],
      ]) {
        const events = [];
        const pg = await create({ ...options, onProgress: (event) => events.push(event) });
        out[name] = {
          sum: await pg.Tensor.ones(3).sum().item(),
          stages: events.map(({ stage }) => stage),
          rising: events.every(({ fraction }, i) => i === 0 || fraction > events[i - 1].fraction),
          done: events.at(-1).fraction,
        };
        pg.close();
      }
      out.failed = await module
        .create({ worker: true, wheelUrl: "/nowhere.whl" })
        .catch(({ name, url, status }) => ({ name, url, status }));
      out.stopped = [];
      for (const worker of [false, true]) {
        const stop = new AbortController();
        const options = { worker, signal: stop.signal, onProgress: () => stop.abort() };
        out.stopped.push(await module.create(options).catch(({ name }) => name));
      }
      out.stopped.push(await module.create({ signal: AbortSignal.abort() }).catch(({ name }) => name));
      out.exported = Object.keys(globalThis.polygrad).includes("ShapeError");
      return out;
    });
    return { ...seen, complaints: complaints.filter((text) => !text.includes("404")) };
  },

  /** Without isolation: it works, on one thread, and is said once. */
  async alone(browser, { url }) {
    const { page, lines, complaints } = await open(browser, `${url}/tests/page.html`);
    const threads = await page.evaluate(async () => {
      const found = [];
      for (const worker of [false, true]) {
        const pg = await globalThis.polygrad.create({ worker });
        await pg.Tensor.rand(64, 64).matmul(pg.Tensor.rand(64, 64)).sum().item();
        found.push(await pg.getNumThreads());
      }
      return found;
    });
    return {
      threads,
      said: lines.filter((line) => line.includes("not cross-origin isolated")).length,
      complaints,
    };
  },

  /** Python in script tags. */
  async tags(browser, { url }) {
    const { page, lines, complaints } = await open(browser, `${url}/tests/tags.html`);
    await page.waitForFunction(() => document.body.dataset.done === "2", undefined, { timeout: 120_000 });
    return { text: await page.locator("#out").textContent(), lines, complaints };
  },

  /** Training in a worker leaves the page free: how often a timer of the page ticked meanwhile. */
  async responsive(browser, { url }) {
    const { page, complaints } = await open(browser, `${url}/tests/page.html`);
    const seen = await page.evaluate(async () => {
      const pg = await globalThis.polygrad.create({ worker: true });
      const { Tensor, nn, optim, compileStep } = pg;
      let ticks = 0;
      const timer = setInterval(() => ticks++, 5);
      const model = { a: new nn.Linear(64, 128), b: new nn.Linear(128, 10) };
      const forward = (m, x) => m.b.forward(m.a.forward(x).relu());
      const opt = new optim.Adam(nn.state.getParameters(model));
      const x = Tensor.rand(128, 64);
      const y = new Tensor(new Int32Array(128));
      const step = compileStep((m, a, b) => forward(m, a).crossEntropy(b), model, opt, x, y);
      for (let i = 0; i < 300; i++) step.run(x, y);
      const loss = await step.lossValue();
      clearInterval(timer);
      return { loss, ticks };
    });
    return { ...seen, complaints };
  },

  /** A worker that ends takes all that is pending with it, and later calls too. */
  async ended(browser, { url }) {
    const { page, complaints } = await open(browser, `${url}/tests/page.html`);
    const seen = await page.evaluate(async () => {
      const pg = await globalThis.polygrad.create({ worker: true });
      const t = new pg.Tensor([1, 2]);
      await t.ready();
      const endless = pg.python("while True: pass").catch((error) => error.message);
      const behind = t.data().catch((error) => error.message);
      await new Promise((resolve) => setTimeout(resolve, 100));
      pg.close();
      const after = await t.data().catch((error) => error.message);
      const direct = await globalThis.polygrad.create();
      const own = new direct.Tensor([1, 2]);
      direct.close();
      const closed = await own.data().catch((error) => error.message);
      own.dispose(); // as a scope does that ends later
      return [await endless, await behind, after, closed];
    });
    return { seen, complaints };
  },

  /** `create` in a worker of the page's own, with the package's folder relative to it. */
  async ownWorker(browser, { url }) {
    const { page, complaints } = await open(browser, `${url}/tests/page.html`);
    const seen = await page.evaluate(
      () =>
        new Promise((resolve, reject) => {
          const worker = new Worker("/tests/own_worker.mjs", { type: "module" });
          worker.onmessage = ({ data }) => resolve(data);
          worker.onerror = ({ message }) => reject(new Error(message));
        }),
    );
    return { ...seen, complaints };
  },

  /** Pixels of what a page draws. */
  async images(browser, { url }) {
    const { page, complaints } = await open(browser, `${url}/tests/page.html`);
    const seen = await page.evaluate(async () => {
      const { Tensor } = await globalThis.polygrad.create();
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [2, 1];
      const context = canvas.getContext("2d");
      context.fillStyle = "rgb(10, 20, 30)";
      context.fillRect(0, 0, 1, 1);
      const bitmap = await createImageBitmap(canvas);
      const list = (image, options) => Tensor.fromImage(image, options).tolist();
      return {
        canvas: await list(canvas),
        bitmap: await list(bitmap, { channels: 3 }),
        data: await list(context.getImageData(0, 0, 2, 1), { channels: 3 }),
        video: await (async () => list(document.createElement("video")))().catch((error) => error.message),
      };
    });
    return { ...seen, complaints };
  },

  /** Objects of 10,000 operations and 1,000 training steps, none of them disposed of: what is left in the end. */
  async growth(browser, { url }) {
    const { page, complaints } = await open(browser, `${url}/tests/page.html`);
    const session = await page.context().newCDPSession(page);
    await page.exposeFunction("collect", () => session.send("HeapProfiler.collectGarbage"));
    const seen = await page.evaluate(async () => {
      const { grow } = await import("/tests/growth.mjs");
      return grow(await globalThis.polygrad.create(), () => globalThis.collect());
    });
    return { ...seen, complaints };
  },
};

const [name, folder, isolation] = process.argv.slice(2);
const server = await servePackage(folder, isolation === "not-isolated" ? { headers: NOT_ISOLATED } : {});
const browser = await launchChromium();
try {
  console.log(JSON.stringify(await CASES[name](browser, server)));
} finally {
  await browser.close();
  server.close();
}
