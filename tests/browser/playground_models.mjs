/**
 * Drives the playground's boundaries and next characters in Chromium for `test_playground_models.py`:
 * `node playground_models.mjs FOLDER` prints what it saw.
 */

import { join } from "node:path";

import { load } from "../../node/dist/runtime.js";
import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";
import { open, WAIT } from "./playground_page.mjs";

const [folder] = process.argv.slice(2);
const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
const textOf = (page, id) => page.locator(`#${id}`).innerText();

/** How many pixels of a canvas have a colour. */
function inkOf(page, id) {
  return page.locator(`#${id}`).evaluate((canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    return data.filter((_, i) => i % 4 === 3).filter((alpha) => alpha > 0).length / (data.length / 4);
  });
}

/** A network learns, is exported, and the file runs beside it. */
async function learnBoundary(page) {
  const seen = { points: await inkOf(page, "plane") };
  await page.locator("#boundary-note", { hasText: /9\d% right|100% right/ }).waitFor(WAIT);
  seen.note = await textOf(page, "boundary-note");
  seen.plane = await inkOf(page, "plane");
  // other settings make another network
  await page.locator("#boundary-layers").selectOption("1");
  await page.locator("#boundary-width").selectOption("8");
  await page.locator("#boundary-data").selectOption("circles");
  await page.locator("#boundary-optimizer").selectOption("SGD");
  await page.locator("#boundary-note", { hasText: /^42 parameters .*(9\d|100)% right/ }).waitFor(WAIT);
  // a network that is trained anew while the last one is exported
  await page.evaluate(() => {
    const { document, MutationObserver } = globalThis;
    const note = document.getElementById("boundary-note");
    globalThis.notes = [];
    new MutationObserver(() => globalThis.notes.push(note.textContent)).observe(note, { childList: true });
    for (const id of ["export-boundary", "train-boundary"]) document.getElementById(id).click();
  });
  await page.locator("#boundary-note", { hasText: /^42 parameters .*(9\d|100)% right/ }).waitFor(WAIT);
  seen.abandoned = await page.locator("#exported").isVisible();
  seen.notes = await page.evaluate(() => globalThis.notes);
  await page.locator("#export-boundary").click();
  await page.locator("#exported-note", { hasText: "without Python" }).waitFor(WAIT);
  seen.exported = await textOf(page, "exported-note");
  seen.button = await textOf(page, "train-boundary");
  seen.beside = await inkOf(page, "exported-plane");
  const download = page.waitForEvent("download");
  await page.locator("#download-model").click();
  const file = await download;
  seen.file = file.suggestedFilename();
  const path = join(folder, seen.file);
  await file.saveAs(path);
  // its kernels are made for threads, as the page's are: Node runs it too
  const points = [0.15, 0.75].flatMap((radius) =>
    Array.from({ length: 12 }, (_, i) => [
      radius * Math.cos((i * Math.PI) / 6),
      radius * Math.sin((i * Math.PI) / 6),
    ]),
  );
  const { probability } = await (await load(path)).run({ points });
  seen.inNode = Array.from(probability.data);
  await shoot(page, "boundaries");
  return seen;
}

/** What follows the visitor's words, hot and cold. */
async function nextCharacters(page) {
  await page.locator("#tab-characters").click();
  await page.locator("#next-note", { hasText: "Train" }).waitFor(WAIT);
  const seen = {
    before: await textOf(page, "next-note"),
    disabled: await page.locator("#continue-prompt").isDisabled(),
  };
  await page.locator("#train-characters").click();
  await page.locator("#next-bars li").first().waitFor(WAIT);
  await page.waitForTimeout(4000);
  await page.locator("#train-characters").evaluate((button) => {
    for (let i = 0; i < 2; i++) button.click(); // the second click must not start another training
  });
  await page.locator("#characters-note", { hasText: "stopped" }).waitFor(WAIT);
  seen.stopped = await page.locator("#train-characters").innerText();
  const temperature = async (value) => {
    const before = await textOf(page, "next-note");
    await page.locator("#temperature").fill(value);
    await page.waitForFunction(
      (text) => globalThis.document.getElementById("next-note").innerText !== text,
      before,
      WAIT,
    );
    const numbers = await page.locator("#next-bars .number").allInnerTexts();
    return numbers.map((text) => parseFloat(text));
  };
  await page.locator("#prompt").fill("thou ar");
  await page.locator("#next-note", { hasText: "“thou ar”" }).waitFor(WAIT);
  seen.note = await textOf(page, "next-note");
  seen.cold = await temperature("0.2");
  seen.hot = await temperature("1.4");
  await page.locator("#continue-prompt").click();
  await page.locator(".sample:not(.writing)", { hasText: "from your words" }).waitFor(WAIT);
  seen.written = await page.locator(".sample", { hasText: "from your words" }).locator("p").innerText();
  await shoot(page, "next");
  return seen;
}

const server = await startServer();
const browser = await launchChromium();
try {
  const options = { viewport: { width: 1200, height: 800 }, acceptDownloads: true };
  const { page, complaints } = await open(browser, `${server.url}/playground/#boundaries`, options);
  const boundary = await learnBoundary(page);
  const next = await nextCharacters(page);
  console.log(JSON.stringify({ boundary, next, complaints }));
} finally {
  await browser.close();
  server.close();
}
