/**
 * Drives the playground's kernel inspector in Chromium for `test_playground_kernels.py`: `node playground_kernels.mjs
 * FOLDER` prints what it saw.
 */

import { join } from "node:path";

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";
import { forbidEval, open, WAIT } from "./playground_page.mjs";

const [folder] = process.argv.slice(2);

const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
const texts = (page, selector) => page.locator(selector).allInnerTexts();
const text = (page, selector) => page.locator(selector).innerText();

/** Waits until a program's kernels are drawn, or it has failed. */
async function inspected(page) {
  await page.locator("#inspect:enabled").waitFor(WAIT);
  await page
    .locator('#kernels .graph[aria-busy="false"] svg, #kernel-failure .failure')
    .first()
    .waitFor(WAIT);
}

async function choose(page, file) {
  await page.locator("#kernel-program").selectOption(file);
  await page.locator(`#kernel-source[data-program="${file}"]`).waitFor(WAIT);
  await inspected(page);
}

/** Types another program, and compiles it with the keyboard. */
async function compile(page, source) {
  await page.locator("#kernel-source .cm-content").click();
  await page.keyboard.press("Control+a");
  await page.keyboard.insertText(source);
  await page.keyboard.press("Control+Enter");
}

const facts = (page) =>
  page
    .locator("#kernel-facts > div")
    .evaluateAll((rows) => Object.fromEntries(rows.map((row) => [...row.children].map((x) => x.innerText))));

/** What is said of a matrix product, walked through with the keyboard. */
async function product(page) {
  await inspected(page);
  const product = {
    note: await page.locator("#kernel-note").innerText(),
    facts: await facts(page),
    launches: await page.locator(".timeline label").evaluateAll((all) => all.map((x) => x.title)),
    passes: await page.locator(".pass-name").allInnerTexts(),
    sizes: await page.locator(".pass-list .size").allInnerTexts(),
    nodes: await page
      .locator("#kernels .node")
      .evaluateAll((all) => all.map((x) => x.getAttribute("aria-label"))),
  };
  await shoot(page, "kernels");

  // down the passes: each is drawn anew, and says what it did
  await page.locator(".pass-list input").first().focus();
  product.steps = [];
  for (let i = 1; i < product.passes.length; i++) {
    await page.keyboard.press("ArrowDown");
    await page.locator('#kernels .graph[aria-busy="false"]').waitFor(WAIT);
    product.steps.push({
      note: await page.locator(".pass-view > p").innerText(),
      marked: await page.locator("#kernels .node.new").count(),
    });
  }
  const changed = product.sizes.findIndex((size) => size.includes("→"));
  await page.locator(".pass-list label").nth(changed).click();
  await page.getByLabel("Before", { exact: true }).check({ force: true });
  await page.locator('#kernels .graph[aria-busy="false"]').waitFor(WAIT);
  product.before = {
    note: await page.locator(".pass-view > p").innerText(),
    marked: await page.locator("#kernels .node.gone").count(),
    nodes: await page.locator("#kernels .node").count(),
  };
  await page.getByLabel("index arithmetic").check();
  await page.locator('#kernels .graph[aria-busy="false"]').waitFor(WAIT);
  product.before.withIndices = await page.locator("#kernels .node").count();

  // from the end of the graph up to a source
  await page.locator('#kernels .node[tabindex="0"]').focus();
  product.walk = [await page.locator("#kernels .graph .readout").innerText()];
  for (let i = 0; i < 3; i++) {
    await page.keyboard.press("ArrowUp");
    product.walk.push(await page.locator("#kernels .graph .readout").innerText());
  }
  await page.getByLabel("Text", { exact: true }).check({ force: true });
  product.listing = await page.locator(".listing").innerText();
  await page.getByLabel("Code", { exact: true }).check({ force: true });
  product.wat = await page.locator(".listing").innerText();
  await page.getByLabel("Graph", { exact: true }).check({ force: true });
  return product;
}

