/**
 * Drives the playground's chat and its fine-tuning in Chromium for `test_playground_chat.py`:
 * `node playground_chat.mjs FOLDER` prints what it saw.
 */

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";
import { open, WAIT } from "./playground_page.mjs";

const [folder] = process.argv.slice(2);
const MODEL = fileURLToPath(new URL("../../examples/data/chat/", import.meta.url));
const shoot = (page, name) => page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
const textOf = (page, id) => page.locator(`#${id}`).innerText();

/** A message that is written; the answer and the line below it, once it is there. */
async function ask(page, text) {
  await page.locator("#chat-question").fill(text);
  await page.keyboard.press("Enter");
  const answer = page.locator(".message.assistant:not(.writing)", { has: page.locator("footer") }).last();
  await page.locator("#chat-send", { hasText: "Send" }).waitFor(WAIT);
  return { answer: await answer.locator("p").innerText(), note: await answer.locator("footer").innerText() };
}

async function chat(page) {
  await page.locator("#chat-note", { hasText: "You talk with Poly" }).waitFor(WAIT);
  const seen = { suggestions: await page.locator(".suggestion").count() };
  await page.getByLabel("Temperature").locator("visible=true").fill("0");
  await page.locator(".suggestion", { hasText: "sky" }).click();
  await page.locator(".message.assistant footer").waitFor(WAIT);
  seen.suggested = await page.locator(".message.assistant p").innerText();
  seen.sum = await ask(page, "What is 7 + 5?");
  seen.named = await ask(page, "My name is Ada.");
  seen.name = await ask(page, "What is my name?");
  await page.locator("#chat-length").selectOption("16");
  seen.short = await ask(page, "Tell me a story.");
  await shoot(page, "chat");
  // stopped while it writes: the part that is there stays
  await page.locator("#chat-length").selectOption("512");
  await page.evaluate(() => {
    const { document, MutationObserver } = globalThis;
    const observer = new MutationObserver(() => {
      if (!document.querySelector(".writing p")?.textContent) return;
      observer.disconnect();
      document.getElementById("chat-send").click();
    });
    observer.observe(document.getElementById("messages"), {
      childList: true,
      subtree: true,
      characterData: true,
    });
  });
  seen.stopped = await ask(page, "Tell me a story.");
  seen.after = await ask(page, "What colour is grass?");
  await page.locator("#new-chat").click();
  await page.locator(".suggestion").first().waitFor(WAIT);
  seen.left = await page.locator(".message").count();
  return seen;
}

/** A model from the disk, and folders that are none. */
async function ownModel(page) {
  const names = await readdir(MODEL);
  const file = async (name) => ({
    name,
    mimeType: "application/octet-stream",
    buffer: await readFile(join(MODEL, name)),
  });
  await page.locator("#chat-folder").setInputFiles(MODEL);
  await page.locator("#chat-note", { hasText: "You talk with chat" }).waitFor(WAIT);
  const seen = { opened: await textOf(page, "chat-note"), files: names.length };
  seen.answer = await ask(page, "What colour is snow?");
  await page.locator("#chat-gguf").setInputFiles([{ ...(await file("config.json")), name: "none.gguf" }]);
  await page.locator("#messages .failure").waitFor(WAIT);
  seen.failure = await page.locator("#messages .failure").innerText();
  seen.kept = await textOf(page, "chat-note");
  seen.still = await ask(page, "What colour is coal?");
  await page.locator("#chat-built-in").click();
  await page.locator("#chat-note", { hasText: "You talk with Poly" }).waitFor(WAIT);
  return seen;
}

/** Click what downloads a file; its name. */
async function download(page, locator) {
  const [file] = await Promise.all([page.waitForEvent("download", WAIT), locator.click()]);
  await file.saveAs(join(folder, file.suggestedFilename()));
  return file.suggestedFilename();
}

async function fineTune(page, complaints) {
  await page.locator("#tab-fine-tune").click();
  const text = page.locator("#learned-text");
  await page.waitForFunction(() => globalThis.document.getElementById("learned-text").value, null, WAIT);
  const sample = await text.inputValue();
  await text.fill("  ");
  await page.locator("#train-adapters").click();
  await page.locator("#adapters-failure .failure").waitFor(WAIT);
  const seen = {
    empty: await textOf(page, "adapters-failure"),
    button: await textOf(page, "train-adapters"),
  };
  await text.fill(sample);
  await page.locator("#adapters-steps").selectOption("30");
  await page.locator("#train-adapters").click();
  await page.locator("#adapter-files a").nth(1).waitFor(WAIT);
  seen.failures = await page.locator("#adapters-failure .failure").count();
  seen.note = await textOf(page, "adapters-note");
  seen.before = await textOf(page, "answer-before");
  seen.after = await textOf(page, "answer-after");
  await shoot(page, "fine-tune");
  seen.downloads = [];
  for (const link of await page.locator("#adapter-files a").all()) {
    seen.downloads.push(await download(page, link));
  }
  seen.models = [];
  for (const id of ["download-exported", "download-folder"]) {
    seen.models.push(await download(page, page.locator(`#${id}`)));
    await page.locator("#download-note", { hasText: " MB" }).waitFor(WAIT);
  }
  await page.locator("#adapters-prompt").fill("Hello");
  await page.keyboard.press("Enter");
  await page.waitForFunction(
    (last) => ![last, "…", ""].includes(globalThis.document.getElementById("answer-after").innerText),
    seen.after,
    WAIT,
  );
  seen.greeting = await textOf(page, "answer-after");
  // without a network: prose, and a run that is stopped
  seen.complaints = [...complaints]; // of the network there are some from here on
  await page.context().setOffline(true);
  await page.locator("#learned-sample").selectOption({ index: 1 });
  await page.locator("#adapters-steps").selectOption("300");
  await page.locator("#train-adapters").click();
  await page.locator("#adapters-note", { hasText: /^step/ }).waitFor(WAIT);
  await page.locator("#train-adapters").click();
  await page.locator("#train-adapters", { hasText: "Train again" }).waitFor(WAIT);
  seen.stopped = await textOf(page, "adapters-note");
  seen.downloadNote = await textOf(page, "download-note");
  seen.prose = await textOf(page, "answer-before");
  await page.locator("#tab-chat").click();
  seen.offline = await ask(page, "What colour is snow?");
  return seen;
}

/** How both tabs look on a phone; whether anything is wider than it. */
async function onPhone(page) {
  await page.setViewportSize({ width: 390, height: 844 });
  const seen = {};
  for (const name of ["chat", "fine-tune"]) {
    await page.locator(`#tab-${name}`).click();
    await page.waitForTimeout(300);
    await shoot(page, `${name}-phone`);
    seen[name] = await page.evaluate(() => globalThis.document.documentElement.scrollWidth);
  }
  return seen;
}

const server = await startServer();
const browser = await launchChromium();
try {
  const options = { viewport: { width: 1200, height: 800 }, acceptDownloads: true };
  const { page, complaints } = await open(browser, `${server.url}/playground/#chat`, options);
  const seen = {
    chat: await chat(page),
    own: await ownModel(page),
    tuning: await fineTune(page, complaints),
  };
  seen.widths = await onPhone(page);
  console.log(JSON.stringify(seen));
} finally {
  await browser.close();
  server.close();
}
