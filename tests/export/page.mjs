/** `node page.mjs MODEL [not-isolated]`: opens the page with the model in Chromium; prints what it left, and complaints. */

import { fileURLToPath } from "node:url";

import { launchChromium } from "../../web/chromium.mjs";
import { startServer } from "../../web/serve.mjs";

const [model, option] = process.argv.slice(2);
const mounts = { "/model/": fileURLToPath(new URL("page/", import.meta.url)), "/model/model.pgrd": model };
const headers = option === "not-isolated" ? { "Cross-Origin-Embedder-Policy": "unsafe-none" } : {};
const server = await startServer({ mounts, headers });
const browser = await launchChromium();
try {
  const page = await browser.newPage();
  const complaints = [];
  const requests = [];
  page.on("request", (request) => requests.push(new URL(request.url()).pathname));
  page.on("console", (message) => message.type() === "error" && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  await page.goto(`${server.url}/model/index.html`);
  await page.waitForFunction(() => window.result !== undefined, undefined, { timeout: 60_000 });
  const result = await page.evaluate(() => window.result);
  console.log(
    JSON.stringify({ ...result, requests, complaints: complaints.filter((text) => !text.includes("404")) }),
  );
} finally {
  await browser.close();
  server.close();
}