/** A training step's timeline, and the lines that made each of its launches. */
async function step(page, file) {
  await choose(page, file);
  const seen = {
    note: await text(page, "#kernel-note"),
    bars: await page
      .locator(".launch-bar")
      .evaluateAll((all) => all.map(({ style }) => [parseFloat(style.left), parseFloat(style.width)])),
    kernels: await texts(page, ".timeline label code"),
    lines: [],
  };
  for (let i = 0; i < seen.bars.length; i++) {
    await page.locator(".timeline label").nth(i).click();
    seen.lines.push(await texts(page, ".line-link"));
  }
  await page.locator(".timeline label").nth(1).hover();
  seen.hovered = await text(page, ".timeline .readout");
  await page.locator(".timeline label").nth(0).click();
  seen.marked = await texts(page, ".marked-line");
  await page.locator(".timeline label").nth(2).click();
  seen.chosen = await text(page, ".timeline .readout");
  seen.kernel = (await facts(page)).Kernel;
  await page.locator('#kernels .graph[aria-busy="false"]').waitFor(WAIT);
  // to the line, with the keyboard
  await page.locator(".line-link").first().focus();
  await page.keyboard.press("Enter");
  seen.focused = await page.evaluate(() => document.activeElement?.className ?? "");
  seen.line = await text(page, "#kernel-source .cm-activeLine");
  return seen;
}

/** Waits for a comparison that is not the one before. */
async function compared(page, act) {
  await page.locator("#compare-note").evaluate((note) => note.replaceChildren());
  await page.locator("#diff").evaluate((diff) => diff.replaceChildren());
  await act();
  await page
    .locator("#compare-note", { hasText: /alone|the same|lines on/ })
    .or(page.locator("#diff .failure"))
    .first()
    .waitFor(WAIT);
  return page.evaluate(() => {
    const column = (place) =>
      [...document.querySelectorAll("#diff .hunk")]
        .map((hunk) => hunk.children[place])
        .filter((pre) => pre.lastChild !== null)
        .map((pre) => pre.lastChild.data)
        .join("\n");
    const inner = (selector) => document.querySelector(selector).innerText;
    return {
      note: inner("#compare-note"),
      left: column(0),
      right: column(1),
      facts: [inner("#left-facts"), inner("#right-facts")],
      failure: document.querySelector("#diff .failure")?.innerText,
    };
  });
}

/** A kernel with other Opts, and as other devices have it. */
async function compare(page) {
  await choose(page, "matrix product.js");
  await page.getByLabel("Code", { exact: true }).check({ force: true });
  const kernel = (await facts(page)).Kernel;
  await page.locator(".listing", { hasText: kernel }).first().waitFor(WAIT); // not that of another kernel
  const code = await text(page, ".listing");
  await page.getByLabel("Graph", { exact: true }).check({ force: true });
  const select = (id, value) => () => page.locator(id).selectOption(value);
  const seen = { code, kernel };
  seen.opts = await compared(page, () => page.locator("#comparison > summary").click());
  await shoot(page, "opts");
  seen.same = await compared(page, select("#right-opts", "heuristics"));
  await page.locator("#right-opts").selectOption("typed");
  seen.suggested = await page.locator("#right-opts-text").inputValue();
  const typed = (opts) => async () => {
    await page.locator("#right-opts-text").fill(opts);
    await page.keyboard.press("Enter");
  };
  seen.typed = await compared(page, typed("UPCAST r0 4"));
  seen.wrong = await compared(page, typed("UPCAST r9 4"));
  seen.unknown = await compared(page, typed("FASTER r0"));
  seen.devices = await compared(page, async () => {
    await page.locator("#right-opts").selectOption("heuristics");
    await page.locator("#right-device").selectOption("WEBGPU");
  });
  seen.c = await compared(page, select("#right-device", "CC"));
  await shoot(page, "devices");
  // another program: the comparison goes on with its kernel
  seen.next = await compared(page, () => choose(page, "softmax.py"));
  return seen;
}

/** Programs that fail, and one that does not end. */
async function failing(page) {
  const failure = async (source) => {
    await compile(page, source);
    await page.locator("#kernel-failure .failure").waitFor(WAIT);
    return { text: await text(page, "#kernel-failure"), marked: await texts(page, ".marked-line") };
  };
  await choose(page, "softmax.py");
  const python = {
    number: await failure("3 + 4"),
    statement: await failure("x = Tensor.ones(2)"),
    raised: await failure("x = Tensor.ones(2, 3)\n\nx @ x"),
    syntax: await failure("x = = 1"),
  };
  await compile(page, "x = Tensor.rand(5, 5)\nx * 2");
  await inspected(page);
  python.after = await text(page, "#kernel-note");
  await choose(page, "softmax.js");
  const start = 'import { create } from "polygrad";\nconst { Tensor } = await create();\n';
  const javascript = {
    number: await failure("3 + 4; // seven"),
    statement: await failure("const x = 1;"),
    raised: await failure(`${start}const x = Tensor.ones(2, 3);\nx.matmul(x);`),
    thrown: await failure(`${start}\nmissing(1);`),
    asynchronous: await failure(`${start}await Tensor.ones(2).data();`),
  };
  await compile(page, "for (;;) {}\n1;");
  await page.locator("#stop-inspecting:enabled").click();
  javascript.stopped = await text(page, "#kernel-note");
  await compile(page, `${start}const x = Tensor.rand(5, 5);\nx.mul(2) // twice`);
  await inspected(page);
  javascript.after = { note: await text(page, "#kernel-note"), lines: await texts(page, ".line-link") };
  return { python, javascript };
}

/** A kernel on the GPU, where there is one. */
async function onGpu(page) {
  const options = page.locator("#kernel-device option");
  await page.waitForTimeout(500);
  const devices = await options.evaluateAll((all) => all.map((x) => [x.label, x.disabled]));
  if (devices[1][1]) return { devices };
  await choose(page, "matrix product.js");
  await page.locator("#kernel-device").selectOption("WEBGPU");
  await page.locator("#stop-inspecting:enabled").waitFor(WAIT);
  await inspected(page);
  const note = await text(page, "#kernel-note");
  const failure = await text(page, "#kernel-failure");
  if (failure !== "") return { devices, failure };
  await page.getByLabel("Code", { exact: true }).check({ force: true });
  const code = await text(page, ".listing");
  const both = await compared(page, async () => {
    await page.locator("#left-device").selectOption("WEBGPU");
    await page.locator("#right-device").selectOption("WASM");
  });
  return { devices, note, code, lines: await texts(page, ".line-link"), both };
}

const server = await startServer();
const browser = await launchChromium();
const address = `${server.url}/playground/#kernels`;
try {
  const { page, complaints } = await open(browser, address, { viewport: { width: 1200, height: 800 } });
  await inspected(page);
  const seen = { product: await product(page) };
  seen.steps = {
    javascript: await step(page, "training step.js"),
    python: await step(page, "training step.py"),
  };
  await shoot(page, "step");
  seen.compared = await compare(page);
  seen.failing = await failing(page);
  seen.gpu = await onGpu(page);

  const phone = { viewport: { width: 375, height: 740 }, colorScheme: "dark", hasTouch: true };
  const small = await open(browser, address, phone);
  await inspected(small.page);
  await compared(small.page, () => small.page.locator("#comparison > summary").click());
  seen.width = await small.page.evaluate(() => document.documentElement.scrollWidth);
  await shoot(small.page, "phone");

  // a host whose policy forbids eval everywhere
  const strict = await page.context().newPage();
  await forbidEval(strict);
  await strict.goto(address);
  await strict.locator("#kernel-failure .failure").waitFor(WAIT);
  seen.forbidden = await text(strict, "#kernel-failure");
  await choose(strict, "softmax.py");
  seen.allowed = await text(strict, "#kernel-note");

  console.log(JSON.stringify({ ...seen, complaints: [...complaints, ...small.complaints] }));
} finally {
  await browser.close();
  server.close();
}
